from hypothesis import given
from hypothesis import strategies as st

from edgewise.edge.sessions.budget import Budget
from edgewise.edge.sessions.outbox import Outbox
from edgewise.edge.sessions.scheduler import Scheduler
from edgewise.edge.sessions.subscription import Preference
from edgewise.edge.topics.merges import MergeRegistry, window_merge
from edgewise.edge.topics.tree import Policy, TopicTree
from edgewise.wire import codec, frames
from edgewise.wire.codes import ProtocolCode
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
        self.now = 0

    def publish(self, name, value):
        topic = self.tree.get(name)
        self.value[name] = value
        if topic is None:
            topic = self.tree.create(
                name, self.policy, MergeRegistry().parse(self.policy.conflate)
            )
            topic.change(0, self.offset + 1, self.offset, value)
            self.outbox.attach(topic, 1)
        else:
            change = topic.change(0, self.offset + 1, self.offset, value)
            self.outbox.offer(topic.subscriptions[self.outbox], change, self.now)
        self.offset += 1

    def flush(self, bytes_max=1_000_000):
        events = [
            self.view.take(codec.decode_from_server(f))
            for f in self.outbox.take(bytes_max, self.now)
        ]
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
        assert bench.outbox.scheduler.count() <= len(bench.value)
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
        assert bench.outbox.scheduler.count() <= 4 * (queue_max + 2)
    for path, offsets in got.items():
        first = sent[path].index(offsets[0])
        assert offsets == sent[path][first : first + len(offsets)]
        assert path in paused or offsets[-1] == sent[path][-1]


def test_a_write_is_bounded_and_nothing_is_lost_between_writes():
    bench = Bench()
    for i in range(50):
        bench.publish(f"t{i}", {"v": "x" * 100})
    total = 0
    while bench.outbox.ready(0):
        frames_out = bench.outbox.take(500, 0)
        assert sum(map(len, frames_out)) < 500 + 300
        total += len(frames_out)
    assert total == 100  # TOPIC and VALUE each


def test_under_sum_pending_values_add_up_in_the_first_ones_place():
    bench = primed(conflate="merge(sum)")
    for name, value in [("A", 1), ("B", 10), ("C", 100), ("A", 2), ("C", 200)]:
        bench.publish(name, {"v": value})
    assert [(u.path, u.value["v"], u.meta.count) for u in bench.flush()] == [
        ("A", 3, 2),
        ("B", 10, 1),
        ("C", 300, 2),
    ]
    assert not any(t.folds for t in bench.tree)


@given(STEPS)
def test_laws_of_merge(steps):
    """Snapshot plus everything that followed is the fold of all inputs; folds are let go."""
    bench, total, held = Bench(conflate="merge(sum)"), {}, {}
    for step in [*steps, 10**9]:
        if isinstance(step, tuple):
            name, value = step
            bench.publish(name, {"v": value})
            total[name] = total.get(name, 0) + value
        else:
            for u in bench.flush(step):
                fresh = u.meta.how is frames.How.SNAPSHOT
                held[u.path] = u.value["v"] + (0 if fresh else held[u.path])
    assert held == total
    assert not any(t.folds for t in bench.tree)


@given(STEPS, STEPS)
def test_clients_that_wait_since_the_same_change_share_one_fold(first, second):
    bench = primed("ABCD", conflate="merge(sum)")
    others = [Outbox(10, 10_000, 100) for _ in range(5)]
    for outbox in others:
        for topic in bench.tree:
            outbox.attach(topic, 1)
        outbox.take(10**9, 0)
    for step in [*first, *second]:
        if isinstance(step, tuple):
            topic = bench.tree.get(step[0])
            change = topic.change(0, bench.offset + 1, bench.offset, {"v": step[1]})
            bench.offset += 1
            for outbox, subscription in topic.subscriptions.items():
                outbox.offer(subscription, change, 0)
            assert len(topic.folds) <= 1
    packs = {b"".join(outbox.take(10**9, 0)) for outbox in others}
    assert len(packs) == 1


def test_a_rate_conflates_in_between_and_time_alone_brings_the_rest():
    bench = Bench()
    bench.publish("A", {"v": 0})
    bench.tree.get("A").subscriptions[bench.outbox].prefer(1, Preference(gap_us=1000))
    bench.flush()
    for v in range(1, 5):
        bench.publish("A", {"v": v})
    assert not bench.outbox.ready(999)
    assert bench.outbox.wake_us() == 1000
    bench.now = 1000
    assert [(u.value["v"], u.meta.count) for u in bench.flush()] == [(4, 4)]
    assert bench.outbox.wake_us() == 0


def test_a_window_of_its_own_beside_plain_values():
    bench = Bench()
    bench.publish("A", {"v": 10, "s": "x"})
    other = Outbox(10, 10_000, 100)
    topic = bench.tree.get("A")
    other.attach(topic, 1, Preference(window=window_merge(["mean", "max"])))
    view = View()
    first = [view.take(codec.decode_from_server(f)) for f in other.take(10**9, 0)][-1]
    assert first.value == {"v": {"mean": 10.0, "max": 10}, "s": "x"}
    for v in (1, 2, 6):
        change = topic.change(0, bench.offset + 1, 1, {"v": v, "s": str(v)})
        bench.offset += 1
        for outbox, subscription in topic.subscriptions.items():
            outbox.offer(subscription, change, 0)
    (update,) = [view.take(codec.decode_from_server(f)) for f in other.take(10**9, 0)]
    assert (update.value, update.meta.count) == ({"v": {"mean": 3.0, "max": 6}, "s": "6"}, 3)
    assert bench.flush()[-1].value == {"v": 6, "s": "6"}
    other.forget()
    assert not topic.folds


