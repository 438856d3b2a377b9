"""What a feed or a client publishes becomes a topic's value. Pure: time is an argument.

The topic decides: its kind, its epoch, its next offset. Where several edges share a port the first
of them puts (`siblings`), and the others repeat what it `Told`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from msgspec import Struct

from edgewise.edge.fanout import Fanout
from edgewise.edge.topics import Policy, Topic
from edgewise.errors import ProtocolError
from edgewise.wire import frames
from edgewise.wire.codes import Code
from edgewise.wire.frames import TopicKind

_BLOB = TopicKind.BLOB


class Told(Struct, array_like=True, frozen=True, gc=False):
    """One change as the deciding edge made it."""

    path: str
    value: Any
    key: str
    remove: bool
    policy: Policy
    epoch: int
    to: int
    at_us: int


@dataclass(frozen=True, slots=True)
class Publication:
    """One value on its way to a topic."""

    path: str
    value: Any
    offset: int
    at_us: int
    epoch: int = 0
    policy: Policy | None = None
    key: str = ""  # the row of a table topic
    remove: bool = False
    whole_from: int = -1  # offset from which this source's history is complete


def bring(fanout: Fanout, publication: Publication, now_us: int) -> None:
    """What a feed brings; ProtocolError when it has no place in the tree."""
    p = publication
    if p.remove:
        fanout.remove(p.path)
    else:
        fanout.publish(
            p.path,
            p.value,
            now_us=now_us,
            offset=p.offset,
            at_us=p.at_us,
            epoch=p.epoch,
            policy=p.policy,
            key=p.key,
            whole_from=p.whole_from,
        )


def put(fanout: Fanout, frame: frames.Publish, now_us: int) -> None:
    """The permission was asked; ProtocolError when the topic does not take it."""
    options = frame.options
    topic = fanout.tree.get(frame.path)
    if options.remove and not options.key:
        if not fanout.remove(frame.path):
            raise ProtocolError(Code.NOT_FOUND, f"no topic '{frame.path}'")
        return
    kind = topic.policy.kind if topic is not None else _kind(options.kind)
    value = frame.value
    if options.remove:
        value = None
    elif kind is not _BLOB or type(value) is not bytes:
        value = _fitting(kind, value, frame.path)
    head = topic.head if topic is not None else None
    if topic is None or head is None:
        # A topic of that name may have been here before, and clients away may hold a position in
        # it: offsets that begin with the clock do not come twice.
        place = {"now_us": now_us, "offset": now_us, "at_us": now_us}
        policy, key = Policy(kind=kind), options.key
        topic = fanout.publish(frame.path, value, **place, policy=policy, key=key)
        topic.shared = True
    else:
        change = topic.change(head.epoch, head.to + 1, now_us, value, options.key)
        fanout.changed(topic, change, now_us)


def told(fanout: Fanout, frame: frames.Publish) -> Told:
    """What was just put, for other edges. No topic there: it was removed."""
    topic, options = fanout.tree.get(frame.path), frame.options
    if topic is None or topic.head is None:
        return gone(frame.path)
    value = None if options.remove else frame.value
    head = topic.head
    place = (head.epoch, head.to, head.at_us)
    return Told(frame.path, value, options.key, False, topic.policy, *place)


def gone(path: str) -> Told:
    return Told(path, None, "", True, Policy(), 0, 0, 0)


def repeat(fanout: Fanout, told: Told, now_us: int) -> None:
    """The same change on another edge."""
    if told.remove:
        fanout.remove(told.path)
        return
    fanout.publish(
        told.path,
        told.value,
        now_us=now_us,
        offset=told.to - 1,
        at_us=told.at_us,
        epoch=told.epoch,
        policy=told.policy,
        key=told.key,
    )


def history(topic: Topic) -> Iterator[Told]:
    """What brings an edge that knows nothing to where this topic is."""
    head = topic.head
    if head is None:
        return
    kind = topic.policy.kind
    rows: list[tuple[str, Any, int]] = [("", head.value, head.at_us)]
    if kind is TopicKind.TABLE:
        rows = [(key, row, head.at_us) for key, row in head.value.items()]
    elif kind is TopicKind.SERIES:
        rows = [("", value, at_us) for _, at_us, value in head.value]
    for left, (key, value, at_us) in zip(range(len(rows) - 1, -1, -1), rows, strict=True):
        to = head.to - left
        yield Told(topic.path, value, key, False, topic.policy, head.epoch, to, at_us)


def _kind(number: int) -> TopicKind:
    try:
        return TopicKind(number)
    except ValueError:
        raise ProtocolError(Code.BAD_VALUE, f"no topic kind {number}") from None


def _fitting(kind: TopicKind, value: Any, path: str) -> Any:
    wanted = bytes if kind is TopicKind.BLOB else dict
    if not isinstance(value, wanted) or (wanted is dict and not all(map(_is_text, value))):
        shape = "bytes" if wanted is bytes else "a map with text keys"
        raise ProtocolError(Code.BAD_VALUE, f"'{path}' is a {kind.name.lower()}: send {shape}")
    return value


def _is_text(key: Any) -> bool:
    return isinstance(key, str)
