"""The straight-line feeders give the rows that the general functions give."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.kernel_runs import STREAMS

from edgewise.kernel import compile_kernel
from edgewise.kernel.api import EventRun
from edgewise.kernel.operators import vectors
from edgewise.lang import compile_app
from edgewise.plan.fragments import Fragment

QUERIES = {
    "filter": "from A[v > 2 and k != 'y'] select k, v * 2 as w having w < 15 insert into O;",
    "pass": "from A select k insert into O;",
    "constant": "from A select 1 as one insert into O;",
    "length": (
        "from A#window.length(3) select k, avg(v) as a, max(v) as m group by k insert into O;"
    ),
    "filtered length": (
        "from A[v > 1]#window.length(2) select sum(v + 1) as s, count() as n having n > 1 "
        "insert into O;"
    ),
    "gathered": (
        "from A[v > 1]#window.externalTimeBatch(t, 10 milliseconds) "
        "select k, sum(v) as s group by k insert into O;"
    ),
    "pair": (
        "from every e1=A[v > 3] -> e2=A[k == e1.k and v < e1.v] within 9 milliseconds "
        "select e1.k as k, e1.v as a, e2.v as b insert into O;"
    ),
    "two streams": "from every e1=A -> e2=B[e1.k == k] select e1.v as a, e2.v as b insert into O;",
    "partitioned": (
        "partition with (k of A) begin from every e1=A[v > 4] -> e2=A[v < 3] "
        "within 20 milliseconds select e1.v as a, e2.v as b insert into O; end;"
    ),
}
EVENTS = st.lists(
    st.tuples(
        st.sampled_from("AB"),
        st.integers(-3, 12),
        st.sampled_from(["x", "y", None]),
        st.none() | st.integers(0, 9),
    ),
    max_size=30,
)


def rows_of(app, events, taps):
    kernel = compile_kernel(app, Fragment("f", tuple(q.name for q in app.queries)), taps)
    now = clock = 1000
    for offset, (stream, gap, k, v) in enumerate(events):
        now += gap
        clock = max(clock, now)
        kernel.feed(EventRun(stream, [now], [[k], [v], [now]], [offset], [clock], [0]))
    return [(r.clock, r.offset, r.ts, r.data) for r in kernel.take() if r.stream == "O"], kernel


@pytest.mark.parametrize("name", QUERIES)
@settings(max_examples=40)
@given(events=EVENTS)
def test_straight_lines_change_nothing(name, events):
    head = STREAMS.replace("v int)", "v int, t long)")
    app = compile_app(head + QUERIES[name]).app
    fast, _ = rows_of(app, events, ())
    general, _ = rows_of(app, events, [q.name for q in app.queries])
    assert fast == general


QUERIES_AT_ONCE = QUERIES | {
    "picked": "from A[v > 2 and not (v == 5)] select v, k, t insert into O;",
    "sums": (
        "from A#window.length(4) select k, sum(v) + 1 as s, count() as n, v group by k, v "
        "insert into O;"
    ),
    "batches": (
        "from A#window.externalTimeBatch(t, 7 milliseconds) "
        "select v, k, avg(v) as a, count() as n, sum(v) as s group by k insert into O;"
    ),
    "batches of groups": (
        "from A#window.externalTimeBatch(t, 7 milliseconds) "
        "select sum(v) as s, k, count() as n group by k insert into O;"
    ),
    "batches of pairs": (
        "from A#window.externalTimeBatch(t, 15 milliseconds) "
        "select v, sum(t) as s, k, v as w group by k, v insert into O;"
    ),
    "batches by two": (
        "from A#window.externalTimeBatch(t, 20 milliseconds) "
        "select sum(t) + 1 as s, k group by k, v insert into O;"
    ),
}


@pytest.mark.parametrize("name", QUERIES_AT_ONCE)
@settings(max_examples=40, deadline=None)
@given(events=EVENTS, cuts=st.sets(st.integers(0, 30)), full=st.booleans())
def test_long_runs_change_nothing(name, events, cuts, full):
    if full:
        events = [(s, gap, k or "z", v or 0) for s, gap, k, v in events]
    head = STREAMS.replace("v int)", "v int, t long)")
    app = compile_app(head + QUERIES_AT_ONCE[name]).app
    singly, _ = rows_of(app, events, ())
    kept, vectors.LEAST_EVENTS = vectors.LEAST_EVENTS, 2
    try:
        assert together(app, events, cuts) == singly
        assert together(app, events, cuts, columnar=True) == singly
    finally:
        vectors.LEAST_EVENTS = kept


def together(app, events, cuts, *, columnar=False):
    """The rows when runs are as long as they can be, but for the cuts."""
    kernel = compile_kernel(app, Fragment("f", tuple(q.name for q in app.queries)))
    now = clock = 1000
    run = None
    for offset, (stream, gap, k, v) in enumerate(events):
        now += gap
        clock = max(clock, now)
        if run is None or run.stream != stream or offset in cuts:
            if run is not None:
                kernel.feed(run)
            run = EventRun(stream, [], [[], [], []], [], [], [])
        positions = (run.ts, *run.columns, run.offset, run.clock, run.at)
        for column, value in zip(positions, (now, k, v, now, offset, clock, 0), strict=True):
            column.append(value)
    if run is not None:
        kernel.feed(run)
    if columnar:
        rows = [row for part in kernel.take_columns() for row in part.rows()]
        rows.sort(key=lambda r: r[1:5])
        return [(r[1], r[3], r[5], r[8]) for r in rows if r[0] == "O"]
    return [(r.clock, r.offset, r.ts, r.data) for r in kernel.take() if r.stream == "O"]


def test_a_filter_is_one_comprehension():
    head = STREAMS.replace("v int)", "v int, t long)")
    app = compile_app(head + QUERIES["filter"]).app
    _, kernel = rows_of(app, [], ())
    assert "rt.rows += [" in kernel.source
