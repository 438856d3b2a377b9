"""The laws of a kernel: cuts and keys change nothing; windows equal brute force."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.kernel_plans import (
    AVG,
    COUNT,
    MAX,
    MIN,
    SUM,
    K,
    P,
    V,
    app_of,
    greater,
    kernel_of,
    ordered,
    out,
    plain,
    query,
    runs,
    window,
)

from edgewise.errors import AppError
from edgewise.event.types import AttrType
from edgewise.lang import compile_app
from edgewise.plan.functions import FUNCTIONS, same, scalar
from edgewise.plan.nodes import EventType, OrderBy

ROWS = st.tuples(
    st.sampled_from(["a", "b", "c", None]),
    st.none() | st.integers(-5, 9),
    st.none() | st.sampled_from([0.5, 1.25, -3.0]),
)
EVENTS = st.lists(st.tuples(st.integers(0, 60), ROWS), max_size=25).map(
    lambda events: [(1000 + sum(gap for gap, _ in events[: i + 1]), row)
                    for i, (_, row) in enumerate(events)]
)  # fmt: skip
LATE_EVENTS = st.lists(st.tuples(st.integers(1000, 1300), ROWS), max_size=25)
ALL_AGGREGATES = {"k": K, "n": COUNT, "s": SUM, "a": AVG, "lo": MIN, "hi": MAX}
WINDOWS = st.sampled_from([
    None, window("time", 100), window("length", 3), window("length", 0), window("timeBatch", 70),
])  # fmt: skip
CHAIN = [
    query({"k": K, "v": V, "p": P}, name="up", into="M", where=[greater(V, 0)]),
    query({"k": K, "n": COUNT, "s": SUM}, name="mid", source="M", win=window("time", 90),
          group=[K]),
    query({"k": K, "hi": MAX}, name="side", source="M", win=window("timeBatch", 50), group=[K],
          into="Z", having=greater(out("hi"), 2)),
]  # fmt: skip
JOINED = "select a.v as x, b.p as y insert into O;"
TEXTS = [
    f"from S#window.lengthBatch(2) as a join S#window.time(50) as b on a.v == b.v {JOINED}",
    f"from S#window.timeBatch(40, 0, true) as a join S as b on a.v == b.v {JOINED}",
    "from S#window.expressionBatch('count() < 3', true) select v insert all events into O;",
    """from S select v, ifThenElse(v > 3, 'count() < 4', 'count() < 2') as c insert into M;
    from M#window.expressionBatch(c) select v insert all events into O;
    from M#window.expressionBatch(c, false, true) select v insert all events into Z;""",
    "from S#window.session(30, k, 20) select v insert all events into O;",
    "from S#window.batch(2) select v insert all events into O;",
    """from S#window.time(90) select k, v, sum(v) as s group by k
    output snapshot every 40 milliseconds insert into O;""",
]
HEAD = "define stream S (k string, v int, p double); "
APPS = st.one_of(
    st.sampled_from([compile_app(HEAD + text).app for text in TEXTS]),
    WINDOWS.map(lambda w: app_of(query(ALL_AGGREGATES, win=w, group=[K]))),
    WINDOWS.map(lambda w: app_of(query(ALL_AGGREGATES, win=w))),
    WINDOWS.map(lambda w: app_of(query({"k": K, "v": V}, win=w))),
    st.just(app_of(*CHAIN)),
)
PAIRS = [
    (
        "from every e1=S[v > 3] -> e2=S[v < e1.v and k == e1.k] within 80 milliseconds "
        "select e1.v as x, e2.p as y insert into O;"
    ),
    (
        "partition with (k of S) begin from every e1=S[v > 3] -> e2=S[v < 5] "
        "select e1.v as x, e2.p as y insert into O; end;"
    ),
    (
        "partition with (k of S) begin from every e1=S[v > 1], e2=S[v > 1]+, e3=S[v < 3] "
        "within 80 milliseconds select e1.v as x, e3.p as y insert into O; end;"
    ),
    (
        "partition with (k of S) begin from e1=S[v > 1], e2=S[v < 3] "
        "select e1.v as x, e2.p as y insert into O; end;"
    ),
]
THREE = (
    "from every e1=S[v > 3] -> e2=S[k == e1.k and v < 5] -> e3=S[k == e1.k and v > 1] "
    "within 80 milliseconds select e1.v as x, e2.p as y, e3.v as z insert into O;"
)
KEYED = [
    app_of(query(ALL_AGGREGATES, win=window("time", 100), group=[K])),
    app_of(query(ALL_AGGREGATES, group=[K], events=EventType.CURRENT)),
    app_of(CHAIN[0], CHAIN[1]),
    *(compile_app(HEAD + text).app for text in (*PAIRS, THREE)),
]
END = 10_000


