"""Hold what is the same for every fragment: causes, timers, keys, rows.

State of a key is a list `S`: cell 0 holds its pending timers, cell 1 the key itself, the rest
belongs to the operators, each to its own cell. Everything in a cell is plain data (numbers, text,
tuples, lists, deques, dicts), so `serialize` can write any of it. An operator's settings are not
state: they live in the objects that the generated code creates once.

    S = [{timer: payload}, key, cell 2, cell 3, ...]

A timer is `(due, offset, node, n)`: due time, offset of the event that armed it, operator, and a
counter that keeps two timers of one operator apart. They fire in this order, which does not depend
on how input is cut into runs or keys are spread over kernels. A timer armed for a moment that has
passed fires as soon as time moves again. A periodic timer sleeps while it has nothing to do: its
operator keeps the rest of the timer and arms it again for the tick it would have come to, so time
may leap by years.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import blake2b
from heapq import heappop, heappush
from typing import Any

from edgewise.kernel.api import OutColumns

TIMERS, KEY, FIRST_CELL = 0, 1, 2
CURRENT, EXPIRED, RESET = 0, 1, 2
# Names under which faults are counted that belong to no stream: what a timer set in motion, and
# events without the time that their window goes by.
TIMER, NO_TIME = "(timer)", "(no time)"

State = list[Any]
Row = tuple[Any, ...]
Chunk = list[tuple[int, int, Row]]  # (kind, ts, row): what one cause put into motion together
Timer = tuple[int, int, int, int]
Asleep = tuple[int, int, int]  # when it would fire next, its offset, its n
OnTimer = Callable[[State, int, Any], None]
Failed = tuple[str, int, int, int, str, list[Row]]  # stream, clock, offset, at, error, events
BEGINNING = -(1 << 63)  # before every moment
FAILED_MAX = 1000  # kept whole between two takes; the others are only counted


def do_nothing(_state: State) -> None:
    """Nothing counts from the moment a state is made."""


class Runtime:
    """What generated code sees as `rt`."""

    __slots__ = (
        "_last", "_n", "at", "batches", "blocks", "created", "dirty", "dropped", "failed",
        "faults", "fresh", "guarded", "heap", "idle", "keyed", "keys", "nested", "nodes", "now",
        "offset", "phase", "reasons", "root", "rows", "seq", "stores", "timer", "uuids",
    )  # fmt: skip

    def __init__(self, *, keyed: bool) -> None:
        self.keyed = keyed
        self.keys: dict[Any, State] = {}
        self.dirty: set[Any] = set()
        self.fresh: Callable[[], list[Any]] = list
        self.nodes: list[OnTimer] = []
        self.created: Callable[[State], None] = do_nothing
        self.idle: dict[int, Callable[[Any], bool]] = {}  # cells that know when they are as new
        # Cells that hold a dict of states: partitions, with what makes one for a key.
        self.nested: dict[int, Callable[[State, Any], State]] = {}
        self.root: State = []  # state of the key at hand, outside partitions
        self.faults: dict[str, int] = {}
        self.dropped: dict[str, int] = {}  # matches of a query, keys of a partition
        self.reasons: dict[str, str] = {}  # why the last of them failed
        self.failed: list[Failed] = []  # what was counted, the first of them whole
        self.guarded = False  # something in this fragment may fail: its timers are caught too
        self.stores: dict[str, Any] = {}  # tables, named windows and aggregations, for questions
        self.heap: list[tuple[int, int, int, int, State]] = []
        self.batches = 0  # the cell of the window that a stream is summed up in, if there is one
        self.now = 0
        self.timer: Timer | None = None  # the one that fires now
        self.phase = self.offset = self.seq = self.at = 0
        self.rows: list[Any] = []  # tuples, and blocks of them as columns
        self.blocks = 0
        self.uuids = 0
        self._n = 0
        self._last: tuple[int, int, int] = (0, 0, -1)

    def begin(self, clock: int, phase: int, offset: int, at: int) -> None:
        """A new cause. Two timers of one event that are due together share one count of rows."""
        self.now = clock
        self.phase = phase
        self.offset = offset
        self.at = at
        cause = (clock, phase, offset)
        if cause != self._last:
            self._last = cause
            self.seq = 0

    def state(self, key: Any) -> State:
        """The state of a key, made when first seen."""
        found = self.keys.get(key)
        if found is None:
            found = self.keys[key] = self.root = [{}, key, *self.fresh()]
            self.created(found)
        self.root = found
        if self.keyed:
            self.dirty.add(key)
        return found

    def arm(
        self,
        state: State,
        node: int,
        due: int,
        offset: int | None = None,
        payload: Any = None,
        *,
        at_once: bool = False,
    ) -> Timer:
        """It fires a millisecond later at the soonest; `at_once`, in this one."""
        due = max(due, self.now + (not at_once))
        self._n += 1
        timer = (due, self.offset if offset is None else offset, node, self._n)
        state[TIMERS][timer] = payload
        heappush(self.heap, (*timer, state))
        return timer

    def disarm(self, state: State, timer: Timer) -> None:
        state[TIMERS].pop(timer, None)

    def past(self, timer: Timer) -> None:
        """Timers armed from here on differ from this one."""
        self._n = max(self._n, timer[3])

    def put_back(self, state: State, timer: Timer, payload: Any) -> None:
        state[TIMERS][timer] = payload
        heappush(self.heap, (*timer, state))

    def again(self, state: State, due: int) -> None:
        """The timer at hand once more, in the same position among others of its moment."""
        assert self.timer is not None, "only a timer asks for itself"
        _, offset, node, n = self.timer
        self.put_back(state, (due, offset, node, n), None)

    def asleep(self, due: int) -> Asleep:
        """What to keep of the timer at hand instead, until someone calls `wake`."""
        assert self.timer is not None, "only a timer goes to sleep"
        _, offset, _, n = self.timer
        return due, offset, n

    def wake(self, state: State, node: int, span: int, asleep: Asleep) -> int:
        """At the first of its moments, each `span` ms after the other, that is still to come."""
        due, offset, n = asleep
        if due <= self.now:
            due = self.now - (self.now - due) % span
            if self.timer is None or (due, offset, node, n) <= self.timer:
                due += span
        timer = (due, offset, node, n)
        self.past(timer)
        self.put_back(state, timer, None)
        return due

    def rearm(self, state: State) -> None:
        """After a restore: put the timers of a state, and of those inside it, back."""
        for timer in state[TIMERS]:
            self.past(timer)
            heappush(self.heap, (*timer, state))

    def restored(self, state: State) -> None:
        self.rearm(state)
        for cell in self.nested:
            for inner in state[cell].values():
                self.rearm(inner)

    def fire(self, clock: int, at: int) -> None:
        """Every timer due at or before `clock`, each at its due time."""
        heap = self.heap
        while heap and heap[0][0] <= clock:
            due, offset, node, n, state = heappop(heap)
            timer = (due, offset, node, n)
            if timer not in state[TIMERS]:
                continue
            payload = state[TIMERS].pop(timer)
            key = state[KEY]
            self.root = self.keys[key]
            if self.keyed:
                self.dirty.add(key)
            self.begin(due, 0, offset, at)
            self.timer = timer
            if not self.guarded:
                self.nodes[node](state, due, payload)
                continue
            try:
                self.nodes[node](state, due, payload)
            except Exception as why:  # noqa: BLE001  as for an event: recorded, counted, dropped
                self.fault(TIMER, why)
        self.timer = None

    def put(self, block: OutColumns) -> None:
        """Many rows for the world at once."""
        self.rows.append(block)
        self.blocks += 1

    def emit(self, stream: str, chunk: Chunk) -> None:
        """Rows for the world, with their position in the one true order."""
        now, phase, offset, at, seq = self.now, self.phase, self.offset, self.at, self.seq
        append = self.rows.append
        for row in chunk:
            append((stream, now, phase, offset, seq, row[1], at, row[0], row[2]))
            seq += 1
        self.seq = seq

    def fault(self, stream: str, why: Exception, chunk: Sequence[Any] = ()) -> None:
        """An event of this stream could not be handled and is dropped."""
        self.faults[stream] = self.faults.get(stream, 0) + 1
        error = self.reasons[stream] = f"{type(why).__name__}: {why}"
        rows = [row[2] for row in chunk]
        self.record_failure((stream, self.now, self.offset, self.at, error, rows))

    def record_failure(self, failed: Failed) -> None:
        if len(self.failed) < FAILED_MAX:
            self.failed.append(failed)

    def drop(self, owner: str) -> None:
        self.dropped[owner] = self.dropped.get(owner, 0) + 1

    def random(self) -> float:
        """Repeatable: from 0 to 1, by the position of the cause and a counter."""
        self.uuids += 1
        seed = f"{self.now} {self.offset} {self.uuids}".encode()
        return int.from_bytes(blake2b(seed, digest_size=8).digest()) / (1 << 64)

    def uuid(self) -> str:
        """Repeatable: the position of the cause and a counter, in the shape of a UUID."""
        self.uuids += 1
        digits = f"{self.now & 0xFFFFFFFFFFFF:012x}{self.offset & 0xFFFFFFFF:08x}{self.uuids:012x}"
        return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-8{digits[17:20]}-{digits[20:]}"
