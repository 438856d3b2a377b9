import pytest

from edgewise.lang import compile_app
from edgewise.plan.functions import FUNCTIONS, TEXT, same, scalar
from edgewise.plan.rules.keys import split_into_fragments
from edgewise.plan.rules.native_spark import build_prefilter, explain_kernel_use
from edgewise.plan.text import show

DEFINE = "define stream S (a int, b int, x double, s string, o object);"
FUNCTION = FUNCTIONS.with_(scalar("my:sound", TEXT, returns=same, spark="soundex"))


def planned(text):
    app = compile_app(DEFINE + text, functions=FUNCTION).app
    [fragment] = split_into_fragments(app)
    return app, fragment


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("from S[a > 1 and not (s is null)] select a + b * 2 as c insert into O;", ""),
        ("from S select my:sound(s) as c insert into O;", ""),
        ("from S select a insert into M; from M[a > 1] select a insert into O;", ""),
        ("from S select a / b as c insert into O;", "query1: '/' divides otherwise in Spark"),
        ("from S[a % 2 == 1] select a insert into O;", "query1: '%' divides otherwise in Spark"),
        ("from S select str:length(s) as c insert into O;",
            "query1: str:length() is no Spark expression"),
        ("from S select o insert into O;", "query1: an object has no type in Spark"),
        ("from S select eventTimestamp() as t insert into O;",
            "query1: it looks at more than the event"),
        ("from S#log() select a insert into O;",
            "query1: a stream function is no Spark expression"),
        ("from S select a having a > 1 insert into O;",
            "query1: 'group by' and 'having' are not native"),
        ("from S select a order by a insert into O;",
            "query1: 'order by', 'limit' and 'offset' are not native"),
        ("from S select a return;", "query1: only 'insert into' of current events is native"),
        ("define stream M (a int); from M select a insert into O; from S select a insert into M;",
            "query1: it reads what a later query writes"),
    ],
)  # fmt: skip
def test_why_a_fragment_without_state_is_not_native(text, why):
    app, fragment = planned(text)
    assert fragment.stateless
    assert explain_kernel_use(app, fragment) == why


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("from S[a > 1]#window.length(2) select a insert into O;", "a > 1"),
        ("from S[a > 1 and a / b > 2]#window.length(2) select a insert into O;", "a > 1"),
        ("from S[a > 1]#window.length(2) return; from S[b < 5]#window.length(3) return;",
            "a > 1 or b < 5"),
        ("from every e1=S[a > 5] -> e2=S[b == e1.b and a < 3] select e1.a as a insert into O;",
            "a > 5 or a < 3"),
        ("from S#window.length(2)[a > 1] select a insert into O;", None),
        ("from every e1=S[a > 5], e2=S[a < 3] select e1.a as a insert into O;", None),
    ],
)  # fmt: skip
def test_what_is_asked_before_the_kernel(text, asked):
    app, fragment = planned(text)
    found = build_prefilter(app, fragment, "S")
    assert (found and show(found, "S")) == asked
