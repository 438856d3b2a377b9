"""Runs of Arrow columns give the rows that the same events give one at a time."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgewise.event.arrow import to_column
from edgewise.event.column import Column
from edgewise.event.types import AttrType
from edgewise.kernel import compile_kernel
from edgewise.kernel.api import EventRun
from edgewise.kernel.operators import column_windows as columnar
from edgewise.kernel.operators import vectors
from edgewise.lang import compile_app
from edgewise.plan.rules.keys import split_into_fragments

HEAD = "define stream S (k string, b bool, v int, l long, d double, t long); "
KINDS = (
    AttrType.STRING,
    AttrType.BOOL,
    AttrType.INT,
    AttrType.LONG,
    AttrType.DOUBLE,
    AttrType.LONG,
)
QUERIES = {
    "batches": "from S#window.externalTimeBatch(t, 7 milliseconds) select k, sum(v) as s, "
    "avg(d) as a, count() as n, sum(l) as w, avg(l) as m, sum(d) as e group by k insert into O;",
    "batches by two": "from S#window.externalTimeBatch(t, 20 milliseconds) "
    "select v, b, k, count() as n group by k, b insert into O;",
    "batches of an expression": "from S#window.externalTimeBatch(t, 7 milliseconds) "
    "select k, sum(v) + 1 as s group by k insert into O;",
    "sliding": "from S#window.time(9 milliseconds) "
    "select k, v, avg(v) as a, count() as n, sum(l) as s group by k insert into O;",
    "sliding by two": "from S#window.time(30 milliseconds) "
    "select b, count() as n, k, sum(v) as s group by k, b insert into O;",
    "picked": "from S[v > 2] select k, d insert into O;",
    "pattern": "from every e1=S[v > 3] -> e2=S[k == e1.k and v < 3] within 12 milliseconds "
    "select e1.l as a, e2.d as b insert into O;",
    "sequence": "partition with (k of S) begin from every e1=S[v > 2], e2=S[v > 2]+, e3=S[v < 2] "
    "select e1.v as a, e3.l as b insert into O; end;",
    "by length": "from S#window.length(3) select k, sum(v) as s group by k insert into O;",
}
LARGE = st.sampled_from([0, 1, -3, 2**53, 2**63 - 1, -(2**63)])
EVENTS = st.lists(
    st.tuples(
        st.integers(-3, 6),
        st.tuples(
            st.sampled_from(["a", "b", None, "c"]),
            st.sampled_from([True, False, None]),
            st.integers(0, 6),
            LARGE,
            st.sampled_from([0.1, 0.2, 0.3, -0.0, 1e16]),
        ),
    ),
    max_size=40,
)


def runs_of(events, cuts, *, arrow, holes):
    now = clock = 1000
    rows = []
    for offset, (gap, (k, b, v, large, d)) in enumerate(events):
        now += gap
        clock = max(clock, now)
        row = (k, b, None if offset in holes else v, large, d, now)
        rows.append((now, offset, clock, offset * 10, row))
    edges = sorted({0, *(c for c in cuts if c < len(rows)), len(rows)})
    for low, high in itertools.pairwise(edges):
        ts, offset, clocks, at, data = zip(*rows[low:high], strict=True)
        positions = [list(x) for x in (ts, offset, clocks, at)]
        columns = [list(c) for c in zip(*data, strict=True)]
        if arrow:
            positions = [Column(to_column(p, AttrType.LONG), AttrType.LONG) for p in positions]
            columns = [
                Column(to_column(c, kind), kind) for c, kind in zip(columns, KINDS, strict=True)
            ]
        ts, offset, clocks, at = positions
        yield EventRun("S", ts, columns, offset, clocks, at)


def rows_of(kernel, *, by_column):
    if by_column:
        made = [row for part in kernel.take_columns() for row in part.rows()]
    else:
        made = kernel.take_tuples()
    return sorted((tuple(r[1:5]), r[5], r[6], r[7], r[8]) for r in made)


@pytest.mark.parametrize("name", QUERIES)
@settings(max_examples=60, deadline=None)
@given(
    events=EVENTS,
    cuts=st.sets(st.integers(0, 40), max_size=3),
    holes=st.sets(st.integers(0, 200), max_size=2),
    how=st.tuples(st.booleans(), st.booleans()),
)
def test_arrow_columns_give_what_single_events_give(name, events, cuts, holes, how):
    ordered, by_column = how
    if ordered:
        events = [(max(gap, 0), data) for gap, data in events]
    app = compile_app(HEAD + QUERIES[name]).app
    [fragment] = split_into_fragments(app)
    singly = compile_kernel(app, fragment)
    for run in runs_of(events, range(41), arrow=False, holes=holes):
        singly.feed(run)
    at_once = compile_kernel(app, fragment)
    kept = vectors.LEAST_EVENTS, columnar.LEAST_EVENTS, columnar.GROUP_EVENTS_MIN
    vectors.LEAST_EVENTS = columnar.LEAST_EVENTS = 2
    columnar.GROUP_EVENTS_MIN = 1
    try:
        for run in runs_of(events, cuts, arrow=True, holes=holes):
            at_once.feed(run)
    finally:
        vectors.LEAST_EVENTS, columnar.LEAST_EVENTS, columnar.GROUP_EVENTS_MIN = kept
    assert repr(rows_of(at_once, by_column=by_column)) == repr(rows_of(singly, by_column=False))
    left = [{key for key, state in k.changed() if state is not None} for k in (at_once, singly)]
    assert left[0] == left[1]


@pytest.mark.parametrize("name", ["batches", "sliding"])
def test_times_at_the_ends_of_time_give_the_same_rows(name, monkeypatch):
    for where in (vectors, columnar):
        monkeypatch.setattr(where, "LEAST_EVENTS", 2)
    app = compile_app(HEAD + QUERIES[name]).app
    gaps = [-(2**63), 3, 5, 1, 2**63, 4, 2**62, 9, 9, 2, 3, 1]
    events = [(gap, ("ab"[n % 2], True, 1, 1, 1.0)) for n, gap in enumerate(gaps)]
    found = []
    for cuts, arrow in ((range(41), False), ((2,), True)):
        kernel = compile_kernel(app, split_into_fragments(app)[0])
        for run in runs_of(events, cuts, arrow=arrow, holes=()):
            kernel.feed(run)
        found.append(repr(rows_of(kernel, by_column=False)))
    assert found[0] == found[1]


@pytest.mark.parametrize("name", ["batches", "sliding"])
def test_such_runs_are_taken_at_once(name):
    app = compile_app(HEAD + QUERIES[name]).app
    kernel = compile_kernel(app, split_into_fragments(app)[0])
    events = [(1, ("a", True, 1, 1, 1.0))] * 1000
    for run in runs_of(events, (5,), arrow=True, holes=()):
        kernel.feed(run)
    assert kernel._rt.blocks
