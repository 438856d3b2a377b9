"""Choose which topic of one session is sent next. Pure: time is an argument.

Topics wait in order of arrival. When all that waits fits into a write it goes out in that order,
changes of several topics mixed by capture time. When it does not, the topic with the largest
weight x age / bytes goes first: age counts from the moment the client's value became old, so a
topic that seldom changes is not urgent only because its value is old.

    fits:          A1 B1 A2        capture times 1 2 3, as they came
    does not fit:  B1              waits longest per byte; A1 and A2 wait for the next write

What may not be conflated stays in order within its topic: only its first change may be chosen.
The outbox uses it.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterator
from operator import itemgetter

from edgewise.edge.sessions.subscription import DeliveryState, TopicSubscription
from edgewise.edge.topics.tree import Topic

CANDIDATES_MAX = 512  # pending topics that one write considers, oldest pending first

_PENDING, _QUEUED, _PAUSING = DeliveryState.PENDING, DeliveryState.QUEUED, DeliveryState.PAUSING


class RateTimer:
    """When the rate of a topic allows its next update, by alias.

    An entry of `heap` counts as long as its subscription waits and has the same due time. When
    half of them do not they are dropped, so a client that changes its rate again and again keeps
    nothing here.
    """

    __slots__ = ("heap", "waiting")

    def __init__(self) -> None:
        self.waiting: dict[int, TopicSubscription] = {}
        self.heap: list[tuple[int, int]] = []

    @property
    def next_us(self) -> int:
        """When the first one is due; 0 when none waits."""
        return self.heap[0][0] if self.heap else 0

    def start(self, subscription: TopicSubscription) -> None:
        subscription.due_us = max(1, subscription.due_us)  # 0 says that none waits
        alias = subscription.topic.alias
        self.waiting[alias] = subscription
        heapq.heappush(self.heap, (subscription.due_us, alias))
        self._drop_void()

    def stop(self, alias: int) -> None:
        if self.waiting.pop(alias, None) is not None:
            self._drop_void()

    def clear(self) -> None:
        self.waiting.clear()
        self.heap.clear()

    def pop_due(self, now_us: int) -> Iterator[TopicSubscription]:
        heap = self.heap
        while heap and heap[0][0] <= now_us:
            due_us, alias = heapq.heappop(heap)
            subscription = self.waiting.get(alias)
            if subscription is not None and subscription.due_us == due_us:
                del self.waiting[alias]
                yield subscription

    def _drop_void(self) -> None:
        if len(self.heap) > 2 * len(self.waiting):
            self.heap = [(s.due_us, alias) for alias, s in self.waiting.items()]
            heapq.heapify(self.heap)


class Scheduler:
    """`pending` has, by alias and in order of arrival, what could be sent now; `timer` those that
    wait for their rate.
    """

    __slots__ = ("pending", "timer")

    def __init__(self) -> None:
        self.pending: dict[int, TopicSubscription] = {}
        self.timer = RateTimer()

    def is_due(self, now_us: int) -> bool:
        return bool(self.pending) or 0 < self.timer.next_us <= now_us

    def clear(self) -> None:
        self.pending.clear()
        self.timer.clear()

    def count(self) -> int:
        """How many updates wait."""
        return sum(map(_count_updates, self.pending.values())) + len(self.timer.waiting)

    def count_overtaken(self) -> int:
        """Changes that overtook what waits."""
        each = itertools.chain(self.pending.values(), self.timer.waiting.values())
        return sum(s.overtaken for s in itertools.islice(each, CANDIDATES_MAX))

    def count_by_topic(self) -> Iterator[tuple[Topic, int]]:
        """How many updates of each topic could be sent now."""
        for subscription in self.pending.values():
            yield subscription.topic, _count_updates(subscription)

    @property
    def behind(self) -> bool:
        """Whether what waits longest was overtaken since."""
        for subscription in self.pending.values():
            return subscription.backlog is None and subscription.overtaken > 0
        return False

    def order(self, room: int, now_us: int) -> list[int]:
        """Aliases, one for each update to send: by arrival when all fit, else by urgency."""
        pending = self.pending
        connections: list[tuple[int, int]] = []
        candidates: list[int] = []
        total, several = 0, False
        for alias, subscription in pending.items():
            if len(connections) >= CANDIDATES_MAX:
                break
            candidates.append(alias)
            if subscription.state is _PENDING and subscription.backlog is None:
                connections.append((subscription.overtaken_us, alias))  # the common case
                total += subscription.topic.size
                continue
            latest = count = 0  # a topic stays in order, whatever its capture times say
            for at_us in itertools.islice(_capture_times(subscription), CANDIDATES_MAX):
                latest = max(latest, at_us)
                count += 1
                connections.append((latest, alias))
            several = several or count > 1
            total += subscription.topic.size * count
        if total <= room or len(candidates) == 1:
            if several and len(candidates) > 1:
                connections.sort(key=itemgetter(0))
            return [alias for _, alias in connections]
        return sorted(candidates, key=lambda alias: -_urgency(pending[alias], now_us))


def _count_updates(subscription: TopicSubscription) -> int:
    """How many updates a pending subscription stands for."""
    backlog, state = subscription.backlog, subscription.state
    count = 0 if backlog is None else len(backlog.changes)
    if state is _QUEUED:
        head = subscription.topic.head
        assert head is not None, "a queue has a head"
        return count + head.version - subscription.covered
    return count + (state is _PENDING or state is _PAUSING)


def _capture_times(subscription: TopicSubscription) -> Iterator[int]:
    """Of each update that waits, in order."""
    backlog, state, last = subscription.backlog, subscription.state, 0
    if backlog is not None:
        for change in backlog.changes:
            last = change.at_us
            yield last
        if backlog.next_page is not None:
            return  # more of it is in the log, and the rest has to wait for that
    if state is _PENDING:
        yield subscription.overtaken_us
    elif state is _PAUSING:
        yield last
    elif state is _QUEUED:
        queue, head = subscription.topic.queue, subscription.topic.head
        assert queue is not None, "a queued subscription has a queue"
        assert head is not None, "a queue has a head"
        for version in range(subscription.covered + 1, head.version + 1):
            yield queue.changes[version].at_us


def _urgency(subscription: TopicSubscription, now_us: int) -> float:
    age_us = max(1, now_us - subscription.overtaken_us)
    return subscription.weight * age_us / subscription.topic.size
