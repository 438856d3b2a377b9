"""Keep what goes to a client before all updates: answers, names of topics, staleness. Pure.

Answers are frames already, bounded in bytes: a client that never reads them overflows this and is
closed for it. Names and staleness are encoded when there is room for them, one entry per topic
however often it changed, so a client that does not read cannot make them grow. The outbox uses it.
"""

from __future__ import annotations

from edgewise.edge.sessions.encode import encode_topic
from edgewise.edge.sessions.subscription import TopicSubscription
from edgewise.wire import codec
from edgewise.wire.codes import ProtocolCode
from edgewise.wire.frames import Error, Stale


class ControlQueue:
    """`announcements` are topics by alias: to be named, where the client has the value already, or
    to be called stale or fresh.
    """

    __slots__ = ("_bytes_max", "_frames", "_refused", "announcements", "bytes")

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._frames: list[bytes] = []
        self._refused = False
        self.bytes = 0  # of the answers
        self.announcements: dict[int, TopicSubscription] = {}

    @property
    def overflowed(self) -> bool:
        return self.bytes > self._bytes_max

    def add(self, frame: bytes) -> None:
        self._frames.append(frame)
        self.bytes += len(frame)

    def announce_stale(self, subscription: TopicSubscription) -> None:
        """It became stale or fresh: sent as it is when there is room to send it."""
        if subscription.announced:
            self.announcements[subscription.topic.alias] = subscription

    def refuse_topic(self, subscription_id: int, topics_max: int) -> None:
        """Said once: the client knows from then on that its picture is not whole."""
        if not self._refused:
            self._refused = True
            reason = f"a session may see {topics_max} topics; the others are left out"
            self.add(codec.encode(Error(subscription_id, ProtocolCode.TOO_MANY_TOPICS, reason)))

    def take_answers(self) -> list[bytes]:
        """All of them, when they are known to fit."""
        frames, self._frames, self.bytes = self._frames, [], 0
        return frames

    def take(self, bytes_max: int, out: list[bytes]) -> int:
        """What fits, answers first, and how many bytes that is."""
        size = count = 0
        for frame in self._frames:
            if size >= bytes_max:
                break
            size += len(frame)
            count += 1
            out.append(frame)
        del self._frames[:count]
        self.bytes -= size
        while self.announcements and size < bytes_max:
            alias = next(iter(self.announcements))
            size += _write_announcement(self.announcements.pop(alias), out)
        return size


def _write_announcement(subscription: TopicSubscription, out: list[bytes]) -> int:
    """The name of a topic that the client has, and whether its value still holds."""
    topic, start = subscription.topic, len(out)
    if not subscription.announced:
        out.append(encode_topic(topic))
    if subscription.announced or topic.stale_us:
        out.append(codec.encode(Stale(topic.alias, topic.stale_us)))
    subscription.announced = True
    return sum(map(len, out[start:]))
