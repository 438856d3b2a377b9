import pickle

import pytest
from tests.support.compiled_plans import query, refused

from edgewise.errors import AppError
from edgewise.plan.exprs import Agg, walk


@pytest.mark.parametrize(
    "text",
    [
        "length(5)",
        "lengthBatch(5, true)",
        "time(1 sec)",
        "time(1000)",
        "timeBatch(1 sec, 0, true)",
        "externalTime(l, 1 sec)",
        "externalTimeBatch(l, 1 sec, 0, 100, true)",
        "timeLength(1 sec, 5)",
        "session(5 sec, k, 1 sec)",
        "session(5 sec, 1 sec)",
        "sort(5, v, 'desc', k)",
        "frequent(5, k)",
        "lossyFrequent(0.1, 0.01, k)",
        "cron('0 0 * * * ?')",
        "delay(1 min)",
        "batch()",
        "expression('count() <= 5')",
        "expressionBatch('last.v - first.v < 5', b, true)",
    ],
)
def test_every_window(text):
    window = query(f"from S#window.{text} insert into X;").input.window
    assert window.name == text.split("(")[0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tme(1 sec)", "there is no window 'tme'"),
        ("time(1.5)", "#window.time: time must be int or long, this is double"),
        ("time(l)", "#window.time: time must be a constant"),
        ("length()", "#window.length: count is missing"),
        ("length(1, 2)", "#window.length: too many arguments, 2 for 1"),
        ("length(-1)", "#window.length: a length or a time cannot be negative"),
        ("externalTime('l', 1 sec)", "#window.externalTime: timestamp must be an attribute"),
        ("session(5 sec, k, 6 sec)", "#window.session: the latency is longer than the gap"),
        ("sort(2, v, 'up')", "#window.sort: 'up' is not an order; use 'asc' or 'desc'"),
        ("expression('count()')", "in the quotes: the window needs a bool, this is long"),
        ("expression('count( > 1')", "in the quotes: expected an expression, found '>'"),
    ],
)
def test_what_is_refused(text, message):
    assert refused(f"from S#window.{text} insert into X;") == [message]


def test_a_condition_that_events_bring_is_read_when_it_comes():
    window = query("from S#window.expression(k) insert into X;").input.window
    assert window.condition is None
    assert pickle.loads(pickle.dumps(window)) == window
    assert any(isinstance(node, Agg) for node in walk(window.reader("count() < 5")))
    with pytest.raises(AppError, match="needs a bool"):
        window.reader("count()")


def test_the_condition_of_an_expression_window_is_lowered():
    window = query("from S#window.expression('sum(v) < 5') insert into X;").input.window
    assert any(isinstance(node, Agg) for node in walk(window.condition))


def test_a_cron_expression_has_its_fields():
    [message] = refused("from S#window.cron('often') insert into X;")
    assert "six fields" in message
