"""Functions that the plan brings along, run by the embedded engine."""

import pytest

from edgewise.engines.embedded.engine import Embedded
from edgewise.lang import compile_app
from edgewise.plan.functions import FUNCTIONS, NUMBER, same, scalar

DEFINE = "define stream S (k string, v int, p double, t long);"


def selected(text, data=("abc", 7, 2.25, 0), functions=FUNCTIONS):
    app = compile_app(
        f"{DEFINE} from S select {text} as x insert into O;", functions=functions
    ).app
    engine = Embedded(app)
    engine.send("S", 1000, data)
    [row] = engine.take()
    return row.data[0]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("str:length(k)", 3),
        ("str:concat(k, v, true)", "abc7true"),
        ("str:upper(k)", "ABC"),
        ("math:sqrt(p)", 1.5),
        ("math:parseFloat('1.1')", 1.100000023841858),
        ("math:power(2, 10)", 1024.0),
        ("time:currentTimestamp()", "1970-01-01 00:00:01"),
        ("time:dateFormat(t, 'yyyy/MM/dd')", "1970/01/01"),
    ],
)
def test_functions_of_the_namespaces(text, value):
    assert selected(text) == value


def test_a_body_is_not_asked_about_null():
    assert selected("str:length(k)", (None, 7, 2.25, 0)) is None
    assert selected("str:coalesce(k, 'x')", (None, 7, 2.25, 0)) == "x"


def test_a_function_of_the_users_own():
    functions = FUNCTIONS.with_(scalar("my:twice", NUMBER, returns=same, python=lambda x: 2 * x))
    assert selected("my:twice(v)", functions=functions) == 14


def test_a_function_the_app_defines():
    define = "define function f[python] return int { return data[0] + len(data) };"
    app = compile_app(f"{define} {DEFINE} from S[f(v, k) > 5] select f(v) as x insert into O;").app
    engine = Embedded(app)
    engine.send("S", 1000, ("abc", 7, 2.25, 0))
    assert [row.data for row in engine.take()] == [(8,)]
