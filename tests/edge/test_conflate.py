from hypothesis import given
from hypothesis import strategies as st

from edgewise.edge.conflate import Outbox
from edgewise.edge.topics import Policy, TopicTree
from edgewise.wire import codec, frames
from edgewise.wire.codes import Code
from edgewise.wire.view import Stopped, Update, View


class Bench:
    """A tree, one client's outbox and view, and a counter as the log."""

    def __init__(self, queue_max=1024, **policy):
        self.tree = TopicTree(100)
        self.policy = Policy(**policy)
        self.outbox = Outbox(queue_max, 10_000, 100)
        self.view = View()
        self.offset = 0
        self.value = {}

    def publish(self, name, value):
        topic = self.tree.get(name)
        self.value[name] = value
        if topic is None:
            topic = self.tree.create(name, self.policy)
            topic.change(0, self.offset + 1, self.offset, value)
            self.outbox.attach(topic, 1)
        else:
            change = topic.change(0, self.offset + 1, self.offset, value)
            self.outbox.offer(topic.slots[self.outbox], change)
        self.offset += 1

    def flush(self, bytes_max=1_000_000):
        events = [self.view.take(codec.decode_from_server(f)) for f in self.outbox.take(bytes_max)]
        return [e for e in events if e is not None]


def primed(names="ABC", **policy):
    bench = Bench(**policy)
    for name in names:
        bench.publish(name, {"v": 0})
    bench.flush()
    return bench


def test_a_newer_value_takes_the_place_of_the_first_pending_one():
    bench = primed()
    for name, value in [("A", 1), ("B", 1), ("C", 1), ("A", 2), ("C", 2)]:
        bench.publish(name, {"v": value})
    out = bench.flush()
    assert [(u.path, u.value["v"], u.meta.count) for u in out] == [
        ("A", 2, 2),
        ("B", 1, 1),
        ("C", 2, 2),
    ]


def test_what_may_not_be_conflated_goes_out_whole_and_in_order():
    bench = primed(conflate="off")
    for name, value in [("A", 1), ("B", 1), ("A", 2)]:
        bench.publish(name, {"v": value})
    assert [(u.path, u.value["v"]) for u in bench.flush()] == [("A", 1), ("B", 1), ("A", 2)]


def test_a_full_queue_pauses_the_topic_and_says_so_after_what_was_queued():
    bench = primed("A", conflate="off", queue_max=2)
    for value in range(1, 6):
        bench.publish("A", {"v": value})
    out = bench.flush()
    assert [u.value["v"] for u in out if isinstance(u, Update)] == [1, 2]
    assert out[-1] == Stopped("A", 1, Code.QUEUE_FULL, 0, 3)
    bench.publish("A", {"v": 6})
    assert bench.flush() == []


STEPS = st.lists(
    st.tuples(st.sampled_from("ABCD"), st.integers(0, 9)) | st.integers(1, 200), max_size=60
)


@given(STEPS)
def test_laws_of_replace(steps):
    """Depth is 0 or 1, nothing newer is behind something older, the end is the current state."""
    bench, seen, counted = Bench(), {}, {}
    published = dict.fromkeys("ABCD", 0)
    for step in [*steps, 10**9]:
        if isinstance(step, tuple):
            name, value = step
            bench.publish(name, {"v": value})
            published[name] += 1
        else:
            for update in bench.flush(step):
                assert update.meta.to > seen.get(update.path, 0)
                seen[update.path] = update.meta.to
                known = counted.get(update.path)
                # A snapshot stands for the state, not for what led to it.
                counted[update.path] = (
                    published[update.path] if known is None else known + update.meta.count
                )
                assert counted[update.path] <= published[update.path]
        assert bench.outbox.pending <= len(bench.value)
    assert {k: bench.view.value(k) for k in bench.value} == bench.value
    assert counted == {k: n for k, n in published.items() if n}


@given(STEPS, st.integers(1, 4))
def test_laws_of_off(steps, queue_max):
    """Each update comes once and in order until the topic is paused; the queue is bounded."""
    bench, got, sent = Bench(conflate="off", queue_max=queue_max), {}, {}
    paused = set()
    for step in [*steps, 10**9]:
        if isinstance(step, tuple):
            bench.publish(step[0], {"v": step[1]})
            sent.setdefault(step[0], []).append(bench.offset)
        else:
            for event in bench.flush(step):
                if isinstance(event, Stopped):
                    paused.add(event.path)
                else:
                    assert event.path not in paused
                    got.setdefault(event.path, []).append(event.meta.to)
        assert bench.outbox.pending <= 4 * (queue_max + 2)
    for path, offsets in got.items():
        first = sent[path].index(offsets[0])
        assert offsets == sent[path][first : first + len(offsets)]
        assert path in paused or offsets[-1] == sent[path][-1]


def test_a_write_is_bounded_and_nothing_is_lost_between_writes():
    bench = Bench()
    for i in range(50):
        bench.publish(f"t{i}", {"v": "x" * 100})
    total = 0
    while bench.outbox:
        frames_out = bench.outbox.take(500)
        assert sum(map(len, frames_out)) < 500 + 300
        total += len(frames_out)
    assert total == 100  # TOPIC and VALUE each


def test_detaching_drops_what_is_pending_and_tells_only_what_was_told():
    bench = primed("A", conflate="off")
    topic = bench.tree.get("A")
    bench.publish("A", {"v": 1})
    bench.outbox.detach(topic, frames.Gone.REMOVED)
    assert [type(e).__name__ for e in bench.flush()] == ["Removed"]
    fresh = Bench()
    fresh.publish("A", {"v": 1})
    fresh.outbox.detach(fresh.tree.get("A"), frames.Gone.REMOVED)
    assert fresh.outbox.take(1000) == []


def test_answers_that_are_not_read_overflow():
    outbox = Outbox(10, 100, 10)
    outbox.say(b"x" * 101)
    assert outbox.overflowed


def test_a_session_sees_a_bounded_number_of_topics_and_is_told_once():
    bench = Bench()
    bench.outbox.topics_max = 1
    for name in "ABC":
        topic = bench.tree.create(name, bench.policy)
        topic.change(0, 1, 1, {})
        bench.outbox.attach(topic, 5)
    decoded = [codec.decode_from_server(f) for f in bench.outbox.take(10_000)]
    errors = [f for f in decoded if isinstance(f, frames.Error)]
    assert [(e.id, e.code) for e in errors] == [(5, Code.TOO_MANY_TOPICS)]
    assert sum(isinstance(f, frames.Value) for f in decoded) == 1
