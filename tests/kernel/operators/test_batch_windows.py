import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.kernel_plans import kernel_of
from tests.support.kernel_runs import data, engine, feed, play, rows

from edgewise.kernel.api import EventRun
from edgewise.kernel.operators.batch_windows import TimeBatch
from edgewise.kernel.operators.rate_limits import LIMITS
from edgewise.lang import compile_app

HEAD = "define stream A (k string, v int); define stream B (k string, v int); "

V = "from A#window.{} select v insert all events into O;"


def marks(window, events):
    return [(row[1], row[2]) for row in play(V.format(window), events)]


def a(*stamps):
    return [("A", 1000 + t, "x", t) for t in stamps]


def test_a_full_batch_pushes_the_last_one_out():
    assert marks("lengthBatch(2)", a(1, 2, 3, 4)) == [
        ("+", 1), ("+", 2), ("-", 1), ("-", 2), ("+", 3), ("+", 4),
    ]  # fmt: skip


def test_a_streaming_batch_lets_each_event_pass():
    assert marks("lengthBatch(2, true)", a(1, 2, 3)) == [
        ("+", 1), ("+", 2), ("-", 1), ("-", 2), ("+", 3),
    ]  # fmt: skip


def test_hopping_batches_overlap():
    rows = marks("hopping(20 milliseconds, 10 milliseconds)", [*a(1, 12), 1060])
    assert [v for mark, v in rows if mark == "+"] == [1, 1, 12, 12]


def test_an_expression_closes_a_batch():
    assert marks("expressionBatch('count() < 3')", a(1, 2, 3, 4, 5))[:4] == [
        ("+", 1), ("+", 2), ("-", 1), ("-", 2),
    ]  # fmt: skip


def test_a_condition_that_includes_its_event_counts_it_again():
    assert marks("expressionBatch('count() < 3', true)", a(1, 2, 3, 4, 5)) == [
        ("+", 1), ("+", 2), ("+", 3), ("-", 1), ("-", 2), ("-", 3), ("+", 4), ("+", 5),
    ]  # fmt: skip


def test_an_event_no_batch_can_hold_comes_and_goes():
    query = "from A#window.expressionBatch('count() < 1') select v, max(v) as m insert into O;"
    assert data(query, a(1, 2)) == [(1, 1), (2, 2)]


def test_a_new_condition_judges_again_what_is_held():
    head = "define stream T (v int, c string); "
    query = "from T#window.expressionBatch(c{}) select v insert all events into O;"
    texts = ["count() < 9"] * 3 + ["count() < 2"] * 2
    events = [("T", 1000 + v, v, text) for v, text in enumerate(texts)]
    whole = play(query.format(""), events, head)
    assert [row[2] for row in whole if row[1] == "+"] == [0, 1, 2, 3]
    passing = play(query.format(", false, true"), events, head)
    assert [(row[1], row[2]) for row in passing[3:]] == [
        ("-", 0), ("-", 1), ("-", 2), ("+", 3), ("-", 3), ("+", 4),
    ]  # fmt: skip


def test_an_event_whose_condition_cannot_be_read_is_counted_and_dropped():
    head = "define stream T (v int, c string); "
    running = engine("from T#window.expressionBatch(c, true) select v insert into O;", head)
    feed(running, [("T", 1000 + v, v, c) for v, c in enumerate(("v", "v <", "v < 3", "v < 3"))])
    assert [row[2] for row in rows(running)] == [2, 3]
    assert running.kernel.stats.faults == {"T": 2}


@given(st.lists(st.integers(1, 7), max_size=6), st.integers(1, 4))
def test_slices_push_out_the_chunk_before_whole(sizes, n):
    running = engine(V.format(f"batch({n})"))
    expected, before = [], []
    for i, size in enumerate(sizes):
        chunk = [10 * i + j for j in range(size)]
        running.send_chunk("A", [(1000 + i, ("x", v)) for v in chunk])
        slices = [chunk[j : j + n] for j in range(0, size, n)]
        expected += [("-", v) for v in before] + [("+", v) for s in slices for v in s]
        before = chunk
    assert [(row[1], row[2]) for row in rows(running)] == expected


