"""Functions that the plan brings along, run by the embedded engine."""

import pytest

from edgewise.engines.embedded.in_memory import InMemoryEngine
from edgewise.lang import compile_app
from edgewise.plan.functions import FUNCTIONS, NUMBER, same, scalar
from edgewise.plan.procedures import Procedure

DEFINE = "define stream S (k string, v int, p double, t long);"


def selected(text, data=("abc", 7, 2.25, 0), functions=FUNCTIONS):
    app = compile_app(
        f"{DEFINE} from S select {text} as x insert into O;", functions=functions
    ).app
    engine = InMemoryEngine(app)
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
    assert selected("math:parseInt(k)", (None, 7, 2.25, 0)) is None


def test_a_null_that_a_function_drops_makes_no_row():
    with pytest.raises(ValueError, match="not enough values"):
        selected("str:length(k)", (None, 7, 2.25, 0))


def test_a_typed_body_is_given_the_types_of_its_arguments():
    assert selected("str:concat(v, convert(v, 'float'))") == "77.0"
    assert selected("math:hex(-1)") == "ffffffff"
    assert selected("math:hex(-1L)") == "ffffffffffffffff"


def test_a_call_that_is_a_bool_is_never_null():
    assert selected("math:isNan(p)", ("a", 7, None, 0)) is False
    assert selected("cast(k, 'bool')", (None, 7, 2.25, 0)) is False
    assert selected("str:coalesce(k, 'x')", (None, 7, 2.25, 0)) == "x"


def test_a_function_of_the_users_own():
    functions = FUNCTIONS.with_(scalar("my:twice", NUMBER, returns=same, python=lambda x: 2 * x))
    assert selected("my:twice(v)", functions=functions) == 14


def test_a_function_the_app_defines():
    define = "define function f[python] return int { return data[0] + len(data) };"
    app = compile_app(f"{define} {DEFINE} from S[f(v, k) > 5] select f(v) as x insert into O;").app
    engine = InMemoryEngine(app)
    engine.send("S", 1000, ("abc", 7, 2.25, 0))
    assert [row.data for row in engine.take()] == [(8,)]


class Rising(Procedure):
    name = "my:rising"
    appends = {"steps": "int"}  # noqa: RUF012
    state = {"last": 0, "steps": 0}  # noqa: RUF012

    def process(self, event, state):
        if event["v"] < 0:
            return None
        state["steps"] = state["steps"] + 1 if event["v"] > state["last"] else 0
        state["last"] = event["v"]
        return {"steps": state["steps"]}


QUERY = "from S#my:rising()[steps > 0] select k, steps insert into O;"
PER_KEY = f"partition with (k of S) begin {QUERY} end;"
EVENTS = [("a", 1), ("a", 2), ("b", 1), ("a", -5), ("a", 3), ("b", 2)]


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        (QUERY, [("a", 1), ("a", 2), ("a", 1)]),
        (PER_KEY, [("a", 1), ("a", 2), ("b", 1), ("a", 3), ("b", 2)]),
    ],
)
def test_a_procedure_keeps_its_state_per_key(query, rows):
    app = compile_app(DEFINE + query, procedures=[Rising()]).app
    engine = InMemoryEngine(app)
    for key, value in EVENTS:
        engine.send("S", 1000, (key, value, 0.0, 0))
    assert [row.data for row in engine.take()] == rows


def test_the_state_of_a_procedure_is_saved_and_restored():
    app = compile_app(DEFINE + PER_KEY, procedures=[Rising()]).app
    first, second = InMemoryEngine(app), InMemoryEngine(app)
    first.send("S", 1000, ("a", 5, 0.0, 0))
    second.kernel.restore([(k, s) for k, s in first.kernel.changed() if s is not None])
    second.send("S", 2000, ("a", 6, 0.0, 0))
    assert [row.data for row in second.take()] == [("a", 2)]
