from types import SimpleNamespace

from hypothesis import given
from hypothesis import strategies as st

from edgewise.edge.sessions.outbox import Outbox
from edgewise.edge.sessions.subscription import DeliveryState
from edgewise.edge.topics.change_queue import (
    RUNS_MAX,
    TRIM_AT,
    ChangeQueue,
    EncodedRun,
    TopicChange,
)
from edgewise.edge.topics.tree import Policy, TopicTree
from edgewise.wire import codec
from edgewise.wire.view import Stopped, View


def a_change(version):
    return TopicChange(version, 0, version, version, value=b"", arrived=b"")


class Crowd:
    """Several clients of one unconflated topic."""

    def __init__(self, clients, queue_max):
        self.topic = TopicTree(1).create("a", Policy(conflate="off"))
        self.topic.change(0, 1, 1, {"v": 0})
        self.outboxes = [Outbox(queue_max, 10_000, 10) for _ in range(clients)]
        self.views = [View() for _ in self.outboxes]
        self.seen = [[] for _ in self.outboxes]
        for outbox in self.outboxes:
            outbox.attach(self.topic, 1)
        for who in range(clients):
            self.read(who, 10**9)

    def publish(self):
        head = self.topic.head
        change = self.topic.change(0, head.to + 1, head.to, {"v": head.to})
        idle, self.topic.idle = self.topic.idle, {}
        for outbox, subscription in idle.items():
            outbox.offer(subscription, change, 0)

    def read(self, who, bytes_max):
        for frame in self.outboxes[who].take(bytes_max, 0):
            event = self.views[who].take(codec.decode_from_server(frame))
            if event is not None:
                self.seen[who].append(event)


def queued(outboxes):
    return {o for o in outboxes if o.subscriptions[1].state is DeliveryState.QUEUED}


DEEDS = st.lists(st.none() | st.tuples(st.integers(0, 2), st.integers(1, 200)), max_size=100)


@given(DEEDS, st.integers(1, 6))
def test_each_gets_every_change_once_and_in_order_or_is_told_where_it_ends(deeds, queue_max):
    crowd = Crowd(3, queue_max)
    queue = crowd.topic.queue
    for deed in deeds:
        if deed is None:
            crowd.publish()
        else:
            crowd.read(*deed)
        assert len(queue.changes) <= queue_max + 1
        assert set(queue.members) == queued(crowd.outboxes)
    for who, outbox in enumerate(crowd.outboxes):
        while not outbox.idle:
            crowd.read(who, 50)
        *updates, last = crowd.seen[who]
        stopped = isinstance(last, Stopped)
        values = [u.value["v"] for u in (updates if stopped else [*updates, last])]
        assert values == list(range(len(values)))
        assert stopped or len(values) == crowd.topic.head.version
    assert not queue.members
    assert len(queue.changes) <= 1  # the head, if nobody had to wait for it


def test_what_nobody_waits_for_goes_although_somebody_always_waits():
    queue = ChangeQueue()
    slow, subscription = Outbox(1000, 1, 1), SimpleNamespace(covered=0)
    queue.join(slow, subscription)
    for version in range(1, 50 * TRIM_AT):
        queue.add(a_change(version))
        subscription.covered = version - 3
    assert len(queue.changes) <= 4 * TRIM_AT
    queue.leave(slow)
    assert not queue.changes


def test_a_bounded_number_of_runs_is_kept():
    queue = ChangeQueue()
    for first in range(3 * RUNS_MAX):
        queue.keep(first, first + 1, EncodedRun([b"x"], a_change(first + 1)))
    assert len(queue.runs) == RUNS_MAX


def test_clients_that_read_at_different_times_share_bytes_where_writes_end():
    crowd = Crowd(2, 1000)
    crowd.publish()
    crowd.read(0, 100)
    crowd.read(1, 100)
    for _ in range(40):
        crowd.publish()
    first = [crowd.outboxes[0].take(100, 0) for _ in range(3)]
    for _ in range(10):
        crowd.publish()
    assert all(crowd.outboxes[1].take(100, 0) is run for run in first)
