"""Which key a fragment gets, and what is said where it gets none."""

import pytest

from edgewise.event.schema import Schema
from edgewise.event.types import AttrType
from edgewise.plan.exprs import Agg, Const, Field
from edgewise.plan.nodes import (
    App,
    InsertInto,
    Query,
    Select,
    SelectItem,
    Stream,
    StreamInput,
    Window,
)
from edgewise.plan.rules.keys import split


def field(name, stream="S"):
    return Field(AttrType.STRING, stream, name)


def query(name, source, target, *, window="", group=(), count=False, items=("ip", "city")):
    made = Window(window, (Const(AttrType.LONG, 1000),)) if window else None
    chosen = [SelectItem(i, field(i, source)) for i in items]
    if count:
        chosen.append(SelectItem("n", Agg(AttrType.LONG, "count", ())))
    by = tuple(field(g, source) for g in group)
    return Query(
        name,
        StreamInput(source, source, window=made),
        Select(tuple(chosen), group_by=by),
        InsertInto(target),
    )


def app(*queries, inputs=("S",)):
    names = dict.fromkeys([*inputs, *(q.output.target for q in queries)])
    streams = tuple(Stream(Schema.of(n, ip="string", city="string")) for n in names)
    return App("app", streams, queries)


def test_a_time_window_grouped_by_an_attribute_is_keyed_by_it():
    [fragment] = split(app(query("q", "S", "O", window="time", group=("ip",), count=True)))
    assert fragment.keys == (("S", ("ip",)),)


@pytest.mark.parametrize("window", ["length", "timeBatch"])
def test_a_window_that_looks_at_all_events_together_is_one_task_and_says_why(window):
    [fragment] = split(app(query("q", "S", "O", window=window, group=("ip",), count=True)))
    assert not fragment.keyed
    assert window in fragment.why


def test_queries_without_state_need_no_key():
    [fragment] = split(app(query("q", "S", "O")))
    assert fragment.stateless


def test_an_aggregate_without_group_by_is_one_task():
    [fragment] = split(app(query("q", "S", "O", count=True)))
    assert "no group by" in fragment.why


def test_a_chain_is_keyed_by_what_all_its_queries_group_by():
    first = query("q1", "S", "M", window="time", group=("ip", "city"), count=True)
    second = query("q2", "M", "O", group=("ip",), count=True)
    [fragment] = split(app(first, second))
    assert fragment.queries == ("q1", "q2")
    assert fragment.keys == (("S", ("ip",)),)


def test_an_attribute_that_was_computed_on_the_way_is_no_key():
    first = query("q1", "S", "M", items=("city",), count=False)
    second = query("q2", "M", "O", group=("ip",), count=True)
    [fragment] = split(app(first, second))
    assert "share no grouping" in fragment.why


def test_queries_that_share_no_stream_are_fragments_of_their_own():
    a = query("a", "S", "O", group=("ip",), count=True)
    b = query("b", "T", "P", window="length", count=True)
    fragments = split(app(a, b, inputs=("S", "T")))
    assert [f.inputs for f in fragments] == [("S",), ("T",)]
    assert [f.keyed for f in fragments] == [True, False]


def test_several_inputs_of_one_fragment_are_merged_on_one_task():
    a = query("a", "S", "M")
    b = query("b", "T", "M")
    c = query("c", "M", "O", group=("ip",), count=True)
    [fragment] = split(app(a, b, c, inputs=("S", "T")))
    assert "merged" in fragment.why