def test_a_batch_of_time_begins_with_the_clock_however_late_its_first_event_is():
    query = "from A#window.timeBatch(100) select v insert into O;"
    found = play(
        query, [("B", 1500, "x", 0), ("A", 1200, "x", 1), 1599, ("A", 1599, "x", 2), 1600]
    )
    assert [row[2] for row in found] == [1, 2]


TICKING = [
    "from A#window.timeBatch(20) select v, count() as n insert all events into O;",
    "from A#window.timeBatch(20, 3) select k, sum(v) as n group by k insert into O;",
    "from A#window.timeBatch(20, 0, true) select v, sum(v) as n insert all events into O;",
    (
        "from A#window.delay(20) select k, v insert into M; from M#window.timeBatch(20) "
        "select v insert all events into O;"
    ),
    (
        "from A#window.timeBatch(20) select k, v insert into M; from M#window.timeBatch(20) "
        "select v, count() as n insert all events into O;"
    ),
    (
        "from A#window.time(20) select k, v insert expired events into M; "
        "from M#window.timeBatch(10) select v insert all events into O;"
    ),
    (
        "from A#window.timeBatch(20) as a join B#window.timeBatch(30) as b on a.k == b.k "
        "select a.v as x, b.v as y insert all events into O;"
    ),
    (
        "partition with (v < 3 as 'few' or v > 1 as 'many' of A) begin "
        "from A#window.timeBatch(20) select k, v, count() as n insert all events into O; end;"
    ),
    "partition with (k of A) begin from A#window.timeBatch(20) select v insert into O; end;",
    "from A select v output all every 20 milliseconds insert into O;",
    "from A select k, v group by k output last every 20 milliseconds insert into O;",
    "from A#window.time(15) select k, v output snapshot every 20 milliseconds insert into O;",
    (
        "from A#window.time(15) select k, count() as n group by k output snapshot every "
        "10 milliseconds insert into O;"
    ),
    (
        "partition with (v < 3 as 'few' or v > 1 as 'many' of A) begin from A select k, v "
        "output all every 20 milliseconds insert into O; end;"
    ),
]
MOMENTS = st.tuples(
    st.sampled_from("AB"),
    st.sampled_from([0, 1, 5, 10, 19, 20, 40, 300]),  # after the one before
    st.sampled_from(["x", "y"]),
    st.integers(0, 4),
)


@given(st.sampled_from(TICKING), st.lists(MOMENTS, max_size=15), st.integers(0, 15))
def test_what_sleeps_while_it_has_nothing_to_say_says_the_same(query, steps, cut):
    """Against the same that ticks for ever; with a snapshot in between."""
    app = compile_app(HEAD + query).app
    now, events = 1000, []
    for offset, (stream, later, key, value) in enumerate(steps):
        now += later
        events.append(EventRun(stream, [now], [[key], [value]], [offset], [now], [0]))

    def found():
        kernel, made = kernel_of(app), []
        for n, run in enumerate(events):
            if n == cut:
                made += kernel.take_tuples()
                states = [(k, s) for k, s in kernel.changed() if s is not None]
                kernel = kernel_of(app)
                kernel.restore(states)
            kernel.feed(run)
        kernel.advance(now + 500, 0)
        return made + kernel.take_tuples()

    asleep = found()
    with pytest.MonkeyPatch.context() as patch:
        for kind in (TimeBatch, *LIMITS.values()):
            patch.setattr(kind, "rests", lambda *_: False)
        assert asleep == found()


@pytest.mark.timeout(60)  # tick by tick it would take hours
@pytest.mark.parametrize("query", TICKING)
def test_time_may_leap_by_years(query):
    """A device that has lost its clock starts in 1970."""
    kernel, leap = kernel_of(compile_app(HEAD + query).app), 50 * 365 * 86_400_000
    for offset, ts in enumerate((1000, 1001, leap, leap + 1)):
        kernel.feed(EventRun("A", [ts], [["x"], [2]], [offset], [ts], [0]))
    kernel.advance(2 * leap, 0)
    assert len(kernel.take_tuples()) < 100
