"""From a change of a topic to the bytes of its frame, encoded once per (topic, base, head).

The smallest of three forms wins: the difference to what the client last got, the whole value with
a relative position, the whole value with an absolute one (first sight, or another epoch).
"""

from __future__ import annotations

import msgspec

from edgewise.edge.topics import Change, Topic
from edgewise.wire import codec, frames
from edgewise.wire.delta import diff
from edgewise.wire.frames import How, TopicOptions

NO_BASE = 0  # versions start at 1


def topic_frame(topic: Topic) -> bytes:
    policy = topic.policy
    options = TopicOptions(conflate=policy.conflate, recovery=policy.recovery, keep=policy.keep)
    return codec.encode(frames.Topic(topic.alias, topic.path, policy.kind, options))


def snapshot_frame(topic: Topic, change: Change) -> bytes:
    """First sight: the current value, absolute."""
    cached = change.frames.get(NO_BASE)
    if cached is None:
        cached = value_frame(topic, change, How.SNAPSHOT, change.to - 1, 1)
        change.frames[NO_BASE] = cached
    return cached


def value_frame(topic: Topic, change: Change, how: How, start: int, count: int) -> bytes:
    return codec.encode(
        frames.Value(
            topic.alias, how, change.epoch, start, change.to, count, change.at_us, change.value
        )
    )


def step_frame(topic: Topic, base: Change, change: Change) -> bytes:
    """What a client needs that holds `base`, shared by all clients that do."""
    cached = change.frames.get(base.version)
    if cached is None:
        cached = _encode_step(topic, base, change)
        change.frames[base.version] = cached
    return cached


def _encode_step(topic: Topic, base: Change, change: Change) -> bytes:
    count = change.version - base.version
    if base.epoch != change.epoch:
        return value_frame(topic, change, How.UPDATE, base.to, count)
    place = (topic.alias, change.to - base.to, count, change.at_us - base.at_us)
    value = codec.raw(change.value)
    delta = diff(topic.policy.kind, base.value, change.value)
    if delta is not None:
        packed = codec.raw(delta)
        if _size(packed) < _size(value):
            return codec.encode(frames.Delta(*place, packed))
    return codec.encode(frames.Next(*place, value))


def _size(packed: msgspec.Raw) -> int:
    return len(memoryview(packed))