def run_through(kernel, events, cuts=()):
    for run in runs(events, cuts):
        kernel.feed(run)
    kernel.advance(END, 77)
    return kernel.take()


@given(APPS | st.sampled_from(KEYED), EVENTS | LATE_EVENTS, st.sets(st.integers(0, 24)))
def test_rows_do_not_depend_on_where_runs_are_cut(app, events, cuts):
    cuts = {c for c in cuts if c < len(events)}
    assert run_through(kernel_of(app), events, cuts) == run_through(kernel_of(app), events)


@given(st.sampled_from(KEYED), EVENTS | LATE_EVENTS, st.integers(1, 3))
def test_many_keyed_kernels_give_what_one_gives(app, events, spread):
    one = run_through(kernel_of(app), events)
    kernels = [kernel_of(app, key=("k",)) for _ in range(spread)]
    for run in runs(events, range(len(events))):
        position = hash(run.columns[0][0]) % spread
        kernels[position].feed(run)
    rows = []
    for kernel in kernels:
        kernel.advance(END, 77)
        rows += kernel.take()
    assert plain(ordered(rows)) == plain(one)


@given(APPS, EVENTS | LATE_EVENTS)
def test_rows_come_out_in_the_one_true_order(app, events):
    rows = run_through(kernel_of(app), events)
    positions = [(r.clock, r.phase, r.offset, r.seq) for r in rows]
    assert positions == sorted(set(positions))


@pytest.mark.parametrize("text", PAIRS)
def test_patterns_by_the_key_of_their_fragment_run_in_straight_lines(text):
    kernel = kernel_of(compile_app(HEAD + text).app, key=("k",))
    assert "dirty.add(" in kernel.source
    run_through(kernel, [(1000, ("a", 9, None)), (1001, ("b", 9, None))])
    assert len(list(kernel.changed())) == 2
    run_through(kernel, [(1002, ("b", 9, None))])
    assert len(list(kernel.changed())) == 1  # only what was touched is written


def brute(rows):
    values = [v for _, v, _ in rows if v is not None]
    numbers = [p for _, _, p in rows if p is not None]
    return (
        len(rows),
        sum(values) if values else None,
        sum(numbers) / len(numbers) if numbers else None,
        min(values, default=None),
        max(values, default=None),
    )


@given(EVENTS, st.integers(1, 4))
def test_a_length_window_equals_recomputation(events, n):
    app = app_of(query(ALL_AGGREGATES, win=window("length", n), events=EventType.CURRENT))
    rows = run_through(kernel_of(app), events)
    for i, row in enumerate(rows):
        assert row.data[1:] == brute([r for _, r in events[max(0, i + 1 - n) : i + 1]])


@given(EVENTS)
def test_a_time_window_grouped_equals_recomputation(events):
    app = app_of(
        query(ALL_AGGREGATES, win=window("time", 100), group=[K], events=EventType.CURRENT)
    )
    rows = run_through(kernel_of(app), events)
    for i, row in enumerate(rows):
        now, (key, _, _) = events[i]
        inside = [r for ts, r in events[: i + 1] if r[0] == key and ts > now - 100]
        assert row.data == (key, *brute(inside))


