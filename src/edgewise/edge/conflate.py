"""The virtual queue of one client: one pending value per topic that may be conflated. Pure.

A topic keeps the place of its first pending value: C2 A2 C1 B1 A1 (oldest right) goes out as
C2 B1 A2. What may not be conflated waits in a bounded queue in order; when that is full the topic
is paused for this client, and the client is told, in order, after what was queued.

Nothing is encoded here before `take`, and nothing is taken before the socket can have it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable

from edgewise.edge.encode import snapshot_frame, step_frame, topic_frame
from edgewise.edge.topics import Change, Topic
from edgewise.wire import codec
from edgewise.wire.codes import Code
from edgewise.wire.frames import Error, Gone, Paused, Remove, Stale


class Slot:
    """One client's place on one topic. `sent` is the change the client holds."""

    __slots__ = ("paused", "queued", "sent", "subscriptions", "told", "topic")

    def __init__(self, topic: Topic) -> None:
        self.topic = topic
        self.sent: Change | None = None
        self.told = False
        self.paused = False
        self.queued = 0
        self.subscriptions: set[int] = set()


class Outbox:
    """Control frames first, then pending topics in the order of their first pending value."""

    def __init__(self, queue_max: int, control_bytes_max: int, topics_max: int) -> None:
        self.topics_max = topics_max
        self.slots: dict[int, Slot] = {}
        self.control_bytes = 0
        self.overflowed = False
        self.updates_sent = 0
        self.conflated = 0
        self._control: deque[bytes] = deque()
        self._pending: dict[Hashable, tuple[Slot, Change | None]] = {}
        self._queue_max = queue_max
        self._refused = False
        self._control_bytes_max = control_bytes_max

    @property
    def pending(self) -> int:
        return len(self._pending)

    def __bool__(self) -> bool:
        return bool(self._control or self._pending)

    def say(self, frame: bytes) -> None:
        """An answer. A client that never reads its answers overflows and is closed for it."""
        self._control.append(frame)
        self.control_bytes += len(frame)
        if self.control_bytes > self._control_bytes_max:
            self.overflowed = True

    def attach(self, topic: Topic, subscription: int) -> None:
        slot = self.slots.get(topic.alias)
        if slot is None:
            if len(self.slots) >= self.topics_max:
                self._refuse_topic(subscription)
                return
            slot = self.slots[topic.alias] = Slot(topic)
            topic.slots[self] = slot
            if topic.head is not None:
                self._pending[topic.alias] = (slot, None)
        slot.subscriptions.add(subscription)

    def detach(self, topic: Topic, reason: Gone) -> None:
        slot = self.slots.pop(topic.alias, None)
        if slot is None:
            return
        topic.slots.pop(self, None)
        self._drop(topic.alias, slot)
        if slot.told:
            self.say(codec.encode(Remove(topic.alias, reason)))

    def offer(self, slot: Slot, change: Change) -> None:
        """A topic changed. Conflation happens here: the key is already there, nothing grows."""
        topic = slot.topic
        if topic.policy.conflatable or (slot.sent is None and topic.alias in self._pending):
            if topic.alias in self._pending:
                self.conflated += 1
            else:
                self._pending[topic.alias] = (slot, None)
        elif not slot.paused:
            self._enqueue(slot, change)

    def stale(self, slot: Slot, since_us: int) -> None:
        if slot.told:
            self.say(codec.encode(Stale(slot.topic.alias, since_us)))

    def take(self, bytes_max: int) -> list[bytes]:
        """Frames for one write: at least one when there is any, then up to `bytes_max`."""
        out: list[bytes] = []
        size = 0
        while self._control and size < bytes_max:
            frame = self._control.popleft()
            self.control_bytes -= len(frame)
            size += len(frame)
            out.append(frame)
        while self._pending and size < bytes_max:
            key = next(iter(self._pending))
            slot, change = self._pending.pop(key)
            start = len(out)
            self._emit(slot, change, out)
            size += sum(map(len, out[start:]))
        return out

    def _refuse_topic(self, subscription: int) -> None:
        # Said once: the client knows from then on that its picture is not whole.
        if not self._refused:
            self._refused = True
            reason = f"a session may see {self.topics_max} topics; the others are left out"
            self.say(codec.encode(Error(subscription, Code.TOO_MANY_TOPICS, reason)))

    def _enqueue(self, slot: Slot, change: Change) -> None:
        if slot.queued >= self._queue_max:
            slot.paused = True
            self._pending[slot.topic.alias, "paused"] = (slot, None)
            return
        slot.queued += 1
        self._pending[slot.topic.alias, change.version] = (slot, change)

    def _emit(self, slot: Slot, change: Change | None, out: list[bytes]) -> None:
        topic = slot.topic
        if change is None and slot.paused:
            out.append(codec.encode(Paused(topic.alias, Code.QUEUE_FULL)))
            return
        if change is None:
            change = topic.head
            assert change is not None, "a topic is only pending when it has a value"
        else:
            slot.queued -= 1
        if not slot.told:
            out.append(topic_frame(topic))
        if slot.sent is None:
            out.append(snapshot_frame(topic, change))
        else:
            out.append(step_frame(topic, slot.sent, change))
        if not slot.told and topic.stale_us:
            out.append(codec.encode(Stale(topic.alias, topic.stale_us)))
        slot.told = True
        slot.sent = change
        self.updates_sent += 1

    def _drop(self, alias: int, slot: Slot) -> None:
        self._pending.pop(alias, None)
        if slot.queued or slot.paused:
            mine = [k for k in self._pending if isinstance(k, tuple) and k[0] == alias]
            for key in mine:
                del self._pending[key]
