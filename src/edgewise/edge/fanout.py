"""From a change of a topic to the sessions that want it. Pure: time is an argument.

Publishing marks sessions dirty and encodes nothing; the cost is one dictionary look-up per
subscriber that has nothing of the topic pending yet. Whoever drives sockets empties `dirty` and
flushes when a socket can take it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from edgewise.edge.changes import Change
from edgewise.edge.conflate import Outbox
from edgewise.edge.merge import Merges
from edgewise.edge.selectors import SelectorIndex
from edgewise.edge.slot import ANY, Want
from edgewise.edge.topics import Policy, Topic, TopicTree
from edgewise.errors import ProtocolError
from edgewise.wire.codes import Code
from edgewise.wire.frames import Gone

DEFAULT = Policy()
TOLD_MAX = 1_000  # topics and sessions that one sweep tells of silence and ends
NOTHING: Mapping[str, tuple[int, int]] = {}


class Fanout:
    """The tree, who selects what, and which outboxes have something to send."""

    def __init__(self, tree: TopicTree) -> None:
        self.tree = tree
        self.dirty: dict[Outbox, None] = {}
        self.published = 0
        self.queued = 0  # updates that may not be conflated, for all sessions
        self.merges = Merges()
        self._selectors: SelectorIndex[tuple[Outbox, int]] = SelectorIndex()
        self._wants: dict[tuple[Outbox, int], Want] = {}

    def publish(
        self,
        path: str,
        value: Any,
        *,
        now_us: int,
        offset: int,
        at_us: int,
        epoch: int = 0,
        policy: Policy | None = None,
        key: str = "",
        whole_from: int = -1,
    ) -> Topic:
        """The row at `offset` of its log is now the value of `path`."""
        topic = self.tree.get(path)
        fresh = topic is None
        if topic is None:
            policy = policy or DEFAULT
            topic = self.tree.create(path, policy, self.merges.of(policy.conflate))
            topic.whole_from = whole_from
        try:
            change = topic.change(epoch, offset + 1, at_us, value, key)
        except ProtocolError:
            if fresh:
                self.tree.remove(path)  # whoever wants it is told when it has a value
            raise
        self.changed(topic, change, now_us)
        if fresh:
            self._welcome(topic)
        return topic

    def changed(self, topic: Topic, change: Change, now_us: int) -> None:
        """A topic that exists has a new head: offer it to everybody who sees the topic."""
        self.published += 1
        if topic.timed:
            self.tree.touch(topic, now_us)
        if topic.stale_us:
            self._mark_stale(topic, 0)
        dirty, eager = self.dirty, topic.eager
        topic.eager = {}
        if topic.line is None:
            topic.group.conflated += len(topic.slots) - len(eager)
        else:
            self.queued += len(topic.slots)
        for outbox, slot in eager.items():
            outbox.offer(slot, change, now_us)
            dirty[outbox] = None

    def remove(self, path: str, reason: Gone = Gone.REMOVED) -> bool:
        topic = self.tree.remove(path)
        if topic is None:
            return False
        for outbox in list(topic.slots):
            outbox.detach(topic, reason)
            self.dirty[outbox] = None
        return True

    def subscribe(
        self,
        outbox: Outbox,
        subscription: int,
        selector: tuple[str, ...],
        want: Want = ANY,
        have: Mapping[str, tuple[int, int]] = NOTHING,
    ) -> int:
        """Everything selected becomes pending at once; answers how many topics that is now."""
        topics = []
        for topic in self.tree.select(selector):
            topics.append(topic)
            if len(topics) > outbox.topics_max:
                raise ProtocolError(
                    Code.TOO_MANY_TOPICS, f"more than {outbox.topics_max} topics selected"
                )
        self._selectors.add(selector, member := (outbox, subscription))
        self._wants[member] = want
        seen = 0
        for topic in topics:
            fresh = topic.alias not in outbox.slots
            slot = outbox.attach(topic, subscription, want)
            seen += slot is not None
            if slot is not None and fresh and topic.path in have:
                outbox.resume(slot, *have[topic.path])
        self.dirty[outbox] = None
        return seen

    def unsubscribe(self, outbox: Outbox, subscription: int, selector: tuple[str, ...]) -> None:
        self._selectors.discard(selector, (outbox, subscription))
        self._wants.pop((outbox, subscription), None)
        for slot in list(outbox.slots.values()):
            if subscription in slot.wants:
                if len(slot.wants) > 1:
                    outbox.want(slot, subscription, None)
                else:
                    outbox.detach(slot.topic, Gone.UNSUBSCRIBED)
        self.dirty[outbox] = None

    def wanted(self, path: tuple[str, ...]) -> bool:
        """Whether anybody would see a topic here."""
        return next(self._selectors.match(path), None) is not None

    def recheck(self, outbox: Outbox, subscriptions: Mapping[int, tuple[str, ...]]) -> None:
        """Permissions changed: what may no longer be read goes, what may be read now comes."""
        for slot in list(outbox.slots.values()):
            if not outbox.may_read(slot.topic.segments):
                outbox.detach(slot.topic, Gone.FORBIDDEN)
        for subscription, selector in subscriptions.items():
            want = self._wants.get((outbox, subscription), ANY)
            for topic in self.tree.select(selector):
                outbox.attach(topic, subscription, want)
        self.dirty[outbox] = None

    def forget(self, outbox: Outbox, subscriptions: dict[int, tuple[str, ...]]) -> None:
        """A session ended: nothing refers to it any more."""
        for subscription, selector in subscriptions.items():
            self._selectors.discard(selector, (outbox, subscription))
            self._wants.pop((outbox, subscription), None)
        outbox.forget()
        self.dirty.pop(outbox, None)

    def sweep(self, now_us: int) -> bool:
        """Expire what outlived its ttl, mark stale what fell silent; True when more is due."""
        told = 0
        for topic in self.tree.due(now_us):
            told += 1 + len(topic.slots)
            ttl_ms, stale_ms = topic.policy.ttl_ms, topic.policy.stale_ms
            if stale_ms and not topic.stale_us and (not ttl_ms or stale_ms < ttl_ms):
                self._mark_stale(topic, topic.deadline_us - stale_ms * 1000)
                if ttl_ms:
                    self.tree.arm(topic, topic.deadline_us + (ttl_ms - stale_ms) * 1000)
            elif ttl_ms:
                self.remove(topic.path, Gone.EXPIRED)
            if told >= TOLD_MAX:
                return True
        return False

    def _mark_stale(self, topic: Topic, since_us: int) -> None:
        topic.stale_us = since_us
        for outbox, slot in topic.slots.items():
            outbox.stale(slot)
            self.dirty[outbox] = None

    def _welcome(self, topic: Topic) -> None:
        for outbox, subscription in self._selectors.match(topic.segments):
            outbox.attach(topic, subscription, self._wants.get((outbox, subscription), ANY))
            self.dirty[outbox] = None
