"""Encode a change of a topic as a frame, once per (topic, base, head) for all clients.

The smallest of three forms is taken: the difference to what the client last got, the whole value
with a relative position, the whole value with an absolute one (first sight, or another epoch). The
update writer uses it.
"""

from __future__ import annotations

from typing import Any

import msgspec

from edgewise.edge.topics.change_queue import Fold, TopicChange
from edgewise.edge.topics.tree import Topic
from edgewise.wire import codec, frames
from edgewise.wire.delta import diff
from edgewise.wire.frames import How, TopicKind, TopicOptions

_encode, _Next, _BLOB = codec.encode, frames.Next, TopicKind.BLOB  # looked up once


def encode_topic(topic: Topic) -> bytes:
    policy = topic.policy
    options = TopicOptions(conflate=policy.conflate, recovery=policy.recovery, keep=policy.keep)
    return codec.encode(frames.TopicFrame(topic.alias, topic.path, policy.kind, options))


def encode_snapshot(topic: Topic, change: TopicChange, last: int = 0) -> bytes:
    """First sight: the current value, absolute. `last` limits the entries of a series."""
    cached = change.frames.get(("snapshot", last))
    if cached is None:
        value = show_value(topic, change)
        if last and topic.policy.kind is TopicKind.SERIES:
            value = value[-last:]
        cached = encode_value(
            topic, change, How.SNAPSHOT, start=change.to - 1, count=1, value=value
        )
        change.frames["snapshot", last] = cached
    return cached


def show_value(topic: Topic, change: TopicChange) -> Any:
    """The state as a client sees it."""
    return topic.show(change.value)


def encode_value(
    topic: Topic, change: TopicChange, how: How, *, start: int, count: int, value: Any
) -> bytes:
    return codec.encode(
        frames.Value(topic.alias, how, change.epoch, start, change.to, count, change.at_us, value)
    )


def encode_fold(topic: Topic, base: TopicChange | None, fold: Fold) -> bytes:
    """What happened since `base` as one value; all clients of one fold have the same base."""
    head = topic.head
    assert head is not None, "a fold has at least one change"
    if base is not None and fold.frame is not None:
        return fold.frame
    value = fold.merge.show(fold.value)
    count = head.version - fold.first + 1
    if base is None:
        return encode_value(topic, head, How.SNAPSHOT, start=head.to - 1, count=count, value=value)
    if base.epoch != head.epoch:
        fold.frame = encode_value(topic, head, How.UPDATE, start=base.to, count=count, value=value)
    else:
        later_us = head.at_us - base.at_us
        fold.frame = codec.encode(
            frames.Next(topic.alias, head.to - base.to, count, later_us, value)
        )
    return fold.frame


def encode_step(topic: Topic, base: TopicChange, change: TopicChange) -> bytes:
    """What a client needs that holds `base`, shared by all clients that do."""
    return change.frames.get(base.version) or encode_first_step(topic, base, change)


def encode_first_step(topic: Topic, base: TopicChange, change: TopicChange) -> bytes:
    """The same, where nobody asked for it yet."""
    version = base.version
    if topic.policy.kind is _BLOB and base.epoch == change.epoch:
        frame = _encode(
            _Next(
                topic.alias,
                change.to - base.to,
                change.version - version,
                change.at_us - base.at_us,
                change.value,
            )
        )
    else:
        frame = _encode_difference(topic, base, change)
    change.frames[version] = frame
    return frame


def _encode_difference(topic: Topic, base: TopicChange, change: TopicChange) -> bytes:
    count = change.version - base.version
    if base.epoch != change.epoch:
        return encode_value(
            topic, change, How.UPDATE, start=base.to, count=count, value=change.value
        )
    host = (topic.alias, change.to - base.to, count, change.at_us - base.at_us)
    delta = diff(topic.policy.kind, base.value, change.value)
    if delta is None:
        return codec.encode(frames.Next(*host, change.value))
    value, packed = codec.raw(change.value), codec.raw(delta)
    if _packed_size(packed) < _packed_size(value):
        return codec.encode(frames.Delta(*host, packed))
    return codec.encode(frames.Next(*host, value))


def _packed_size(packed: msgspec.Raw) -> int:
    return len(memoryview(packed))
