"""Events that come out of order, within what is declared, give the rows of the sorted input."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.kernel_plans import kernel_of

from edgewise.errors import AppError
from edgewise.kernel.api import EventRun
from edgewise.kernel.operators import reorder as order
from edgewise.lang import compile_app

LATENESS, END = 40, 10_000
HEAD = "define stream S (k string, v int); define stream T (k string, v int); "
LATE = "@lateness('40 millisec') " + HEAD
QUERIES = [
    "from S[v > 1] select k, v insert into O;",
    "from S#window.time(30) select k, sum(v) as s group by k insert all events into O;",
    "from S#window.timeBatch(20) select k, count() as n insert into O;",
    """from every e1=S -> e2=T[k == e1.k] within 50 millisec
    select e1.v as a, e2.v as b insert into O;""",
    "from every e1=S, e2=S[v > e1.v]+, e3=T select e1.v as a, e3.v as b insert into O;",
    "from every e1=S -> not T[k == e1.k] for 20 millisec select e1.k as k insert into O;",
    """from S#window.time(30) as a join T#window.time(30) as b on a.k == b.k
    select a.v as x, b.v as y insert into O;""",
    """partition with (k of S) begin from S#window.length(2)
    select k, sum(v) as s insert into O; end;""",
    "from S select k, v insert into M; from M#window.lengthBatch(3) select v insert into O;",
]
EVENT = st.tuples(
    st.integers(0, 25),  # after the event before
    st.integers(0, LATENESS),  # on its way
    st.sampled_from("ST"),
    st.tuples(st.sampled_from(["a", "b"]), st.integers(0, 4)),
)


def arrivals(steps):
    """Events `(ts, stream, row)` in the order they come: none more than LATENESS behind."""
    now, made = 1000, []
    for step, delay, stream, row in steps:
        now += step
        made.append((now + delay, now, stream, row))
    return [event[1:] for event in sorted(made, key=lambda e: e[0])]


def runs(events):
    """One run for each event, with the clock of the whole app."""
    clock, found = 0, []
    for offset, (ts, stream, row) in enumerate(events):
        clock = max(clock, ts)
        found.append(EventRun(stream, [ts], [[v] for v in row], [offset], [clock], [0]))
    return found


def rows(kernel):
    return [(r.stream, r.clock, r.phase, r.ts, r.kind, r.data) for r in kernel.take()]


def through(app, events, key=()):
    kernel = kernel_of(app, key=key)
    for run in runs(events):
        kernel.feed(run)
    kernel.advance(END + LATENESS, 0)
    return rows(kernel)


SORTED = [compile_app(HEAD + text).app for text in QUERIES]
ORDERED = [compile_app(LATE + text).app for text in QUERIES]


@given(st.integers(0, len(QUERIES) - 1), st.lists(EVENT, max_size=25))
def test_any_shuffle_within_the_lateness_gives_the_rows_of_the_sorted_input(which, steps):
    came = arrivals(steps)
    straight = kernel_of(SORTED[which])
    for run in runs(sorted(came, key=lambda e: e[0])):
        straight.feed(run)
    straight.advance(END, 0)
    assert through(ORDERED[which], came) == rows(straight)


@given(st.integers(0, len(QUERIES) - 1), st.lists(EVENT, max_size=20), st.integers(0, 20))
def test_a_snapshot_holds_what_waits(which, steps, cut):
    came = arrivals(steps)
    first, second = kernel_of(ORDERED[which]), kernel_of(ORDERED[which])
    parts = runs(came)
    for run in parts[:cut]:
        first.feed(run)
    second.restore([(k, s) for k, s in first.changed() if s is not None])
    for run in parts[cut:]:
        second.feed(run)
    second.advance(END + LATENESS, 0)
    assert rows(first) + rows(second) == through(ORDERED[which], came)


@given(st.lists(EVENT, max_size=25), st.integers(1, 3))
def test_key_by_key_is_the_same_as_one_task(steps, spread):
    came = [(ts, "S", row) for ts, _, row in arrivals(steps)]
    app = ORDERED[1]
    kernels = [kernel_of(app, key=("k",)) for _ in range(spread)]
    for run in runs(came):
        kernels[ord(run.columns[0][0]) % spread].feed(run)
    found = []
    for kernel in kernels:
        kernel.advance(END + LATENESS, 0)
        found += kernel.take()
    found.sort(key=lambda r: (r.clock, r.phase, r.offset, r.seq))
    assert [(r.clock, r.ts, r.kind, r.data) for r in found] == [
        (clock, ts, kind, data) for _, clock, _, ts, kind, data in through(app, came)
    ]


FAULTS = "@OnError(action='STREAM') " + LATE


def test_what_comes_too_late_is_counted_and_goes_to_the_fault_stream():
    text = "from S select v insert into O; from !S select v, _error insert into F;"
    kernel = kernel_of(compile_app(FAULTS + text).app)
    for run in runs([(1000, "S", ("a", 1)), (1100, "S", ("a", 2)), (1060, "S", ("a", 3)),
                     (1059, "S", ("a", 4))]):  # fmt: skip
        kernel.feed(run)
    kernel.advance(1140, 0)
    found = [(r.stream, r.ts, r.data) for r in kernel.take() if r.stream != "!S"]
    assert found == [
        ("O", 1000, (1,)),
        ("O", 1060, (3,)),
        ("F", 1059, (4, "late by 1 ms")),
        ("O", 1100, (2,)),
    ]
    assert kernel.stats.late == {"S": 1}
    assert kernel.take_failed() == [("S", 1100, 3, 0, "late by 1 ms", [("a", 4)])]


@given(st.integers(0, len(QUERIES) - 1), st.lists(EVENT, max_size=25))
def test_times_before_the_epoch_are_times_like_all_others(which, steps):
    came, before = arrivals(steps), 10 * END
    events = runs([(ts - before, stream, row) for ts, stream, row in came])
    kernel, clock = kernel_of(ORDERED[which]), -(1 << 63)
    for run in events:
        clock = max(clock, run.ts[0])
        kernel.feed(EventRun(run.stream, run.ts, run.columns, run.offset, [clock], run.at))
    kernel.advance(END + LATENESS - before, 0)
    found = [(s, c + before, p, ts + before, *rest) for s, c, p, ts, *rest in rows(kernel)]
    assert found == [tuple(row) for row in through(ORDERED[which], came)]


def test_without_a_fault_stream_it_is_counted_and_told():
    kernel = kernel_of(ORDERED[0])
    for run in runs([(1000, "S", ("a", 2)), (900, "S", ("a", 3))]):
        kernel.feed(run)
    kernel.advance(END, 0)
    assert [r.data for r in kernel.take()] == [("a", 2)]
    assert kernel.stats.late == {"S": 1}
    assert kernel.take_failed() == [("S", 1000, 1, 0, "late by 60 ms", [("a", 3)])]


def test_a_stream_that_declares_nothing_loses_nothing():
    text = "from T select v insert into O;"
    found = through(compile_app(LATE + text).app, [(1000, "T", ("a", 1)), (900, "T", ("a", 2))])
    assert [row[3:] for row in found] == [(900, 0, (2,)), (1000, 0, (1,))]


def test_time_alone_lets_events_go():
    kernel = kernel_of(ORDERED[0])
    kernel.feed(runs([(1000, "S", ("a", 2))])[0])
    kernel.advance(1039, 0)
    assert not kernel.take()
    kernel.advance(1040, 0)
    assert [(r.clock, r.data) for r in kernel.take()] == [(1000, ("a", 2))]


def test_what_waits_is_bounded(monkeypatch):
    monkeypatch.setattr(order, "HELD_MAX", 5)
    kernel = kernel_of(ORDERED[0])
    for run in runs([(1000 + i % 7, "S", ("a", i + 2)) for i in range(100)]):
        kernel.feed(run)
    [(_, held)] = [(k, s) for k, s in kernel.changed() if b"held" in k]
    assert len(held) < 400
    kernel.advance(END, 0)
    assert len(kernel.take()) == 100


@pytest.mark.parametrize(
    ("head", "message"),
    [
        ("@lateness('soon')", "'soon' is not a time"),
        ("@lateness(time='5 sec')", "@lateness takes one time"),
        ("@lateness('1 sec') @lateness('2 sec')", "a stream has one @lateness"),
    ],
)
def test_a_wrong_lateness_is_told(head, message):
    with pytest.raises(AppError, match=message):
        compile_app(f"{head} {HEAD} from S select k insert into O;")


def test_rows_of_a_query_cannot_be_late():
    text = HEAD + "@lateness('1 sec') define stream O (k string); from S select k insert into O;"
    with pytest.raises(AppError, match="a query writes 'O': it cannot be late"):
        compile_app(text)
