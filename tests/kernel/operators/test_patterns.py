"""Patterns and sequences, each fact as the language states it."""

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.kernel_runs import START, data, engine, feed, rows

A = [("A", START + i, "x", i) for i in range(1, 7)]
B = ("B", START + 50, "x", 9)


def test_every_starts_a_match_with_each_event():
    query = "from every e1=A -> e2=B select e1.v as a, e2.v as b insert into O;"
    assert data(query, [*A[:2], B]) == [(1, 9), (2, 9)]


def test_every_around_a_group_waits_for_its_end():
    query = "from every (e1=A -> e2=B) select e1.v as a, e2.v as b insert into O;"
    assert data(query, [*A[:2], B, A[2], B]) == [(1, 9), (3, 9)]


def test_without_every_there_is_one_match():
    query = "from e1=A -> e2=B select e1.v as a, e2.v as b insert into O;"
    assert data(query, [A[0], B, A[1], B]) == [(1, 9)]


def test_one_event_is_never_two_steps():
    query = "from every e1=A -> e2=A select e1.v as a, e2.v as b insert into O;"
    assert data(query, A[:4]) == [(1, 2), (2, 3), (3, 4)]


def test_within_includes_its_boundary():
    query = "from every e1=A -> e2=B within 10 select e1.v as a insert into O;".replace(
        "within 10", "within 10 milliseconds"
    )
    assert data(query, [("A", 1000, "x", 1), ("A", 1001, "x", 2), ("B", 1011, "x", 0)]) == [(2,)]


def test_a_sequence_is_broken_by_any_other_event():
    query = "from every e1=A, e2=B select e1.v as a, e2.v as b insert into O;"
    assert data(query, [A[0], A[1], B, B]) == [(2, 9)]


QUERIES = st.sampled_from([
    "from every e1=A -> e2=B[k == e1.k] within 30 milliseconds",
    "from every (e1=A -> e2=B)",
    "from every e1=A<2:3> -> e2=B",
    "from e1=A -> e2=B and e3=A",
    "from every e1=A, e2=B[v > e1.v]",
    "from every e1=A+, e2=B",
    "from every e1=A -> not B for 20 milliseconds",
    "from every not A for 15 milliseconds -> e1=B",
    "from every e1=A -> e2=A or not B for 12 milliseconds",
])  # fmt: skip
EVENTS = st.lists(
    st.tuples(st.sampled_from("AB"), st.integers(0, 15), st.sampled_from("xy"), st.integers(0, 4)),
    max_size=20,
)


def with_time(events):
    now = START
    for stream, gap, k, v in events:
        now += gap
        yield (stream, now, k, v)


@settings(deadline=None, max_examples=40)
@given(QUERIES, EVENTS, st.integers(0, 20))
def test_a_snapshot_anywhere_changes_nothing(head, events, cut):
    events = [*with_time(events), 3000]
    query = head + " select 1 as one, eventTimestamp() as t insert into O;"
    whole, first, second = engine(query), engine(query), engine(query)
    feed(whole, events)
    feed(first, events[:cut])
    second.kernel.restore([(k, s) for k, s in first.kernel.changed() if s is not None])
    second._clock, second._offset = first._clock, first._offset
    feed(second, events[cut:])
    assert rows(first) + rows(second) == rows(whole)
