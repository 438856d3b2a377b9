import pytest

from edgewise.errors import AppError
from edgewise.lang import compile_app
from edgewise.plan.processors import PROCESSORS

HEAD = "define stream A (k string, v int, p double, ts long); define stream B (k string);"


def test_every_processor_has_a_name_of_its_own():
    names = [p.name.lower() for p in PROCESSORS]
    assert len(set(names)) == len(names) == 35


def test_attributes_depend_on_the_arguments():
    app = compile_app(f"{HEAD} from A#extrema:topK(v, 2) select * insert into O;").app
    added = app.stream("O").schema.attributes[4:]
    assert [(a.name, a.type.value) for a in added] == [
        ("top1Element", "int"), ("top1Frequency", "long"), ("top2Element", "int"),
        ("top2Frequency", "long"),
    ]  # fmt: skip
    app = compile_app(f"{HEAD} from A#timeseries:regress(p, v, p) select * insert into O;").app
    assert app.stream("O").schema.names[4:] == ("stderr", "beta0", "beta1", "beta2")


@pytest.mark.parametrize(
    "call",
    [
        "str:tokenize(k, '(')",
        "str:tokenize(k, k)",
        "extrema:topK(v, v)",
        "extrema:topK(v, 0)",
        "approximate:count(k, 0.2)",
        "approximate:count(k, 2.0, 0.9)",
        "approximate:distinctCount(k, 0.1, 0.5)",
        "extrema:kernelMinMax(p, 3.0, 7, 'top')",
        "timeseries:regress(p)",
        "list:tokenize(v)",
        "reorder:kslack(k)",
    ],
)
def test_what_a_processor_does_not_take_is_refused(call):
    with pytest.raises(AppError):
        compile_app(f"{HEAD} from A#{call} select k insert into O;")


@pytest.mark.parametrize(
    "query",
    [
        "from A#str:tokenize(k, ',')#window.length(1) join B select A.k insert into O;",
        "from e1=A#str:tokenize(k, ',') -> e2=B select e1.k insert into O;",
    ],
)
def test_a_processor_in_a_join_or_pattern_is_refused_with_a_way_out(query):
    with pytest.raises(AppError, match="put it in a query before"):
        compile_app(f"{HEAD} {query}")
