import pytest

from edgewise.lang import compile_app
from edgewise.plan.text import show, show_input

DEFINE = "define stream S (k string, v int, l long, f float, p double, b bool);"
DEFINE += "define table T (k string);"


@pytest.mark.parametrize(
    "text",
    [
        "v > 5 and not (b or v < 3)",
        "(v + 1) * 2 == v - (l - 3L)",
        "(v > 1 or b) and k == 'x'",
        "f > 1.5f",
        "k is null",
        "T.k == k in T",
        "str:length(k) > 5",
        "eventTimestamp() > 5",
        "true",
    ],
)
def test_a_condition_reads_as_it_was_written(text):
    condition = compile_app(f"{DEFINE} from S[{text}] insert into O;").app.queries[0].input.before
    assert show(condition[0].condition, "S") == text


@pytest.mark.parametrize(
    "text",
    [
        "S[b]#window.time(1 min 30 sec)[v > 1]",
        "S#window.length(5) as a left outer join T on a.k == T.k",
        "every a=S[b] -> b=S[k == a.k]<2:5> -> not S for 1 sec within 1 min",
        "every (a=S -> b=S<3>) -> c=S<0:>",
        "a=S, b=S[a.v < v]<1:>",
        "not S and a=S",
        "S#pol2Cart(p, f)",
    ],
)
def test_an_input_reads_as_it_was_written(text):
    app = compile_app(f"{DEFINE} from {text} select 1 as x insert into O;").app
    assert show_input(app.queries[0].input) == text
