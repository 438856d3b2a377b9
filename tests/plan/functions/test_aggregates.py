import pytest
from tests.support.kernel_runs import data

from edgewise.errors import AppError
from edgewise.lang import compile_app
from edgewise.plan.functions import FUNCTIONS

HEAD = "define stream A (k string, v int);"
EVENTS = [("A", 1000, "x", 3), ("A", 1001, "y", 1), ("A", 1002, "x", 2)]


def test_every_aggregate_of_a_namespace_has_a_body():
    found = [f for f in FUNCTIONS.values() if f.aggregate and ":" in f.name]
    assert len(found) == 9
    assert all(f.body is not None for f in found)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("list:collect(v)", [1, 2]),
        ("str:groupConcat(k, ';')", "y;x"),
        ("map:collect(k, v)", {"x": 2, "y": 1}),
        ("math:percentile(v, 100.0)", 2.0),
        ("stats:median(v)", 1.5),
    ],
)
def test_a_window_collects_and_lets_go(text, value):
    query = f"from A#window.length(2) select {text} as r insert into O;"
    assert data(query, EVENTS, HEAD)[-1] == (value,)


@pytest.mark.parametrize(
    "text", ["math:percentile(v, 150.0)", "str:groupConcat(k, ',', true, 'UP')"]
)
def test_settings_are_checked_when_the_app_is_compiled(text):
    with pytest.raises(AppError):
        compile_app(f"{HEAD} from A select {text} as r insert into O;")
