"""Write the next update of a subscription as a frame, and count what was sent. Pure.

Which frame it is depends on what the client holds: nothing yet (TOPIC and a snapshot), the value
before (a step, encoded once for all who hold the same), several changes folded into one by a
merge, or a position from before it was away (replay, catch-up, gap). The outbox decides when.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any

from edgewise.edge.sessions.encode import (
    encode_first_step,
    encode_fold,
    encode_snapshot,
    encode_step,
    encode_topic,
    encode_value,
)
from edgewise.edge.sessions.subscription import TopicSubscription
from edgewise.edge.topics.change_queue import EncodedRun, TopicChange
from edgewise.edge.topics.tree import Topic
from edgewise.wire import codec
from edgewise.wire.frames import How, Stale

SAMPLE_EVERY = 16  # updates; besides, one sample is always on its way
SAMPLES_MAX = 64  # updates whose age is measured at the next acknowledgement

Sample = tuple[int, int, str]  # number of the update, its capture time, its topic's first segment


class UpdateWriter:
    """Of one session. `conflated` counts updates that were overtaken before they were sent."""

    __slots__ = ("_samples", "bytes", "conflated", "updates")

    def __init__(self) -> None:
        self.updates = 0
        self.bytes = 0
        self.conflated = 0
        self._samples: deque[Sample] = deque()

    def acknowledge(self, updates: int) -> Iterator[Sample]:
        """The samples among the first `updates` updates of this session."""
        while self._samples and self._samples[0][0] <= updates:
            yield self._samples.popleft()

    def write_head(self, subscription: TopicSubscription, out: list[bytes]) -> int:
        """The current value of a topic that is pending."""
        topic, base = subscription.topic, subscription.sent
        head = topic.head
        assert head is not None, "a topic is only pending when it has a value"
        if (
            base is not None
            and subscription.announced
            and subscription.merge is None
            and subscription.resume_as is None
        ):
            # The common case, and the hot one: a newer value for a client that has the topic.
            self.conflated += head.version - subscription.first
            frame = head.frames.get(base.version) or encode_first_step(topic, base, head)
            out.append(frame)
            size = topic.size = len(frame)
            self._count(subscription, head, size, 1)
            return size
        self.count_conflated(topic, subscription.overtaken)
        return self._write_first(subscription, head, _head_frame(subscription, head), out)

    def write_change(
        self,
        subscription: TopicSubscription,
        change: TopicChange,
        replay_to: int,
        out: list[bytes],
    ) -> int:
        """One change from the backlog or from the topic's queue."""
        topic, base = subscription.topic, subscription.sent
        if base is None:
            frame = encode_snapshot(topic, change, subscription.preference.last)
        elif change.version <= replay_to:
            value = _show(subscription, change.value if topic.merge is None else change.input)
            frame = encode_value(topic, change, How.REPLAY, start=base.to, count=1, value=value)
        else:
            frame = encode_step(topic, base, change)
        return self._write_first(subscription, change, frame, out)

    def write_run(self, subscription: TopicSubscription, bytes_max: int) -> EncodedRun:
        """What waits in the topic's queue and fits, when nothing else waits: sessions that are
        equally far behind share it, and those further behind meet them where a write ends.
        """
        topic, base = subscription.topic, subscription.sent
        queue, head = topic.queue, topic.head
        assert queue is not None, "a queued subscription has a queue"
        assert base is not None, "a queued subscription was sent a snapshot"
        assert head is not None, "a queue has a head"
        first, last = base.version, head.version
        fit = max(1, bytes_max // topic.size)
        if last - first > fit:
            last = first + fit - first % fit
        run = queue.runs.get((first, last))
        if run is None:
            run = _encode_run(topic, base, last, bytes_max)
            topic.size = len(run[-1])
            queue.keep(first, last, run)
        self._count(subscription, run.last, run.size, len(run))
        return run

    def count_conflated(self, topic: Topic, updates: int) -> None:
        """What waited for this client is not sent any more, only what overtook it."""
        self.conflated += updates
        if topic.queue is not None:
            # Fanout counts the others for all sessions at once; here only a window conflates.
            topic.group.conflated += updates

    def _write_first(
        self, subscription: TopicSubscription, change: TopicChange, frame: bytes, out: list[bytes]
    ) -> int:
        """A frame, after the one that says which topic it is of when the client does not know."""
        topic = subscription.topic
        size = topic.size = len(frame)
        if subscription.announced:
            out.append(frame)
        else:
            start = len(out)
            out += (encode_topic(topic), frame)
            if topic.stale_us:
                out.append(codec.encode(Stale(topic.alias, topic.stale_us)))
            size = sum(map(len, out[start:]))
        self._count(subscription, change, size, 1)
        subscription.announced = True
        return size

    def _count(
        self, subscription: TopicSubscription, change: TopicChange, size: int, n: int
    ) -> None:
        group = subscription.topic.group
        group.updates += n
        group.bytes += size
        self.bytes += size
        before = self.updates
        self.updates = updates = before + n
        if subscription.announced and (
            not self._samples
            or (
                updates // SAMPLE_EVERY != before // SAMPLE_EVERY
                and len(self._samples) < SAMPLES_MAX
            )
        ):
            # The first value of a topic says how old it is, not how long we took.
            self._samples.append((updates, change.at_us, group.name))
        subscription.sent = change


def close_fold(subscription: TopicSubscription) -> None:
    if subscription.fold is not None:
        subscription.topic.close_fold(subscription.fold)
        subscription.fold = None


def _head_frame(subscription: TopicSubscription, head: TopicChange) -> bytes:
    topic, base, merge = subscription.topic, subscription.sent, subscription.merge
    if subscription.resume_as is not None:
        (how, start), subscription.resume_as = subscription.resume_as, None
        close_fold(subscription)
        value = _show(subscription, head.value)
        return encode_value(topic, head, how, start=start, count=0, value=value)
    if merge is not None and (base is not None or merge is not topic.merge):
        fold = subscription.fold = subscription.fold or topic.open_fold(head, merge)
        frame = encode_fold(topic, base, fold)
        close_fold(subscription)
        return frame
    if base is None:
        return encode_snapshot(topic, head, subscription.preference.last)
    return encode_step(topic, base, head)


def _show(subscription: TopicSubscription, value: Any) -> Any:
    """One state or change of a topic in the form the client wants."""
    topic, merge = subscription.topic, subscription.merge
    value = topic.show(value)
    return value if merge is None or merge is topic.merge else merge.show(merge.lift(value))


def _encode_run(topic: Topic, base: TopicChange, last: int, bytes_max: int) -> EncodedRun:
    """What leads from `base` to version `last`; not more than fits, but one step at least."""
    queue = topic.queue
    assert queue is not None, "only a queue is encoded in runs"
    frames: list[bytes] = []
    size = 0
    for version in range(base.version + 1, last + 1):
        change = queue.changes[version]
        frames.append(encode_step(topic, base, change))
        size += len(frames[-1])
        base = change
        if size >= bytes_max:
            break
    return EncodedRun(frames, base)