def test_under_a_budget_the_stalest_and_heaviest_per_byte_goes_first():
    bench = primed("ABC")
    bench.outbox.budget = Budget(10_000, 0, 0)
    bench.outbox.budget.spend(1000, 0)
    bench.offset = 100
    for name in "ABC":
        bench.publish(name, {"v": 1})
    bench.tree.get("C").subscriptions[bench.outbox].prefer(1, Preference(weight=50.0))
    for topic in bench.tree:
        topic.size = 1000
    bench.now = 200
    (first, *_) = bench.flush(10)
    assert first.path == "C"


class InOrder(Scheduler):
    """First come, first sent."""

    def order(self, _room, _now_us):
        return list(self.pending)[:1]


def staleness(order):
    """How long clients' values stay overtaken when a few hundred bytes fit per flush."""
    bench = Bench()
    if order == "arrival":
        bench.outbox.scheduler = InOrder()
    for name in "ABCDEFGH":
        bench.publish(name, {"v": 0})
    bench.flush()
    total = 0
    for i in range(300):
        bench.now = 1000 + i * 10
        for j, name in enumerate("ABCDEFGH"):
            if (i + j) % (j + 2) == 0:
                bench.offset = bench.now  # also the capture time
                bench.publish(name, {"v": str(i) + "x" * (20 if j % 2 else 400)})
        bench.flush(300)
        waiting = bench.outbox.scheduler.pending.values()
        total += sum(bench.now - subscription.overtaken_us for subscription in waiting)
    return total


def test_urgency_keeps_clients_fresher_than_order_of_arrival():
    assert staleness("urgency") < 0.9 * staleness("arrival")


def test_a_budget_bounds_what_goes_out_and_says_when_to_come_back():
    bench = Bench()
    bench.outbox.budget = Budget(1000, 0, 0)
    for i in range(100):
        bench.publish(f"t{i}", {"v": "x" * 50})
    sent = sum(len(f) for f in bench.outbox.take(10**9, 0))
    assert sent <= 1024 + 200
    assert not bench.outbox.ready(0)
    assert bench.outbox.wake_us() > 0
    assert bench.outbox.ready(bench.outbox.wake_us() + 2000)


@given(st.lists(st.integers(0, 9), min_size=1, max_size=20), st.integers(1, 400))
def test_clients_equally_far_behind_share_what_they_would_get_alone(values, bytes_max):
    bench = primed("A", conflate="off")
    topic = bench.tree.get("A")
    others = [Outbox(1024, 10_000, 100) for _ in range(3)]
    for outbox in others:
        outbox.attach(topic, 1)
        outbox.take(10**9, 0)
    for value in values:
        change = topic.change(0, bench.offset + 1, bench.offset, {"v": value})
        bench.offset += 1
        for outbox, subscription in topic.subscriptions.items():
            outbox.offer(subscription, change, 0)
    together = [outbox.take(10**9, 0) for outbox in others]
    assert len(values) < 2 or all(frames is together[0] for frames in together)
    alone = []
    while not bench.outbox.idle:
        alone += bench.outbox.take(bytes_max, 0)
    assert [*together[0]] == alone
    updates = [bench.view.take(codec.decode_from_server(f)) for f in alone]
    assert [u.value["v"] for u in updates] == values
    assert all(o.idle and o.written.updates == len(values) + 1 for o in others)
    assert len({o.written.bytes for o in [*others, bench.outbox]}) == 1


def test_a_full_queue_pauses_the_topic_and_says_so_after_what_was_queued():
    bench = primed("A", conflate="off", queue_max=2)
    for value in range(1, 6):
        bench.publish("A", {"v": value})
    out = bench.flush()
    assert [u.value["v"] for u in out if isinstance(u, Update)] == [1, 2]
    assert out[-1] == Stopped("A", 1, ProtocolCode.QUEUE_FULL, 0, 3)
    bench.publish("A", {"v": 6})
    assert bench.flush() == []


def test_detaching_drops_what_is_pending_and_tells_only_what_was_told():
    bench = primed("A", conflate="off")
    topic = bench.tree.get("A")
    bench.publish("A", {"v": 1})
    bench.outbox.detach(topic, frames.RemoveReason.REMOVED)
    assert [type(e).__name__ for e in bench.flush()] == ["Removed"]
    fresh = Bench()
    fresh.publish("A", {"v": 1})
    fresh.outbox.detach(fresh.tree.get("A"), frames.RemoveReason.REMOVED)
    assert fresh.outbox.take(1000, 0) == []


def test_a_session_sees_a_bounded_number_of_topics_and_is_told_once():
    bench = Bench()
    bench.outbox.topics_max = 1
    for name in "ABC":
        topic = bench.tree.create(name, bench.policy)
        topic.change(0, 1, 1, {})
        bench.outbox.attach(topic, 5)
    decoded = [codec.decode_from_server(f) for f in bench.outbox.take(10_000, 0)]
    errors = [f for f in decoded if isinstance(f, frames.Error)]
    assert [(e.id, e.code) for e in errors] == [(5, ProtocolCode.TOO_MANY_TOPICS)]
    assert sum(isinstance(f, frames.Value) for f in decoded) == 1
