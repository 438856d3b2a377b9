"""Apply a client's PUBLISH to its topic, and describe topics for other workers. Pure.

The topic decides what a value becomes: its kind, its epoch, its next offset. Where several workers
share a port the primary one decides for all (`worker_sync`), and the others repeat the publication
that describes its decision.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from edgewise.edge.sessions.fanout import Fanout
from edgewise.edge.topics.tree import Policy, Publication, Topic
from edgewise.errors import ProtocolError
from edgewise.wire import frames
from edgewise.wire.codes import ProtocolCode
from edgewise.wire.frames import TopicKind

_BLOB = TopicKind.BLOB


def publish_frame(fanout: Fanout, frame: frames.Publish, now_us: int) -> None:
    """The permission was checked; ProtocolError when the topic does not take it."""
    options = frame.options
    topic = fanout.tree.get(frame.path)
    if options.remove and not options.key:
        if not fanout.remove(frame.path):
            raise ProtocolError(ProtocolCode.NOT_FOUND, f"no topic '{frame.path}'")
        return
    kind = topic.policy.kind if topic is not None else _parse_kind(options.kind)
    value = frame.value
    if options.remove:
        value = None
    elif kind is not _BLOB or type(value) is not bytes:
        value = _check_value(kind, value, frame.path)
    head = topic.head if topic is not None else None
    if topic is None or head is None:
        # A topic of that name may have been here before, and clients away may hold a position in
        # it: offsets that begin with the clock do not come twice.
        topic = fanout.publish(
            Publication(
                frame.path, value, now_us, now_us, policy=Policy(kind=kind), key=options.key
            ),
            now_us,
        )
        topic.shared = True
    else:
        change = topic.change(head.epoch, head.to + 1, now_us, value, options.key)
        fanout.offer_change(topic, change, now_us)


def describe_change(fanout: Fanout, frame: frames.Publish) -> Publication:
    """What `publish_frame` just did, for other workers. No topic there: it was removed."""
    topic, options = fanout.tree.get(frame.path), frame.options
    if topic is None or topic.head is None:
        return describe_removal(frame.path)
    value = None if options.remove else frame.value
    head = topic.head
    return Publication(
        frame.path, value, head.to - 1, head.at_us, head.epoch, topic.policy, options.key
    )


def describe_removal(path: str) -> Publication:
    return Publication(path, None, 0, 0, remove=True)


def describe_topic(topic: Topic) -> Iterator[Publication]:
    """What brings a worker that knows nothing to where this topic is."""
    head = topic.head
    if head is None:
        return
    kind = topic.policy.kind
    rows: list[tuple[str, Any, int]] = [("", head.value, head.at_us)]
    if kind is TopicKind.TABLE:
        rows = [(key, row, head.at_us) for key, row in head.value.items()]
    elif kind is TopicKind.SERIES:
        rows = [("", value, at_us) for _, at_us, value in head.value]
    first = head.to - len(rows)
    for offset, (key, value, at_us) in enumerate(rows, first):
        yield Publication(topic.path, value, offset, at_us, head.epoch, topic.policy, key)


def _parse_kind(number: int) -> TopicKind:
    try:
        return TopicKind(number)
    except ValueError:
        raise ProtocolError(ProtocolCode.BAD_VALUE, f"no topic kind {number}") from None


def _check_value(kind: TopicKind, value: Any, path: str) -> Any:
    wanted = bytes if kind is TopicKind.BLOB else dict
    if not isinstance(value, wanted) or (wanted is dict and not all(map(_is_text, value))):
        shape = "bytes" if wanted is bytes else "a map with text keys"
        raise ProtocolError(
            ProtocolCode.BAD_VALUE, f"'{path}' is a {kind.name.lower()}: send {shape}"
        )
    return value


def _is_text(key: Any) -> bool:
    return isinstance(key, str)
