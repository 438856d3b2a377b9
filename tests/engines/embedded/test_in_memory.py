import pytest
from tests.support.kernel_plans import COUNT, K, app_of, query, window

from edgewise.engines.embedded import InMemoryEngine
from edgewise.errors import BadEvent
from edgewise.event.event import Event, EventKind
from edgewise.event.schema import Schema
from edgewise.event.types import AttrType
from edgewise.lang import compile_app
from edgewise.plan.exprs import Field
from edgewise.plan.nodes import Stream

APP = app_of(query({"k": K, "n": COUNT}, win=window("time", 100), group=[K]))


def test_rows_come_out_as_events():
    engine = InMemoryEngine(APP)
    engine.send("S", 1000, ["a", 1, 2.0], at=5)
    engine.advance(2000, at=9)
    assert engine.take() == [
        Event("O", 1000, ("a", 1), EventKind.CURRENT, 5),
        Event("O", 1100, ("a", 0), EventKind.EXPIRED, 9),
    ]
    assert engine.take() == []


def test_a_late_event_keeps_its_time_and_moves_nothing():
    engine = InMemoryEngine(APP)
    engine.send("S", 1000, ["a", 1, 2.0])
    engine.send("S", 900, ["b", 1, 2.0])
    assert [e.ts for e in engine.take()] == [1000, 900]
    assert engine.clock == 1000


def test_time_may_begin_before_the_epoch():
    engine = InMemoryEngine(APP)
    engine.send("S", -1000, ["a", 1, 2.0])
    engine.send("S", -800, ["a", 1, 2.0])
    engine.advance(-700)
    found = [(e.ts, e.data) for e in engine.take()]
    assert found == [(-1000, ("a", 1)), (-900, ("a", 0)), (-800, ("a", 1)), (-700, ("a", 0))]


def test_float_attributes_are_single_precision():
    floats = Stream(Schema.of("F", f="float"))
    f = Field(AttrType.FLOAT, "S", "f")
    engine = InMemoryEngine(app_of(query({"f": f}, source="F"), streams=(floats,)))
    engine.send_many("F", [(1, [0.1]), (2, [None])])
    assert [e.data[0] for e in engine.take()] == [0.10000000149011612, None]


def test_events_that_do_not_fit_are_refused():
    engine = InMemoryEngine(APP)
    with pytest.raises(BadEvent, match="has no stream 'T'"):
        engine.send("T", 1, [])
    with pytest.raises(BadEvent, match="has 3 attributes, the event has 1"):
        engine.send("S", 1, ["a"])


def test_events_may_be_taken_as_they_are_sent():
    app = compile_app(
        "define stream S (a float, b bool); "
        "from S select a, instanceOfFloat(b) as f insert into O; "
        "from S select and(b) as b insert into P;"
    ).app
    engine = InMemoryEngine(app, as_sent=True)
    engine.send("S", 1, [0.1])
    engine.send("S", 2, ["x", True, "too much"])
    assert [e.data for e in engine.take()] == [(0.1, False), (False,), ("x", False), (True,)]
    engine.send("S", 3, [1.0, "yes"])
    assert [e.stream for e in engine.take()] == ["O"]
    assert engine.kernel.stats.faults == {"S": 1}
