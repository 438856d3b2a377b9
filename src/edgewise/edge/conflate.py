"""What leaves for one client, and in which order. Pure.

Nothing is encoded before `take`, and nothing is taken before the socket can have it. When not
everything fits, the next topic is the one with the largest weight x age / bytes.
"""

from __future__ import annotations

import heapq
import itertools
from collections import deque
from collections.abc import Iterator, Sequence
from operator import itemgetter
from typing import Any

from edgewise.edge.changes import Change, Run
from edgewise.edge.encode import (
    first_step_frame,
    fold_frame,
    snapshot_frame,
    step_frame,
    topic_frame,
    value_frame,
)
from edgewise.edge.pace import Budget
from edgewise.edge.slot import Slot
from edgewise.edge.topics import Topic
from edgewise.edge.waiting import CANDIDATES_MAX, Waiting, overtaken
from edgewise.wire import codec
from edgewise.wire.codes import Code
from edgewise.wire.frames import How, Paused, Stale

SAMPLE_EVERY = 16  # updates; besides, one sample is always on its way
SAMPLES_MAX = 64  # updates whose age is measured at the next acknowledgement


Sample = tuple[int, int, str]  # number of the update, its capture time, its topic's first segment


class Outbox(Waiting):
    """Control frames first, then pending topics."""

    __slots__ = ("_samples", "budget", "bytes_sent", "updates_sent")

    def __init__(self, queue_max: int, control_bytes_max: int, topics_max: int) -> None:
        super().__init__(queue_max, control_bytes_max, topics_max)
        self.budget: Budget | None = None
        self.updates_sent = 0
        self.bytes_sent = 0
        self._samples: deque[Sample] = deque()

    def ready(self, now_us: int) -> bool:
        """Whether `take` would give anything."""
        if self._control or self._names:
            return True
        if not self._pending and not (self._waiting and self._waiting[0][0] <= now_us):
            return False
        return self.budget is None or self.budget.bytes_left(now_us) > 0

    def wake_us(self) -> int:
        """When `ready` may become true by time alone; 0 when only a change can do it."""
        if self._pending:
            return self.budget.ready_us() if self.budget is not None else 0
        return self._waiting[0][0] if self._waiting else 0

    def take(self, bytes_max: int, now_us: int) -> Sequence[bytes]:
        """Frames for one write: at least one when there is any, then up to `bytes_max`."""
        out: list[bytes] = []
        pending, size = self._pending, self.control_bytes
        plain = self.budget is None and not self._waiting and not self._names
        if plain and size < bytes_max and len(pending) <= 1:
            # One topic for many clients is the common case, and the hot one.
            slot = next(iter(pending.values()), None)
            if slot is None or not slot.rest:
                if slot is not None and slot.lined and not size:
                    return self._run(slot, bytes_max)
                if size:
                    out, self._control = self._control, out
                    self.bytes_sent += size
                    self.control_bytes = 0
                if slot is not None:
                    self._next(slot.topic.alias, slot, out, now_us)
                return out
        self._choose(bytes_max, now_us, out)
        return out

    def _choose(self, bytes_max: int, now_us: int, out: list[bytes]) -> None:
        """What fits, by urgency when not everything does."""
        size = self._answers(bytes_max, out)
        size += self._declared(bytes_max - size, out)
        self._wake(now_us)
        updates_max = 1 << 60
        if self.budget is not None:
            bytes_max = min(bytes_max, size + self.budget.bytes_left(now_us))
            updates_max = self.budget.updates_left(now_us)
        updates = 0
        while self._pending and size < bytes_max and updates < updates_max:
            for key in self._order(bytes_max - size, now_us):
                size += self._next(key, self._pending[key], out, now_us)
                updates += 1
                if size >= bytes_max or updates >= updates_max:
                    break
        if self.budget is not None:
            self.budget.spend(size, updates)

    def _answers(self, bytes_max: int, out: list[bytes]) -> int:
        size, count = 0, 0
        for frame in self._control:
            if size >= bytes_max:
                break
            size += len(frame)
            count += 1
            out.append(frame)
        del self._control[:count]
        self.control_bytes -= size
        self.bytes_sent += size
        return size

    def _declared(self, bytes_max: int, out: list[bytes]) -> int:
        """The names of what the client has already, and whether it still holds."""
        size = 0
        while self._names and size < bytes_max:
            alias = next(iter(self._names))
            slot = self._names.pop(alias)
            start, stale_us = len(out), slot.topic.stale_us
            if not slot.told:
                out.append(topic_frame(slot.topic))
            if slot.told or stale_us:
                out.append(codec.encode(Stale(alias, stale_us)))
            slot.told = True
            size += sum(map(len, out[start:]))
        self.bytes_sent += size
        return size

    def _next(self, key: int, slot: Slot, out: list[bytes], now_us: int) -> int:
        """One update of a pending entry."""
        if slot.rest and key < 0:
            change = slot.rest.popleft()
            if not slot.rest:
                del self._pending[key]
            if change is None:
                out.append(codec.encode(Paused(slot.topic.alias, Code.QUEUE_FULL)))
                return len(out[-1])
            return self._emit(slot, change, out, now_us)
        if not slot.lined:
            del self._pending[key]
            return self._emit(slot, None, out, now_us)
        assert slot.topic.line is not None, "it is lined up there"
        size = self._emit(slot, slot.topic.line.changes[slot.held + 1], out, now_us)
        self._step(slot)
        return size

    def _step(self, slot: Slot) -> None:
        """The client got what was next for it in the line."""
        topic, line = slot.topic, slot.topic.line
        assert line is not None, "it is lined up there"
        assert slot.sent is not None, "what was sent is known"
        following = line.changes.get(slot.sent.version + 1)
        if following is not None:
            slot.since_us = following.at_us
        else:
            del self._pending[topic.alias]
            topic.eager[self] = slot
            self._leave_line(slot)

    def _run(self, slot: Slot, bytes_max: int) -> Run:
        """What waits in the line and fits, when nothing else waits: clients that are equally far
        behind share it, and those further behind meet them where a write ends.
        """
        topic, base = slot.topic, slot.sent
        line, head = topic.line, topic.head
        assert line is not None, "it is lined up there"
        assert base is not None, "the line is behind the first sight"
        assert head is not None, "a line has a head"
        first, last = base.version, head.version
        fit = max(1, bytes_max // topic.size)
        if last - first > fit:
            last = first + fit - first % fit
        run = line.runs.get((first, last))
        if run is None:
            run = _encoded(topic, base, last, bytes_max)
            topic.size = len(run[-1])
            line.keep(first, last, run)
        self._sent(slot, run.last, run.size, len(run))
        self._step(slot)
        return run

    def acknowledged(self, updates: int) -> Iterator[Sample]:
        """The samples among the first `updates` updates of this session."""
        while self._samples and self._samples[0][0] <= updates:
            yield self._samples.popleft()

    def _order(self, room: int, now_us: int) -> list[int]:
        """In order of arrival when all fit, else by weight x age / bytes."""
        came: list[tuple[int, int]] = []
        first: dict[int, int] = {}
        latest: dict[int, int] = {}  # a topic stays in order, whatever its capture times say
        total = queues = 0
        for key, slot in self._pending.items():
            alias = abs(key)
            first.setdefault(alias, key)
            times = [slot.since_us]
            if key < 0 or slot.lined:
                times = [*itertools.islice(self._times(key, slot), CANDIDATES_MAX)]
                queues += 1
            for at_us in times:
                latest[alias] = max(at_us, latest.get(alias, 0))
                came.append((latest[alias], key))
            total += slot.topic.size * len(times)
            if len(came) >= CANDIDATES_MAX:
                break
        if total <= room or len(first) == 1:
            if queues > 1 and len(first) > 1:
                came.sort(key=itemgetter(0))
            return [key for _, key in came]
        # What may not be conflated stays in order within its topic: only the first may be chosen.
        return sorted(first.values(), key=lambda k: -self._urgency(self._pending[k], now_us))

    @staticmethod
    def _times(key: int, slot: Slot) -> Iterator[int]:
        """When what waits in a queue was captured."""
        if key < 0:
            last = 0
            for change in slot.rest or ():
                last = last if change is None else change.at_us
                yield last
            return
        line, head = slot.topic.line, slot.topic.head
        assert line is not None, "it is lined up there"
        assert head is not None, "a line has a head"
        for version in range(slot.held + 1, head.version + 1):
            yield line.changes[version].at_us

    @staticmethod
    def _urgency(slot: Slot, now_us: int) -> float:
        # Age counts from the moment the client's value was overtaken: a topic that seldom changes
        # is not stale only because its value is old.
        return slot.weight * max(1, now_us - slot.since_us) / slot.topic.size

    def _wake(self, now_us: int) -> None:
        while self._waiting and self._waiting[0][0] <= now_us:
            entry = heapq.heappop(self._waiting)
            if self._counts(entry):
                slot = self._pending[entry[1]] = self.slots[entry[1]]
                slot.waits = False
            else:
                self._voided -= 1

    def _emit(self, slot: Slot, change: Change | None, out: list[bytes], now_us: int) -> int:
        topic = slot.topic
        if slot.gap_us:
            slot.due_us = now_us + slot.gap_us
        if not slot.told:
            return self._emit_around(slot, change, out)
        held = topic.head if change is None else change
        assert held is not None, "a topic is only pending when it has a value"
        base = slot.sent
        if change is not None and base is not None and change.version > slot.replay_to:
            frame = change.frames.get(base.version) or first_step_frame(topic, base, change)
        elif change is None and base and slot.merge is None and slot.resumed is None:
            self.overtaken += held.version - slot.first
            topic.eager[self] = slot
            frame = held.frames.get(base.version) or first_step_frame(topic, base, held)
        else:
            frame = self._frame(slot, change, held)
        out.append(frame)
        size = len(frame)
        topic.size = size
        self._sent(slot, held, size, 1)
        return size

    def _emit_around(self, slot: Slot, change: Change | None, out: list[bytes]) -> int:
        """First sight of a topic."""
        topic, start = slot.topic, len(out)
        self._names.pop(topic.alias, None)
        out.append(topic_frame(topic))
        held = topic.head if change is None else change
        assert held is not None, "a topic is only pending when it has a value"
        out.append(self._frame(slot, change, held))
        topic.size = len(out[-1])
        if topic.stale_us:
            out.append(codec.encode(Stale(topic.alias, topic.stale_us)))
        size = sum(map(len, out[start:]))
        self._sent(slot, held, size, 1)
        slot.told = True
        return size

    def _sent(self, slot: Slot, held: Change, size: int, count: int) -> None:
        topic = slot.topic
        group = topic.group
        group.updates += count
        group.bytes += size
        self.bytes_sent += size
        before = self.updates_sent
        self.updates_sent = updates = before + count
        if slot.told and (
            not self._samples
            or (
                updates // SAMPLE_EVERY != before // SAMPLE_EVERY
                and len(self._samples) < SAMPLES_MAX
            )
        ):
            # First sight of a topic says how old its value is, not how long we took.
            self._samples.append((updates, held.at_us, group.name))
        slot.sent = held

    def _frame(self, slot: Slot, change: Change | None, held: Change) -> bytes:
        topic, base = slot.topic, slot.sent
        if change is None:
            self.overtaken += overtaken(slot)
            topic.eager[self] = slot
            if slot.resumed is not None:
                (how, start), slot.resumed = slot.resumed, None
                self._close_fold(slot)
                value = _formed(slot, held.value)
                return value_frame(topic, held, how, start=start, count=0, value=value)
            if slot.merge is not None and (base is not None or slot.merge is not topic.merge):
                slot.fold = slot.fold or topic.open_fold(held, slot.merge)
                frame = fold_frame(topic, base, slot.fold)
                self._close_fold(slot)
                return frame
        elif change.version <= slot.replay_to and base is not None:
            value = _formed(slot, change.value if topic.merge is None else change.input)
            return value_frame(topic, change, How.REPLAY, start=base.to, count=1, value=value)
        if base is None:
            return snapshot_frame(topic, held, slot.last)
        return step_frame(topic, base, held)


def _formed(slot: Slot, value: Any) -> Any:
    """One state or change of a topic as the client wants to see it."""
    topic, own = slot.topic, slot.merge
    value = topic.shown(value)
    return value if own is None or own is topic.merge else own.show(own.lift(value))


def _encoded(topic: Topic, base: Change, last: int, bytes_max: int) -> Run:
    """What leads from `base` to version `last`; not more than fits, but one step at least."""
    line = topic.line
    assert line is not None, "only a line is encoded in runs"
    frames: list[bytes] = []
    size = 0
    for version in range(base.version + 1, last + 1):
        change = line.changes[version]
        frames.append(step_frame(topic, base, change))
        size += len(frames[-1])
        base = change
        if size >= bytes_max:
            break
    return Run(frames, base)
