"""The virtual queue of one client: one pending value per topic that may be conflated. Pure.

A topic keeps the place of its first pending value: C2 A2 C1 B1 A1 (oldest right) goes out as
C2 B1 A2, and under merge(sum) as C1+C2, B1, A1+A2. What may not be conflated waits in a bounded
queue in order; when that is full the topic is paused for this client, and the client is told, in
order, after what was queued.

Nothing is encoded here before `take`, and nothing is taken before the socket can have it. When not
everything fits, the next topic is the one with the largest weight x age / bytes.
"""

from __future__ import annotations

import heapq
import itertools
from collections import deque
from collections.abc import Callable, Hashable, Iterator, Sequence

from edgewise.edge.encode import (
    first_step_frame,
    fold_frame,
    snapshot_frame,
    step_frame,
    topic_frame,
    value_frame,
)
from edgewise.edge.pace import Budget
from edgewise.edge.slot import ANY, Slot, Want
from edgewise.edge.topics import Change, Topic
from edgewise.wire import codec
from edgewise.wire.codes import Code
from edgewise.wire.frames import Error, Gone, How, Paused, Remove, Stale

SAMPLE_EVERY = 16  # updates; besides, one sample is always on its way
SAMPLES_MAX = 64  # updates whose age is measured at the next acknowledgement
RUNS_MAX = 16  # encodings of the way to one head that are kept
CANDIDATES_MAX = 512  # pending topics that one choice looks at, oldest pending first


Sample = tuple[int, int, str]  # number of the update, its capture time, its topic's first segment


def _anything(_path: tuple[str, ...]) -> bool:
    return True


