"""What waits for one client: one pending value per topic that may be conflated. Pure.

A topic keeps the place of its first pending value: C2 A2 C1 B1 A1 (oldest right) goes out as
C2 B1 A2, and under merge(sum) as C1+C2, B1, A1+A2. What may not be conflated waits in the topic's
line; who falls too far behind there is paused and told so, in order, after what it had to get.
"""

from __future__ import annotations

import heapq
import itertools
from collections import deque
from collections.abc import Callable, Iterator

from edgewise.edge.changes import Change
from edgewise.edge.encode import topic_frame
from edgewise.edge.merge import Merge
from edgewise.edge.slot import ANY, Slot, Want
from edgewise.edge.topics import Topic
from edgewise.wire import codec
from edgewise.wire.codes import Code
from edgewise.wire.frames import Error, Gone, How, Remove

CANDIDATES_MAX = 512  # pending topics that one look takes in, oldest pending first


def _anything(_path: tuple[str, ...]) -> bool:
    return True


class Waiting:
    """Answers, and topics whose current value the client does not have yet."""

    __slots__ = (
        "_control",
        "_control_bytes_max",
        "_names",
        "_pending",
        "_queues",
        "_refused",
        "_voided",
        "_waiting",
        "control_bytes",
        "may_read",
        "overflowed",
        "overtaken",
        "queue_max",
        "slots",
        "topics_max",
    )

    def __init__(self, queue_max: int, control_bytes_max: int, topics_max: int) -> None:
        self.topics_max = topics_max
        self.queue_max = queue_max  # of one topic that may not be conflated
        self.may_read: Callable[[tuple[str, ...]], bool] = _anything
        self.slots: dict[int, Slot] = {}
        self.control_bytes = 0
        self.overflowed = False
        self.overtaken = 0
        self._control: list[bytes] = []
        # To be declared, where the client has the value already, or to be marked stale or not.
        self._names: dict[int, Slot] = {}
        # By alias; what a slot keeps in a queue of its own is under minus its alias.
        self._pending: dict[int, Slot] = {}
        self._queues = False  # whether an entry of `_pending` ever stood for several updates
        self._waiting: list[tuple[int, int]] = []  # a heap: when a rate allows which alias
        self._voided = 0  # entries of it that no longer count
        self._control_bytes_max = control_bytes_max
        self._refused = False

    @property
    def pending(self) -> int:
        count = sum(map(self._updates, self._pending)) if self._queues else len(self._pending)
        return count + len(self._waiting) - self._voided

    @property
    def conflated(self) -> int:
        """Updates that were overtaken while they waited: those gone and those still here."""
        waiting = (self.slots[entry[1]] for entry in self._waiting if self._counts(entry))
        pending = (s for key, s in self._pending.items() if key > 0 and not s.lined)
        slots = itertools.chain(pending, waiting)
        looked = itertools.islice(slots, CANDIDATES_MAX)
        return self.overtaken + sum(map(overtaken, looked))

    def waiting(self) -> Iterator[Slot]:
        """One for each update that waits."""
        for key, slot in self._pending.items():
            yield from itertools.repeat(slot, self._updates(key))

    @property
    def behind(self) -> bool:
        """Whether what waits longest was overtaken since."""
        for key, slot in self._pending.items():
            return key > 0 and overtaken(slot) > 0
        return False

    @property
    def idle(self) -> bool:
        """Nothing waits, not even for time to pass."""
        return not (self._pending or self._control or self._waiting or self._names)

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
        self.want(slot, subscription, want)
        if topic.line is not None and slot.merge is not None and not slot.lined:
            topic.eager[self] = slot  # a window of its own takes in each change
        return slot

    def want(self, slot: Slot, subscription: int, want: Want | None) -> None:
        """Another wish for a topic. A client that holds a value in another form than it is to get
        from now on gets the current one anew, and at once.
        """
        merge, gap_us, over = slot.merge, slot.gap_us, 0
        if slot.waits or slot.topic.alias in self._pending:
            over = overtaken(slot)
        slot.want(subscription, want)
        if slot.gap_us != gap_us:
            slot.due_us += slot.gap_us - gap_us
            if slot.waits:
                self._void()
                heapq.heappush(self._waiting, (slot.due_us, slot.topic.alias))
        if _name(slot.merge) != _name(merge) and slot.sent is not None:
            self._close_fold(slot)
            if not slot.paused:
                self.overtaken += over
                self._reshape(slot)

    def _reshape(self, slot: Slot) -> None:
        topic, head, base = slot.topic, slot.topic.head, slot.sent
        assert head is not None, "something was sent"
        assert base is not None, "something was sent"
        self._leave_line(slot)
        self._unwait(slot)
        start = next((c.to for c in reversed(slot.rest or ()) if c is not None), base.to)
        whole = topic.replaceable or slot.held == head.version
        slot.resumed = (How.CATCH_UP if whole else How.GAP, start)
        self._await(slot, head)

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
                self._names[topic.alias] = slot
            return
        missed = topic.since(epoch, to) if topic.policy.replays else None
        if missed:
            slot.replay_to = missed[-1].version
            slot.sent = Change(
                missed[0].version - 1, epoch, to, missed[0].at_us, value=None, arrived=None
            )
            self._queues = True
            slot.rest, slot.kept_to = deque(missed), missed[-1].version
            self._pending[-topic.alias] = slot
            return
        known = epoch <= head.epoch and to <= head.to
        whole = topic.replaceable and known
        slot.resumed = (How.CATCH_UP if whole else How.GAP, min(to, head.to))
        self._await(slot, head)

    def detach(self, topic: Topic, reason: Gone) -> None:
        slot = self.slots.pop(topic.alias, None)
        if slot is None:
            return
        had = topic.alias in self._names or bool(slot.rest) or slot.resumed is not None
        self._drop(topic.alias, slot)
        topic.slots.pop(self, None)
        topic.eager.pop(self, None)
        if had and not slot.told:
            self.say(topic_frame(topic))  # from an earlier session; this one did not name it yet
        if had or slot.told:
            self.say(codec.encode(Remove(topic.alias, reason)))

    def forget(self) -> None:
        """The session ended: no topic refers to it any more."""
        for slot in self.slots.values():
            self._close_fold(slot)
            slot.topic.slots.pop(self, None)
            slot.topic.eager.pop(self, None)
            self._leave_line(slot)
        self.slots.clear()
        self._pending.clear()
        self._names.clear()
        self._waiting.clear()
        self._voided = 0

    def offer(self, slot: Slot, change: Change, now_us: int) -> None:
        """A topic changed. Conflation happens here: the key is already there, nothing grows."""
        topic = slot.topic
        merge = slot.merge
        if topic.line is not None and merge is None:
            self._line_up(slot, change)
            return
        if topic.line is not None:
            topic.eager[self] = slot
        if topic.alias in self._pending or slot.waits:
            topic.group.conflated += topic.line is not None
            return
        slot.since_us = change.at_us
        slot.first = change.version
        if merge is not None and slot.sent is not None:
            slot.fold = topic.open_fold(change, merge)
        if now_us < slot.due_us:
            slot.waits = True
            heapq.heappush(self._waiting, (slot.due_us, topic.alias))
        else:
            self._pending[topic.alias] = slot

    def _line_up(self, slot: Slot, change: Change) -> None:
        """In the topic's line with the others; who is there needs no further offer."""
        topic = slot.topic
        if slot.paused or topic.alias in self._pending:
            return  # what is pending holds it: a first sight, or a place in the line
        if slot.sent is None:
            self._await(slot, change)
            return
        assert topic.line is not None, "only what may not be conflated is lined up"
        slot.since_us = change.at_us
        slot.lined = self._queues = True
        topic.line.join(self, slot)
        self._pending[topic.alias] = slot

    def _leave_line(self, slot: Slot) -> None:
        if slot.lined and slot.topic.line is not None:
            slot.lined = False
            slot.topic.line.leave(self)

    def pause(self, slot: Slot, head: int) -> None:
        """Too far behind for the line: what came before version `head` is kept, then it ends."""
        line, alias = slot.topic.line, slot.topic.alias
        assert line is not None, "only a line pauses"
        slot.rest = slot.rest or deque()
        slot.rest.extend(line.changes[version] for version in range(slot.held + 1, head))
        slot.rest.append(None)
        slot.kept_to, slot.paused = head - 1, True
        self._leave_line(slot)
        del self._pending[alias]
        self._pending[-alias] = slot

    def _updates(self, key: int) -> int:
        """How many updates a pending entry stands for."""
        slot = self._pending[key]
        if key < 0:
            return len(slot.rest or ())
        if not slot.lined:
            return 1
        assert slot.topic.head is not None, "a line has a head"
        return slot.topic.head.version - slot.held

    def _await(self, slot: Slot, head: Change) -> None:
        """The current value goes out when it can; later ones take its place."""
        topic = slot.topic
        slot.first = head.version
        self._pending[topic.alias] = slot
        if topic.line is None or slot.merge is None:
            topic.eager.pop(self, None)

    def stale(self, slot: Slot) -> None:
        """Its source fell silent, or speaks again: told as it is when there is room to tell it."""
        if slot.told:
            self._names[slot.topic.alias] = slot

    def _refuse_topic(self, subscription: int) -> None:
        # Said once: the client knows from then on that its picture is not whole.
        if not self._refused:
            self._refused = True
            reason = f"a session may see {self.topics_max} topics; the others are left out"
            self.say(codec.encode(Error(subscription, Code.TOO_MANY_TOPICS, reason)))

    def _close_fold(self, slot: Slot) -> None:
        if slot.fold is not None:
            slot.topic.close_fold(slot.fold)
            slot.fold = None

    def _drop(self, alias: int, slot: Slot) -> None:
        if self._pending.pop(alias, None) is not None or slot.waits:
            self.overtaken += overtaken(slot)
        slot.topic.eager[self] = slot
        self._close_fold(slot)
        self._leave_line(slot)
        self._unwait(slot)
        self._names.pop(alias, None)
        self._pending.pop(-alias, None)
        slot.rest, slot.kept_to, slot.resumed = None, 0, None

    def _unwait(self, slot: Slot) -> None:
        if slot.waits:
            slot.waits = False
            self._void()

    def _void(self) -> None:
        """One entry no longer counts. They go when they are half of all: a client that changes
        its mind again and again keeps nothing here.
        """
        self._voided += 1
        if 2 * self._voided > len(self._waiting):
            self._waiting = [*filter(self._counts, dict.fromkeys(self._waiting))]
            heapq.heapify(self._waiting)
            self._voided = 0

    def _counts(self, entry: tuple[int, int]) -> bool:
        slot = self.slots.get(entry[1])
        return slot is not None and slot.waits and slot.due_us == entry[0]


def _name(merge: Merge | None) -> str:
    return "" if merge is None else merge.name


def overtaken(slot: Slot) -> int:
    """Changes since the one that made the topic pending."""
    topic = slot.topic
    head = topic.head
    if head is None or (slot.merge is None and not topic.conflatable):
        return 0  # what comes before the first sight of it was not for this client
    return head.version - slot.first
