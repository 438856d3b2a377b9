"""`insert timeout events`: what began and came to nothing, told when its time is over."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.kernel_plans import kernel_of
from tests.support.kernel_plans import runs as runs_of_s
from tests.support.kernel_runs import START, STREAMS, engine, feed, play, rows

from edgewise.errors import AppError
from edgewise.lang import compile_app

WITHIN, END = 20, START + 10_000
TAIL = "within 20 millisec select e1.k as k, e1.v as a, e2.v as b insert timeout events into O;"
PAIR = f"from every e1=A -> e2=B[k == e1.k] {TAIL}"
EVENTS = st.lists(
    st.tuples(
        st.integers(0, 12),
        st.sampled_from("AB"),
        st.sampled_from("xy"),
        st.integers(0, 3),
    ),
    max_size=25,
).map(
    lambda steps: [
        (stream, START + sum(s[0] for s in steps[: i + 1]), k, v)
        for i, (_, stream, k, v) in enumerate(steps)
    ]
)
SHAPES = [
    PAIR,
    f"from every e1=A -> e2=B -> e3=A[v == e1.v] {TAIL}",
    f"from every (e1=A -> e2=B[v > e1.v]) {TAIL}",
    f"from e1=A -> e2=B[v > e1.v] {TAIL}",
    f"from every e1=A, e2=B {TAIL}",
    f"from every e1=A, e2=B+, e3=A[v == 9] {TAIL}",
    f"from every e1=A -> e2=B and e3=A[v == 3] {TAIL}",
    f"from every (e1=A or e2=B) -> e3=A[v == 3] {TAIL}",
    f"from every e1=A -> not B[v == 2] for 7 millisec -> e2=B[v == 3] {TAIL}",
    f"from every e1=A -> e2=B[v == 3] and not A[v == 0] {TAIL}",
    """from every e1=A<2:3> -> e2=B[v == 3] within 20 millisec
    select e1[0].v as a, e1[1].v as b, e2.v as c insert timeout events into O;""",
    f"partition with (k of A, k of B) begin from every e1=A -> e2=B -> e3=B {TAIL} end;",
]


@given(EVENTS)
def test_a_and_no_b_within_the_time_is_told_once_at_its_due_time(events):
    found = play(PAIR, [*events, END])
    wanted = []
    for i, (stream, ts, k, v) in enumerate(events):
        if stream == "A" and not any(
            e[0] == "B" and e[2] == k and e[1] <= ts + WITHIN for e in events[i + 1 :]
        ):
            wanted.append((ts + WITHIN + 1, "+", k, v, None))
    assert found == sorted(wanted, key=lambda row: row[0])


@given(EVENTS)
def test_what_begins_ends_as_a_match_or_as_a_timeout(events):
    shape = "from every e1=A -> e2=B -> e3=A[v == e1.v] within 20 millisec"
    numbered = [(s, ts, k, n if s == "A" else v) for n, (s, ts, k, v) in enumerate(events)]
    both = (
        f"{shape} select e1.v as a insert into O; "
        f"{shape} select e1.v as a insert timeout events into O;"
    ).replace("v == e1.v", "v > e1.v")
    found = [row[2] for row in play(both, [*numbered, END])]
    assert sorted(found) == [v for s, _, _, v in numbered if s == "A"]


@given(st.sampled_from(SHAPES), EVENTS, st.integers(0, 25))
def test_a_snapshot_anywhere_changes_nothing(shape, events, cut):
    whole = play(shape, [*events, END])
    first, second = engine(shape), engine(shape)
    feed(first, events[:cut])
    second.kernel.restore([(k, s) for k, s in first.kernel.changed() if s is not None])
    second._clock, second._offset = first._clock, first._offset
    feed(second, [*events[cut:], END])
    assert rows(first) + rows(second) == whole


@given(st.sampled_from(SHAPES), EVENTS)
def test_no_match_stays_behind(shape, events):
    """When all is over the state is as large as when one event is over."""
    running = engine(shape)
    feed(running, [*events, END])
    assert not running.kernel._rt.heap
    once = engine(shape)
    feed(once, [*events[:1], END])
    [(_, state)] = running.kernel.changed()
    [(_, least)] = once.kernel.changed()
    assert len(state) < len(least) + 300 * 2  # at most one instance of a partition more


ROWS = st.lists(
    st.tuples(st.integers(0, 9), st.sampled_from("ab"), st.integers(0, 3)), max_size=20
).map(
    lambda steps: [
        (START + sum(s[0] for s in steps[: i + 1]), (k, v, None))
        for i, (_, k, v) in enumerate(steps)
    ]
)
KEYED = compile_app(
    "define stream S (k string, v int, p double); "
    "from every e1=S[v < 2] -> e2=S[v == 2 and k == e1.k] -> e3=S[v == 3 and k == e1.k] "
    "within 20 millisec select e1.k as k, e1.v as a, e2.v as b insert timeout events into O;"
).app


@given(ROWS, st.integers(1, 3))
def test_key_by_key_is_the_same_as_one_task(events, spread):
    def through(kernels):
        for run in runs_of_s(events, range(len(events))):
            kernels[ord(run.columns[0][0]) % len(kernels)].feed(run)
        found = []
        for kernel in kernels:
            kernel.advance(END, 0)
            found += kernel.take()
        found.sort(key=lambda r: (r.clock, r.phase, r.offset, r.seq))
        return [(r.clock, r.offset, r.ts, r.data) for r in found]

    one = through([kernel_of(KEYED)])
    assert through([kernel_of(KEYED, key=("k",)) for _ in range(spread)]) == one


def test_timeouts_can_be_counted_and_change_tables():
    counted = f"from every e1=A -> e2=B {TAIL}".replace(
        "select e1.k as k, e1.v as a, e2.v as b", "select e1.k as k, count() as n group by e1.k"
    )
    events = [("A", START, "x", 1), ("A", START + 1, "x", 2), ("A", START + 1, "y", 3), END]
    assert [row[2:] for row in play(counted, events)] == [("x", 1), ("x", 2), ("y", 1)]
    table = (
        "from A select k insert into T; "
        "from every e1=A -> e2=B within 20 millisec select e1.k as k "
        "delete T for timeout events on T.k == k; from B[k == T.k in T] select k insert into O;"
    )
    head = STREAMS + "define table T (k string); "
    asked = [("A", START, "x", 1), ("B", START + 5, "x", 1), ("A", START + 6, "y", 1),
             ("B", START + 50, "x", 1), ("B", START + 51, "y", 1)]  # fmt: skip
    assert [row[2:] for row in play(table, asked, head)] == [("x",), ("x",)]


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("from A select v insert timeout events into O;", "only patterns and sequences"),
        ("from A#window.length(2) select v insert timeout events into O;", "only patterns"),
        (
            "from every e1=A -> e2=B select e1.v as v insert timeout events into O;",
            "a pattern without 'within' never times out",
        ),
        (
            "from every not A for 1 sec -> e2=B within 2 sec insert timeout events into O;",
            "begins with an absence",
        ),
    ],
)
def test_what_never_times_out_is_refused(query, message):
    with pytest.raises(AppError, match=message):
        compile_app(STREAMS + query)


def test_named_windows_have_no_timeouts():
    with pytest.raises(AppError, match="'all events', 'expired events' or 'current events'"):
        compile_app("define window W (v int) length(2) output timeout events;")
