import doctest

import numpy as np
import pytest

import edgewise
from edgewise import eep
from edgewise.errors import AppError, BadEvent, SetupError
from edgewise.event.event import Event
from edgewise.lang import compile_app
from edgewise.lang.fluent import app as module
from edgewise.lang.fluent.app import App
from edgewise.plan.declare import aggregate, function
from edgewise.plan.procedures import Procedure

TEXT = """
define stream S (k string, v int);
define table R (k string, v int);
from S#window.length(2) select k, sum(v) as t group by k insert into O;
from S select k, v insert into R;
"""


def test_events_are_tuples_or_dicts_and_rows_come_back_at_once():
    app = App(TEXT)
    assert app.send("S", ("a", 1)).data() == [("a", 1)]
    assert app.send("S", {"v": 2, "k": "a"}).dicts() == [{"k": "a", "t": 3}]
    assert app.send("S", [("b", 5), ("b", None)]).data() == [("b", 5), ("b", 5)]
    assert app.query("from R on v > 1 select k, v") == [("a", 2), ("b", 5)]


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        (5, "an event is a tuple of values or a dict by name, not int: 5"),
        ("ab", "a tuple of values or a dict by name, not str: 'ab'"),
        ({"a", 1}, "not set"),
        (("a",), "'S' has 2 attributes, got 1"),
        (("a", "x"), "field 'v': must be int, got string"),
        ({"k": "a"}, "field 'v': is missing"),
        ({"k": "a", "v": 1, "w": 2}, "field 'w': 'S' has no such attribute"),
    ],
)
def test_anything_else_is_refused_with_a_sentence_and_changes_nothing(event, reason):
    app = App(TEXT)
    with pytest.raises(BadEvent, match=reason):
        app.send("S", event)
    assert app.query("from R select k") == []


def test_a_stream_that_is_not_there_is_named_with_those_that_are():
    with pytest.raises(SetupError, match="no stream 'X'; it reads S"):
        App(TEXT).send("X", ("a", 1))


def test_time_is_that_of_the_events_or_the_apps_own():
    app = App("define stream S (v int); from S#window.time(10) select count() as n insert into O;")
    assert app.now == 0
    app.send("S", (1,), ts=100)
    assert app.send("S", (2,)).data() == [(2,)]
    assert app.now == 100
    app.advance(120)
    assert app.send("S", (3,)).data() == [(1,)]


def test_many_events_bring_their_time_in_an_attribute_or_are_events_of_any_stream():
    text = (
        "define stream S (t long, v int); from S#window.time(10) select sum(v) as s insert into O;"
    )
    events = [(100, 1), (105, 2), {"t": 200, "v": 5}]
    assert App(text).run(events, time="t").data() == [(1,), (3,), (5,)]
    assert App(text).run([Event("S", 100, (0, 1))])[0].ts == 100
    with pytest.raises(SetupError, match="time='x': S has no such attribute; it has t, v"):
        App(text).run(events, time="x")
    with pytest.raises(BadEvent, match="field 't': a time is a whole number"):
        App(text).run([(None, 1)], time="t")


def test_an_app_with_two_inputs_asks_which_one():
    two = (
        "define stream A (v int); define stream B (v int); "
        "from A select v insert into O; from B select v insert into O;"
    )
    with pytest.raises(SetupError, match="the app reads A, B: say stream="):
        App(two).run([(1,)])
    assert App(two).run([(1,)], stream="B").data() == [(1,)]


def test_values_of_numpy_are_taken():
    app = App("define stream S (v int, d double); from S select v, d insert into O;")
    assert app.send("S", (np.int64(3), np.float64(0.5))).data() == [(3, 0.5)]
    assert app.send("S", {"v": np.int32(3), "d": 1}).data() == [(3, 1.0)]


def test_functions_aggregates_and_procedures_of_ones_own():
    @function("my:twice", "number", returns="same")
    def twice(x):
        return 2 * x

    @aggregate("my:last", "any", returns="same")
    class Newest(eep.Last):
        pass

    class Nth(Procedure):
        name = "my:nth"
        appends = {"n": "int"}  # noqa: RUF012
        state = {"seen": 0}  # noqa: RUF012

        def process(self, event, state):  # noqa: ARG002
            state["seen"] += 1
            return {"n": state["seen"]}

    text = (
        "define stream S (v int); define table R (v int); "
        "from S#my:nth() select my:twice(v) as w, my:last(v) as l, n insert into O; "
        "from S select v insert into R;"
    )
    app = App(text, functions=[twice, Newest, Nth])
    assert app.send("S", [(1,), (4,)]).data() == [(2, 1, 1), (8, 4, 2)]
    assert app.query("from R select my:last(my:twice(v)) as l") == [(8,)]
    with pytest.raises(SetupError, match=r"declare it with @edgewise\.function"):
        App(text, functions=[abs])


def test_a_plan_runs_too_and_a_broken_text_says_where():
    assert App(compile_app(TEXT).app).send("S", ("a", 1)).data() == [("a", 1)]
    with pytest.raises(AppError, match="<app>:1:"):
        App("define strem S (v int);")


def test_it_shows_itself():
    app = App("@app:name('sums') " + TEXT)
    assert repr(app) == "App('sums': reads S; writes O)"
    assert app._repr_html_().startswith("<svg")


def test_the_examples_hold():
    globs = {**vars(module), "edgewise": edgewise}
    assert doctest.testmod(module, globs=globs) == (0, 3)