class Outbox:
    """Control frames first, then pending topics."""

    __slots__ = (
        "_control",
        "_control_bytes_max",
        "_pending",
        "_queue_max",
        "_refused",
        "_samples",
        "_waiting",
        "budget",
        "bytes_sent",
        "control_bytes",
        "may_read",
        "overflowed",
        "overtaken",
        "slots",
        "topics_max",
        "updates_sent",
    )

    def __init__(self, queue_max: int, control_bytes_max: int, topics_max: int) -> None:
        self.topics_max = topics_max
        self.may_read: Callable[[tuple[str, ...]], bool] = _anything
        self.slots: dict[int, Slot] = {}
        self.budget: Budget | None = None
        self.control_bytes = 0
        self.overflowed = False
        self.updates_sent = 0
        self.bytes_sent = 0
        self.overtaken = 0
        self._control: list[bytes] = []
        self._pending: dict[Hashable, tuple[Slot, Change | None]] = {}
        self._waiting: list[tuple[int, int]] = []
        self._queue_max = queue_max
        self._control_bytes_max = control_bytes_max
        self._refused = False
        self._samples: deque[Sample] = deque()

    @property
    def pending(self) -> int:
        return len(self._pending) + len(self._waiting)

    @property
    def conflated(self) -> int:
        """Updates that were overtaken while they waited: those gone and those still here."""
        waiting = (self.slots.get(alias) for _, alias in self._waiting)
        slots = itertools.chain((s for s, change in self._pending.values() if not change), waiting)
        looked = itertools.islice(slots, CANDIDATES_MAX)
        return self.overtaken + sum(_overtaken(slot) for slot in looked if slot is not None)

    def waiting(self) -> Iterator[Slot]:
        """One for each update that waits."""
        return (slot for slot, _ in self._pending.values())

    @property
    def behind(self) -> bool:
        """Whether what waits longest was overtaken since."""
        for slot, change in self._pending.values():
            return change is None and _overtaken(slot) > 0
        return False

    @property
    def idle(self) -> bool:
        """Nothing waits, not even for time to pass."""
        return not (self._pending or self._control or self._waiting)

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

    def say(self, frame: bytes) -> None:
        """An answer. A client that never reads its answers overflows and is closed for it."""
        self._control.append(frame)
        self.control_bytes += len(frame)
        if self.control_bytes > self._control_bytes_max:
            self.overflowed = True

    def attach(self, topic: Topic, subscription: int, want: Want = ANY) -> Slot | None:
        """See a topic; its current value becomes pending. None when the client may not."""
        if not self.may_read(topic.segments):
            return None
        slot = self.slots.get(topic.alias)
        if slot is None:
            if len(self.slots) >= self.topics_max:
                self._refuse_topic(subscription)
                return None
            slot = self.slots[topic.alias] = Slot(topic)
            topic.slots[self] = slot
            if topic.head is not None:
                slot.since_us = topic.head.at_us
                self._await(slot, topic.head)
            else:
                topic.eager[self] = slot
        slot.want(subscription, want)
        return slot

    def resume(self, slot: Slot, epoch: int, to: int) -> None:
        """The client holds this position: give it what it missed, and say how exact that is."""
        topic = slot.topic
        head = topic.head
        self._drop(topic.alias, slot)
        slot.paused = False
        if head is None:
            return
        if (epoch, to) == (head.epoch, head.to):
            slot.sent = head
            if not slot.told:
                slot.told = True
                self.say(topic_frame(topic))
            return
        missed = topic.since(epoch, to) if topic.policy.replays else None
        if missed:
            slot.replay_to = missed[-1].version
            slot.sent = Change(
                missed[0].version - 1, epoch, to, missed[0].at_us, value=None, arrived=None
            )
            for change in missed:
                slot.queued += 1
                self._pending[topic.alias, change.version] = (slot, change)
            return
        whole = topic.policy.conflatable and topic.policy.recovery != "precise"
        known = epoch <= head.epoch and to <= head.to
        slot.resumed = (How.CATCH_UP if whole and known else How.GAP, min(to, head.to))
        self._await(slot, head)

    def detach(self, topic: Topic, reason: Gone) -> None:
        slot = self.slots.pop(topic.alias, None)
        if slot is None:
            return
        self._drop(topic.alias, slot)
        topic.slots.pop(self, None)
        topic.eager.pop(self, None)
        if slot.told:
            self.say(codec.encode(Remove(topic.alias, reason)))

    def forget(self) -> None:
        """The session ended: no topic refers to it any more."""
        for slot in self.slots.values():
            self._close_fold(slot)
            slot.topic.slots.pop(self, None)
            slot.topic.eager.pop(self, None)
        self.slots.clear()
        self._pending.clear()
        self._waiting.clear()

    def offer(self, slot: Slot, change: Change, now_us: int) -> None:
        """A topic changed. Conflation happens here: the key is already there, nothing grows."""
        topic = slot.topic
        merge = slot.merge
        if not topic.conflatable and merge is None:
            if slot.sent is None and topic.alias in self._pending:
                return  # the snapshot to come will hold it
            if slot.paused:
                return
            if slot.queued < self._queue_max:
                if not slot.queued:
                    slot.since_us = change.at_us
                slot.queued += 1
                self._pending[topic.alias, change.version] = (slot, change)
            else:
                slot.paused = True
                self._pending[topic.alias, "paused"] = (slot, None)
            return
        if topic.alias in self._pending or slot.waits:
            topic.group.conflated += not topic.conflatable  # a window of its own
            return
        slot.since_us = change.at_us
        slot.first = change.version
        if merge is not None and slot.sent is not None:
            slot.fold = topic.open_fold(change, merge)
        if now_us < slot.due_us:
            slot.waits = True
            heapq.heappush(self._waiting, (slot.due_us, topic.alias))
        else:
            self._pending[topic.alias] = (slot, None)

    def _await(self, slot: Slot, head: Change) -> None:
        """The current value goes out when it can; later ones take its place."""
        topic = slot.topic
        slot.first = head.version
        self._pending[topic.alias] = (slot, None)
        if topic.conflatable:
            topic.eager.pop(self, None)

    def stale(self, slot: Slot, since_us: int) -> None:
        if slot.told:
            self.say(codec.encode(Stale(slot.topic.alias, since_us)))

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

    def _refuse_topic(self, subscription: int) -> None:
        # Said once: the client knows from then on that its picture is not whole.
        if not self._refused:
            self._refused = True
            reason = f"a session may see {self.topics_max} topics; the others are left out"
            self.say(codec.encode(Error(subscription, Code.TOO_MANY_TOPICS, reason)))

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
            self.overtaken += _overtaken(slot)
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

    def _close_fold(self, slot: Slot) -> None:
        if slot.fold is not None:
            slot.topic.close_fold(slot.fold)
            slot.fold = None

    def _drop(self, alias: int, slot: Slot) -> None:
        if self._pending.pop(alias, None) is not None or slot.waits:
            self.overtaken += _overtaken(slot)
        slot.topic.eager[self] = slot
        self._close_fold(slot)
        slot.waits = False
        if slot.queued or slot.paused:
            for key in list(self._keys_of(alias)):
                del self._pending[key]
            slot.queued = 0

    def _keys_of(self, alias: int) -> Iterator[Hashable]:
        return (k for k in self._pending if isinstance(k, tuple) and k[0] == alias)


def _overtaken(slot: Slot) -> int:
    """Changes since the one that made the topic pending."""
    topic = slot.topic
    head = topic.head
    if head is None or (slot.merge is None and not topic.conflatable):
        return 0  # what comes before the first sight of it was not for this client
    return head.version - slot.first