@given(EVENTS)
def test_time_batches_equal_recomputation(events):
    app = app_of(query(ALL_AGGREGATES, win=window("timeBatch", 70), events=EventType.CURRENT))
    rows = run_through(kernel_of(app), events)
    start = events[0][0] if events else 0
    batches = {}
    for ts, row in events:
        batches.setdefault((ts - start) // 70, []).append(row)
    expected = [(start + 70 * (n + 1), brute(batch)) for n, batch in sorted(batches.items())]
    assert [(r.clock, r.data[1:]) for r in rows] == expected


def test_expired_rows_show_the_aggregate_after_the_subtraction():
    kernel = kernel_of(app_of(query({"n": COUNT, "s": SUM}, win=window("time", 100))))
    rows = run_through(kernel, [(1000, ("a", 4, None)), (1050, ("a", 5, None))])
    assert plain(rows) == [
        ("O", 1000, 0, (1, 4)),
        ("O", 1050, 0, (2, 9)),
        ("O", 1100, 1, (1, 5)),
        ("O", 1150, 1, (0, None)),
    ]


def test_a_timer_row_is_captured_when_time_moved():
    kernel = kernel_of(app_of(query({"n": COUNT}, win=window("time", 100))))
    rows = run_through(kernel, [(1000, ("a", 4, None))])
    assert [(r.clock, r.phase, r.at) for r in rows] == [(1000, 1, 0), (1100, 0, 77)]


def test_order_by_and_limit_act_inside_one_chunk():
    app = app_of(
        query(
            {"k": K, "n": COUNT}, win=window("timeBatch", 100), group=[K],
            events=EventType.CURRENT, order_by=(OrderBy(out("n"), descending=True),
            OrderBy(out("k", AttrType.STRING))), limit=2, offset=1,
        )
    )  # fmt: skip
    events = [(1000, (k, 1, None)) for k in "bacabad"]
    assert [r.data for r in run_through(kernel_of(app), events)] == [("b", 2), ("c", 1)]


def test_a_window_that_is_not_known_is_the_authors_problem():
    with pytest.raises(AppError, match="the window 'moon' is not known"):
        kernel_of(app_of(query({"k": K}, win=window("moon", 1))))


def test_the_rows_of_a_query_itself_can_be_asked_for():
    kernel = kernel_of(app_of(query({"k": K})), taps=["q"])
    rows = run_through(kernel, [(1000, ("a", 1, None))])
    assert [r.stream for r in rows] == ["@q", "O"]


def refuse_odd(value):
    if value % 2:
        raise ValueError(f"{value} is odd")
    return value


@pytest.mark.parametrize("action", ["", "LOG", "STREAM"])
@given(events=EVENTS.map(lambda events: [e for e in events if e[1][1] is not None]))
def test_what_fails_is_counted_and_goes_where_the_author_said(action, events):
    text = "from S[my:even(v) > 2] select v insert into O; "
    faults = "from !S[v > 0] select v, _error insert into F;" if action == "STREAM" else ""
    even = scalar("my:even", (AttrType.INT,), returns=same, python=refuse_odd)
    head = f"@OnError(action='{action}') {HEAD}" if action else HEAD
    app = compile_app(head + text + faults, functions=FUNCTIONS.with_(even)).app
    kernel = kernel_of(app)
    found = run_through(kernel, events)
    values = [row[1] for _, row in events]
    odd = [v for v in values if v % 2]
    assert [r.data for r in found if r.stream == "O"] == [
        (v,) for v in values if v > 2 and v % 2 == 0
    ]
    told = [(v, f"{v} is odd") for v in odd if v > 0] if faults else []
    assert [r.data for r in found if r.stream == "F"] == told
    assert kernel.stats.faults.get("S", 0) == len(odd)


def test_what_fails_when_a_timer_fires_is_counted_and_the_rest_goes_on():
    text = (
        "from S#window.time(1 sec) select my:even(v) as v insert expired events into O; "
        "from S select v insert into P;"
    )
    even = scalar("my:even", (AttrType.INT,), returns=same, python=refuse_odd)
    kernel = kernel_of(compile_app(HEAD + text, functions=FUNCTIONS.with_(even)).app)
    found = run_through(kernel, [(1000, ("a", 2, None)), (1100, ("a", 4, None))])
    kernel.advance(5000, 0)
    assert [r.data for r in (*found, *kernel.take()) if r.stream == "O"] == [(2,), (4,)]
    assert kernel.stats.faults == {}
    run_through(kernel, [(6000, ("a", 3, None)), (9000, ("a", 4, None))])
    assert kernel.stats.faults == {"(timer)": 1}
