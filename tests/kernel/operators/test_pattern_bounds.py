"""What a pattern keeps: at most so many matches, none that waits too long, and all counted."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.kernel_plans import kernel_of, runs
from tests.support.kernel_runs import START, STREAMS, data, engine, feed, play, rows

from edgewise.errors import AppError
from edgewise.kernel.operators.pattern_bounds import PRUNE_AFTER_MS
from edgewise.lang import compile_app

END = START + 10_000_000
SELECT = "select e1.v as a, e2.v as b insert into O;"
PAIR = f"from every e1=A -> e2=B[k == e1.k] {SELECT}"
EVENTS = st.lists(
    st.tuples(st.integers(0, 9), st.sampled_from("AAB"), st.sampled_from("xy"), st.integers(0, 3)),
    max_size=30,
).map(
    lambda steps: [
        (stream, START + sum(s[0] for s in steps[: i + 1]), k, v)
        for i, (_, stream, k, v) in enumerate(steps)
    ]
)
SHAPES = [
    PAIR,
    f"from every e1=A -> e2=B -> e3=B[v == e1.v] {SELECT}",
    f"from every (e1=A -> e2=B[v > e1.v]) {SELECT}",
    f"from every e1=A, e2=B[v > e1.v] {SELECT}",
    f"from every e1=A -> e2=B and e3=A[v == 3] {SELECT}",
    f"from every (e1=A and e3=B) -> e2=B[v == 3] {SELECT}",
    "from every e1=A<2:4> -> e2=B[v == 3] select e1[0].v as a, e2.v as b insert into O;",
    "from every e1=A -> e2=B<0:2> -> e3=B[v == 3] select e1.v as a, e3.v as b insert into O;",
    f"from every e1=A -> not B[v == 2] for 7 millisec -> e2=B[v == 3] {SELECT}",
    f"""partition with (k of A, k of B) begin
    @state({{}}) from every e1=A -> e2=B -> e3=B {SELECT} end;""",
]
LIMITS = ["limit='2'", "idle='15 millisec'", "limit='3', idle='9 millisec'"]


def bounded(shape, limits):
    declared = f"@state({limits})"
    return shape.replace("@state({})", declared) if "@state" in shape else f"{declared} {shape}"


@given(EVENTS, st.integers(1, 4))
def test_beyond_the_limit_the_longest_waiting_goes(events, limit):
    found = [row[2:] for row in play(f"@state(limit='{limit}') {PAIR}", events)]
    waiting, wanted = [], []
    for stream, _, k, v in events:
        if stream == "A":
            waiting = [*waiting, (k, v)][-limit:]
        else:
            wanted += [(a, v) for key, a in waiting if key == k]
            waiting = [(key, a) for key, a in waiting if key != k]
    assert found == wanted


@given(EVENTS, st.integers(0, 20))
def test_what_is_idle_too_long_goes(events, idle):
    found = [row[2:] for row in play(f"@state(idle='{idle} millisec') {PAIR}", events)]
    waiting, wanted = [], []
    for stream, ts, k, v in events:
        waiting = [w for w in waiting if ts - w[0] <= idle]
        if stream == "A":
            waiting.append((ts, k, v))
        else:
            wanted += [(a, v) for _, key, a in waiting if key == k]
            waiting = [w for w in waiting if w[1] != k]
    assert found == wanted


@given(st.sampled_from(SHAPES), st.sampled_from(LIMITS), EVENTS, st.integers(0, 30))
def test_a_snapshot_anywhere_changes_nothing(shape, limits, events, cut):
    text = bounded(shape, limits)
    whole = play(text, [*events, END])
    first, second = engine(text), engine(text)
    feed(first, events[:cut])
    second.kernel.restore([(k, s) for k, s in first.kernel.changed() if s is not None])
    second._clock, second._offset = first._clock, first._offset
    feed(second, [*events[cut:], END])
    assert rows(first) + rows(second) == whole


@given(st.sampled_from(SHAPES), EVENTS)
def test_a_limit_that_is_never_reached_changes_nothing(shape, events):
    free = shape.replace("@state({})", "")
    assert play(bounded(shape, "limit='1000', idle='1 day'"), events) == play(free, events)


@pytest.mark.parametrize("shape", [s for s in SHAPES if "partition" not in s])
@pytest.mark.parametrize("limits", ["limit='50'", "idle='50 millisec'"])
def test_state_stays_small_however_many_events_come(shape, limits):
    running = engine(bounded(shape, limits))
    sizes = []
    for i in range(4000):
        running.send("A" if i % 8 else "B", START + i, ["x", i % 2])
        running.take()
        if i % 1000 == 999:
            [(_, state)] = running.kernel.changed()
            sizes.append(len(state))
    assert max(sizes) < 30_000
    assert sizes[-1] < 2 * sizes[0]
    [query] = running.app.queries
    assert set(running.kernel.stats.dropped) <= {query.name}


def test_what_is_dropped_is_counted_by_query():
    running = engine(f"@info(name='pairs') @state(limit='10') {PAIR}")
    feed(running, [("A", START + i, "x", i) for i in range(25)])
    assert running.kernel.stats.dropped == {"pairs": 15}


def test_a_group_under_every_starts_again_when_its_match_is_dropped():
    text = f"@state(idle='10 millisec') from every (e1=A -> e2=B) {SELECT}"
    events = [("A", START, "x", 1), ("A", START + 50, "x", 2), ("B", START + 51, "x", 3)]
    assert data(text, events) == [(2, 3)]


KEYED = compile_app(
    "define stream S (k string, v int, p double); from every e1=S[v < 2] "
    "-> e2=S[v == 2 and k == e1.k] -> e3=S[v == 3 and k == e1.k] within 20 millisec "
    "select e1.k as k, e1.v as a, e2.v as b insert into O;"
).app
IDLE = compile_app(
    "define stream S (k string, v int, p double); @state(idle='20 millisec') "
    "from every e1=S[v < 2] -> e2=S[v == 2 and k == e1.k] -> e3=S[v == 3 and k == e1.k] "
    "select e1.k as k, e1.v as a, e2.v as b insert into O;"
).app


BESIDE = compile_app(
    "define stream S (k string, v int, p double); from every e1=S[v < 2] "
    "-> e2=S[v == 2 and k == e1.k] within 20 millisec select e1.k as k insert into O; "
    "from S[v == 9] select k insert into Q;"
).app


@pytest.mark.parametrize(
    ("app", "span"),
    [(KEYED, PRUNE_AFTER_MS + 40), (BESIDE, PRUNE_AFTER_MS + 40), (IDLE, 40)],
)
def test_keys_that_wait_for_nothing_any_more_are_gone(app, span):
    kernel = kernel_of(app, key=("k",))
    kept = set()
    for n in range(50):
        events = [(START + n * span + i, (f"k{n}.{i}", i % 3, None)) for i in range(20)]
        for run in runs(events):
            kernel.feed(run)
        for key, state in kernel.changed():
            (kept.discard if state is None else kept.add)(key)
        assert len(kept) <= 40
        assert len(kernel._rt.heap) <= 60


@given(
    st.lists(st.tuples(st.integers(0, 9), st.sampled_from("ab"), st.integers(0, 3)), max_size=30),
    st.integers(1, 3),
    st.sampled_from([KEYED, IDLE]),
)
def test_key_by_key_is_the_same_as_one_task(steps, spread, app):
    events = [
        (START + sum(s[0] for s in steps[: i + 1]), (k, v, None))
        for i, (_, k, v) in enumerate(steps)
    ]

    def through(kernels):
        for run in runs(events, range(len(events))):
            kernels[ord(run.columns[0][0]) % len(kernels)].feed(run)
        found = [row for kernel in kernels for row in kernel.take()]
        found.sort(key=lambda r: (r.clock, r.phase, r.offset, r.seq))
        return [(r.clock, r.offset, r.ts, r.data) for r in found]

    one = through([kernel_of(app)])
    assert through([kernel_of(app, key=("k",)) for _ in range(spread)]) == one


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ("limit='0'", "limit of @state must be 1 or more"),
        ("limit='many'", "limit of @state must be 1 or more"),
        ("idle='long'", "idle='long' is not a time"),
        ("size='3'", "@state has 'limit', 'idle' or both"),
    ],
)
def test_a_wrong_bound_is_told(limits, message):
    with pytest.raises(AppError, match=message):
        compile_app(f"{STREAMS} @state({limits}) {PAIR}")


def test_a_window_says_itself_what_it_keeps():
    with pytest.raises(AppError, match="@state bounds patterns"):
        compile_app(f"{STREAMS} @state(limit='3') from A#window.length(3) select v insert into O;")


def test_a_declared_bound_ends_the_warning():
    free, limited = (compile_app(STREAMS + text) for text in (PAIR, f"@state(limit='9') {PAIR}"))
    assert "@state(limit='1000')" in free.warnings[0].hint
    assert not limited.warnings
