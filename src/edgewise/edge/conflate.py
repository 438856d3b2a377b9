"""What leaves for one client, and in which order. Pure.

Nothing is encoded before `take`, and nothing is taken before the socket can have it. When not
everything fits, the next topic is the one with the largest weight x age / bytes.
"""

from __future__ import annotations

import heapq
import itertools
from collections import deque
from collections.abc import Hashable, Iterator, Sequence

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
from edgewise.edge.topics import Change
from edgewise.edge.waiting import CANDIDATES_MAX, Waiting, overtaken
from edgewise.wire import codec
from edgewise.wire.codes import Code
from edgewise.wire.frames import How, Paused, Stale

SAMPLE_EVERY = 16  # updates; besides, one sample is always on its way
SAMPLES_MAX = 64  # updates whose age is measured at the next acknowledgement
RUNS_MAX = 16  # encodings of the way to one head that are kept


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
        if self._control:
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
        plain = self.budget is None and not self._waiting and size < bytes_max
        if plain and len(pending) <= 1:
            # One topic for many clients is the common case, and the hot one.
            if size:
                out, self._control = self._control, out
                self.bytes_sent += size
                self.control_bytes = 0
            if pending:
                _, (slot, change) = pending.popitem()
                self._emit(slot, change, out, now_us)
            return out
        if plain and not size:
            run = self._run(bytes_max)
            if run:
                return run
        self._choose(bytes_max, now_us, out)
        return out

    def _choose(self, bytes_max: int, now_us: int, out: list[bytes]) -> None:
        """What fits, by urgency when not everything does."""
        size = self._answers(bytes_max, out)
        self._wake(now_us)
        updates_max = 1 << 60
        if self.budget is not None:
            bytes_max = min(bytes_max, size + self.budget.bytes_left(now_us))
            updates_max = self.budget.updates_left(now_us)
        updates = 0
        while self._pending and size < bytes_max and updates < updates_max:
            for key in self._order(bytes_max - size, now_us):
                slot, change = self._pending.pop(key)
                size += self._emit(slot, change, out, now_us)
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

    def _run(self, bytes_max: int) -> tuple[bytes, ...]:
        """What waits and fits, when all of it is one unconflated topic: clients that are equally
        far behind share it. Empty when this is not the case.
        """
        pending = self._pending
        slot, _ = next(iter(pending.values()))
        topic, base, count = slot.topic, slot.sent, len(pending)
        last = topic.head
        if (
            base is None
            or last is None
            or not slot.told
            or slot.queued != count
            or last.version - base.version != count
            or base.version < slot.replay_to
        ):
            return ()
        fit = min(count, max(1, bytes_max // topic.size))
        if fit < count:
            last = next(itertools.islice(pending.values(), fit - 1, None))[1]
            assert last is not None, "what is queued is a change"
        frames = last.runs.get(base.version)
        if frames is None:
            queued = itertools.islice(pending.values(), fit)
            changes = [base, *(c for _, c in queued if c is not None)]
            frames = tuple(step_frame(topic, a, b) for a, b in itertools.pairwise(changes))
            if len(last.runs) < RUNS_MAX:
                last.runs[base.version] = frames
        if fit == count:
            pending.clear()
        else:
            for key in [*itertools.islice(pending, fit)]:
                del pending[key]
        slot.queued -= fit
        self._sent(slot, last, sum(map(len, frames)), fit)
        return frames

    def acknowledged(self, updates: int) -> Iterator[Sample]:
        """The samples among the first `updates` updates of this session."""
        while self._samples and self._samples[0][0] <= updates:
            yield self._samples.popleft()

    def _order(self, room: int, now_us: int) -> list[Hashable]:
        """In order of arrival when all fit, else by weight x age / bytes."""
        keys: list[Hashable] = []
        first: dict[int, Hashable] = {}
        total = 0
        for key, (slot, _) in self._pending.items():
            keys.append(key)
            first.setdefault(slot.topic.alias, key)
            total += slot.topic.size
            if len(keys) >= CANDIDATES_MAX:
                break
        if total <= room or len(first) == 1:
            return keys
        # What may not be conflated stays in order within its topic: only the first may be chosen.
        return sorted(first.values(), key=lambda k: -self._urgency(self._pending[k][0], now_us))

    @staticmethod
    def _urgency(slot: Slot, now_us: int) -> float:
        # Age counts from the moment the client's value was overtaken: a topic that seldom changes
        # is not stale only because its value is old.
        return slot.weight * max(1, now_us - slot.since_us) / slot.topic.size

    def _wake(self, now_us: int) -> None:
        while self._waiting and self._waiting[0][0] <= now_us:
            _, alias = heapq.heappop(self._waiting)
            slot = self.slots.get(alias)
            if slot is not None and slot.waits:
                slot.waits = False
                self._pending[alias] = (slot, None)

    def _emit(self, slot: Slot, change: Change | None, out: list[bytes], now_us: int) -> int:
        topic = slot.topic
        if slot.gap_us:
            slot.due_us = now_us + slot.gap_us
        if not slot.told or slot.paused:
            return self._emit_around(slot, change, out)
        held = topic.head if change is None else change
        assert held is not None, "a topic is only pending when it has a value"
        base = slot.sent
        if change is not None and base is not None and change.version > slot.replay_to:
            slot.queued -= 1
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
        """First sight of a topic, or its last before a pause."""
        topic, start = slot.topic, len(out)
        if change is None and slot.paused:
            out.append(codec.encode(Paused(topic.alias, Code.QUEUE_FULL)))
            return len(out[-1])
        if not slot.told:
            out.append(topic_frame(topic))
        held = topic.head if change is None else change
        assert held is not None, "a topic is only pending when it has a value"
        out.append(self._frame(slot, change, held))
        topic.size = len(out[-1])
        if topic.stale_us and not slot.told:
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
        topic = slot.topic
        base = slot.sent
        if change is None:
            self.overtaken += overtaken(slot)
            topic.eager[self] = slot
        if change is not None:
            slot.queued -= 1
            if change.version <= slot.replay_to and slot.sent is not None:
                value = change.value if topic.merge is None else topic.merge.show(change.input)
                return value_frame(
                    topic, change, How.REPLAY, start=slot.sent.to, count=1, value=value
                )
        elif slot.resumed is not None:
            (how, start), slot.resumed = slot.resumed, None
            self._close_fold(slot)
            value = held.value if topic.merge is None else topic.merge.show(held.value)
            return value_frame(topic, held, how, start=start, count=0, value=value)
        elif slot.merge is not None and (slot.sent is not None or slot.merge is not topic.merge):
            fold = slot.fold or topic.open_fold(held, slot.merge)
            slot.fold = fold
            frame = fold_frame(topic, slot.sent, fold)
            self._close_fold(slot)
            return frame
        if base is None:
            return snapshot_frame(topic, held, slot.last)
        return step_frame(topic, base, held)
