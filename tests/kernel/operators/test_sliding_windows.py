import pytest
from tests.support.kernel_runs import engine, feed, play, rows

from edgewise.kernel.operators.batch_windows import TimeBatch
from edgewise.kernel.operators.sliding_windows import Length, Time
from edgewise.kernel.runtime import FIRST_CELL, Runtime

C, X, R = 0, 1, 2


class Bench:
    """A window alone with a runtime."""

    def __init__(self, kind, *args):
        self.rt = Runtime(keyed=False)
        self.window = kind(self.rt, 0, FIRST_CELL, *args)
        self.rt.fresh = lambda: [self.window.fresh()]
        self.rt.nodes = [self.window_timer]
        self.state = self.rt.state(())
        self.out = []
        self.offset = 0

    def window_timer(self, state, due, payload):
        self.window.timer(state, due, payload, self.out)

    def push(self, ts, row):
        self.rt.fire(ts, 0)
        self.rt.begin(max(ts, self.rt.now), 1, self.offset, 0)
        self.offset += 1
        self.window.push(self.state, ts, (row,), self.out)

    def chunk(self):
        out, self.out[:] = list(self.out), []
        return [(kind, ts, row[0]) for kind, ts, row in out]

    def content(self):
        return [row[0] for _, row in self.window.content(self.state)]


def test_length_expires_just_before_the_one_that_pushes():
    bench = Bench(Length, 2)
    for ts, row in ((1, "a"), (2, "b"), (3, "c")):
        bench.push(ts, row)
    assert bench.chunk() == [(C, 1, "a"), (C, 2, "b"), (X, 3, "a"), (C, 3, "c")]
    assert bench.content() == ["b", "c"]


def test_length_zero_holds_nothing():
    bench = Bench(Length, 0)
    bench.push(1, "a")
    assert [kind for kind, _, _ in bench.chunk()] == [C, X, R]


def test_time_expires_at_the_boundary_and_late_events_wait_behind():
    bench = Bench(Time, 100)
    bench.push(1000, "a")
    bench.push(950, "late")
    bench.push(1040, "b")
    bench.chunk()
    bench.rt.fire(1099, 0)
    assert bench.chunk() == []
    bench.rt.fire(1100, 0)
    assert bench.chunk() == [(X, 1100, "a"), (X, 1100, "late")]
    assert bench.content() == ["b"]


def test_time_batch_emits_the_last_batch_a_reset_and_this_one():
    bench = Bench(TimeBatch, 100)
    bench.push(1000, "a")
    bench.push(1100, "b")
    assert bench.chunk() == [(R, 1100, "a"), (C, 1000, "a")]
    bench.rt.fire(1200, 0)
    assert bench.chunk() == [(X, 1200, "a"), (R, 1200, "b"), (C, 1100, "b")]
    bench.rt.fire(1400, 0)
    assert bench.chunk() == [(X, 1300, "b")]


def test_time_batch_aligned_and_streaming():
    bench = Bench(TimeBatch, 100, 30, True)
    bench.push(1000, "a")
    assert bench.chunk() == [(C, 1000, "a")]
    bench.rt.fire(1030, 0)
    assert bench.chunk() == [(X, 1030, "a"), (R, 1030, "a")]


def test_keys_too_weak_to_stay_leave_in_the_order_of_a_java_map():
    query = "from A#window.frequent(2, k) select k insert all events into O;"
    events = [("A", 1000, k, 1) for k in ("user0", "user1", "z")]
    assert [row[1:] for row in play(query, events)] == [
        ("+", "user0"), ("+", "user1"), ("-", "user1"), ("-", "user0"), ("+", "z"),
    ]  # fmt: skip


@pytest.mark.parametrize("window", ["externalTime(v, 10)", "externalTimeBatch(v, 10)"])
def test_an_event_without_its_own_time_is_counted_and_dropped(window):
    query = f"from A#window.{window} select count() as n insert into O;"
    running = engine(query, "define stream A (k string, v long); ")
    feed(running, [("A", 1000, "x", v) for v in (1, None, 5, None, 25)])
    assert [row[2] for row in rows(running)][-1] == (1 if window[12] == "(" else 2)
    assert running.kernel.stats.faults == {"(no time)": 2}
