"""Carry a change of a topic to the sessions that want it. Pure: time is an argument.

Publishing marks sessions dirty and encodes nothing; the cost is one dictionary look-up per
subscriber that has nothing of the topic waiting yet. The flush scheduler empties `dirty` and
flushes when a socket can take it. The server, its feeds and all sessions share one.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import structs

from edgewise.edge.sessions.outbox import Outbox
from edgewise.edge.sessions.subscription import NO_PREFERENCE, Preference
from edgewise.edge.topics.change_queue import TopicChange
from edgewise.edge.topics.merges import MergeRegistry
from edgewise.edge.topics.selectors import SelectorIndex
from edgewise.edge.topics.tree import Policy, Publication, Topic, TopicTree
from edgewise.errors import ProtocolError
from edgewise.wire.codes import ProtocolCode
from edgewise.wire.frames import RemoveReason, TopicKind

DEFAULT = Policy()
SWEPT_MAX = 1_000  # topics and sessions that one sweep handles
NOTHING: Mapping[str, tuple[int, int]] = {}


class Fanout:
    """The tree, who selects what, and which outboxes have something to send."""

    def __init__(self, tree: TopicTree) -> None:
        self.tree = tree
        self.dirty: dict[Outbox, None] = {}
        self.published = 0
        self.queued = 0  # updates that may not be conflated, for all sessions
        self.merges = MergeRegistry()
        self._selectors: SelectorIndex[tuple[Outbox, int]] = SelectorIndex()
        self._preferences: dict[tuple[Outbox, int], Preference] = {}

    def apply(self, publication: Publication, now_us: int) -> None:
        """Publish or remove; ProtocolError when the topic does not take it."""
        if not publication.remove:
            self.publish(publication, now_us)
        elif publication.value is None:
            self.remove(publication.path)
        else:
            self._remove_shown(publication, now_us)

    def _remove_shown(self, publication: Publication, now_us: int) -> None:
        """A row left its window: what shows it goes, what shows a newer one stays."""
        topic = self.tree.get(publication.path)
        head = topic.head if topic is not None else None
        if topic is None or head is None:
            return
        if topic.policy.kind is TopicKind.TABLE:
            if head.value.get(publication.key) == publication.value:
                self.publish(structs.replace(publication, value=None, remove=False), now_us)
        elif head.value == publication.value:
            self.remove(publication.path, RemoveReason.EXPIRED)

    def publish(self, publication: Publication, now_us: int) -> Topic:
        """Its value is now the value of its path."""
        path = publication.path
        topic = self.tree.get(path)
        fresh = topic is None
        if topic is None:
            policy = publication.policy or DEFAULT
            topic = self.tree.create(path, policy, self.merges.parse(policy.conflate))
            topic.whole_from = publication.whole_from
            topic.row_history = publication.history
        try:
            change = topic.change(
                publication.epoch,
                publication.offset + 1,
                publication.at_us,
                publication.value,
                publication.key,
            )
        except ProtocolError:
            if fresh:
                self.tree.remove(path)  # who wants it hears of it when it has a value
            raise
        self.offer_change(topic, change, now_us)
        if fresh:
            self._attach_selecting(topic)
        return topic

    def offer_change(self, topic: Topic, change: TopicChange, now_us: int) -> None:
        """A topic that exists has a new head: offer it to the sessions with nothing waiting."""
        self.published += 1
        if topic.timed:
            self.tree.touch(topic, now_us)
        if topic.stale_us:
            self._mark_stale(topic, 0)
        dirty, idle = self.dirty, topic.idle
        topic.idle = {}
        if topic.queue is None:
            topic.group.conflated += len(topic.subscriptions) - len(idle)
        else:
            self.queued += len(topic.subscriptions)
        for outbox, subscription in idle.items():
            outbox.offer(subscription, change, now_us)
            dirty[outbox] = None

    def remove(self, path: str, reason: RemoveReason = RemoveReason.REMOVED) -> bool:
        topic = self.tree.remove(path)
        if topic is None:
            return False
        for outbox in list(topic.subscriptions):
            outbox.detach(topic, reason)
            self.dirty[outbox] = None
        return True

    def subscribe(
        self,
        outbox: Outbox,
        subscription_id: int,
        selector: tuple[str, ...],
        preference: Preference = NO_PREFERENCE,
        have: Mapping[str, tuple[int, int]] = NOTHING,
    ) -> int:
        """Everything selected becomes pending at once; answers how many topics that is now."""
        topics = []
        for topic in self.tree.select(selector):
            topics.append(topic)
            if len(topics) > outbox.topics_max:
                raise ProtocolError(
                    ProtocolCode.TOO_MANY_TOPICS, f"more than {outbox.topics_max} topics selected"
                )
        self._selectors.add(selector, member := (outbox, subscription_id))
        self._preferences[member] = preference
        seen = 0
        for topic in topics:
            fresh = topic.alias not in outbox.subscriptions
            subscription = outbox.attach(topic, subscription_id, preference)
            seen += subscription is not None
            if subscription is not None and fresh and topic.path in have:
                outbox.resume(subscription, *have[topic.path])
        self.dirty[outbox] = None
        return seen

    def unsubscribe(self, outbox: Outbox, subscription_id: int, selector: tuple[str, ...]) -> None:
        self._selectors.discard(selector, (outbox, subscription_id))
        self._preferences.pop((outbox, subscription_id), None)
        for subscription in list(outbox.subscriptions.values()):
            if subscription_id in subscription.preferences:
                if len(subscription.preferences) > 1:
                    outbox.prefer(subscription, subscription_id, None)
                else:
                    outbox.detach(subscription.topic, RemoveReason.UNSUBSCRIBED)
        self.dirty[outbox] = None

    def is_selected(self, path: tuple[str, ...]) -> bool:
        """Whether any session would see a topic of this path."""
        return next(self._selectors.match(path), None) is not None

    def recheck(self, outbox: Outbox, selectors: Mapping[int, tuple[str, ...]]) -> None:
        """Permissions changed: what may no longer be read goes, what may be read now comes."""
        for subscription in list(outbox.subscriptions.values()):
            if not outbox.may_read(subscription.topic.segments):
                outbox.detach(subscription.topic, RemoveReason.FORBIDDEN)
        for subscription_id, selector in selectors.items():
            preference = self._preferences.get((outbox, subscription_id), NO_PREFERENCE)
            for topic in self.tree.select(selector):
                outbox.attach(topic, subscription_id, preference)
        self.dirty[outbox] = None

    def forget(self, outbox: Outbox, selectors: dict[int, tuple[str, ...]]) -> None:
        """A session ended: nothing refers to it any more."""
        for subscription_id, selector in selectors.items():
            self._selectors.discard(selector, (outbox, subscription_id))
            self._preferences.pop((outbox, subscription_id), None)
        outbox.forget()
        self.dirty.pop(outbox, None)

    def sweep(self, now_us: int) -> bool:
        """Expire what outlived its ttl, mark stale what did not change; True when more is due."""
        handled = 0
        for topic in self.tree.due(now_us):
            handled += 1 + len(topic.subscriptions)
            ttl_ms, stale_ms = topic.policy.ttl_ms, topic.policy.stale_ms
            if stale_ms and not topic.stale_us and (not ttl_ms or stale_ms < ttl_ms):
                self._mark_stale(topic, topic.deadline_us - stale_ms * 1000)
                if ttl_ms:
                    self.tree.arm(topic, topic.deadline_us + (ttl_ms - stale_ms) * 1000)
            elif ttl_ms:
                self.remove(topic.path, RemoveReason.EXPIRED)
            if handled >= SWEPT_MAX:
                return True
        return False

    def _mark_stale(self, topic: Topic, since_us: int) -> None:
        topic.stale_us = since_us
        for outbox, subscription in topic.subscriptions.items():
            outbox.control.announce_stale(subscription)
            self.dirty[outbox] = None

    def _attach_selecting(self, topic: Topic) -> None:
        """A new topic: the sessions that selected its path before it was there see it now."""
        for outbox, subscription_id in self._selectors.match(topic.segments):
            preference = self._preferences.get((outbox, subscription_id), NO_PREFERENCE)
            outbox.attach(topic, subscription_id, preference)
            self.dirty[outbox] = None
