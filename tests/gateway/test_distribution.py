"""Destinations of `@distribution` share the rows of a stream, each with its own options."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgewise.event.schema import Schema
from edgewise.gateway.connectors import parse_sinks
from edgewise.gateway.spec import BadSpec, Share
from edgewise.plan.annotations import Annotation

SCHEMA = Schema.of("S", k="string", v="int")
ROWS = st.lists(st.tuples(st.text(max_size=3), st.integers(0, 9)), max_size=30)


def parse(strategy, *urls, **more):
    pairs = (("strategy", strategy), *more.items())
    destinations = tuple(Annotation("destination", (("publisher.url", url),)) for url in urls)
    inner = Annotation("distribution", pairs, destinations)
    sink = Annotation("sink", (("type", "http"), ("method", "PUT")), (inner,))
    return parse_sinks("S", sink, SCHEMA)


@given(ROWS)
@pytest.mark.parametrize(
    ("strategy", "more", "times"),
    [("roundRobin", {}, 1), ("partitioned", {"partitionKey": "k"}, 1), ("broadcast", {}, 3)],
)
def test_every_row_goes_to_as_many_destinations_as_the_strategy_says(strategy, more, times, rows):
    specs = parse(strategy, "http://a", "http://b", "http://c", **more)
    taken = [[s for s in specs if s.share.takes(n, row)] for n, row in enumerate(rows)]
    assert all(len(found) == times for found in taken)
    if strategy == "partitioned":
        by_key = {row[0]: found for row, found in zip(rows, taken, strict=True)}
        assert all(by_key[row[0]] == found for row, found in zip(rows, taken, strict=True))


def test_a_destination_adds_its_options_to_those_of_the_sink():
    specs = parse("roundrobin", "http://a", "http://b")
    assert [(s.options["url"], s.options["method"]) for s in specs] == [
        ("http://a", "PUT"),
        ("http://b", "PUT"),
    ]
    assert specs[1].share == Share("roundRobin", 1, 2)


@pytest.mark.parametrize(
    ("arguments", "more", "why"),
    [
        (("",), {}, "one of: broadcast"),
        (("roundRobin",), {}, "1 to 64"),
        (("partitioned", "http://a"), {}, "needs partitionKey"),
        (("partitioned", "http://a"), {"partitionKey": "x"}, "no such attribute"),
    ],
)
def test_what_cannot_work_is_refused(arguments, more, why):
    with pytest.raises(BadSpec, match=why):
        parse(*arguments, **more)
