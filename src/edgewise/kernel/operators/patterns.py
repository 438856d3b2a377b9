"""Match patterns and sequences: partial matches move from element to element.

An element holds the partial matches that wait for it: `pending` ones may take the event at hand,
`new` ones arrived while this event was handled and become pending before the next.

    every e1=A -> e2=B -> e3=C          e1      e2              e3
    A1, A2  every starts anew           [{}]    [{A1}, {A2}]    []
    B1      both take it                [{}]    []              [{A1 B1}, {A2 B1}]
    C1      both are whole: two rows    [{}]    []              []

Before every event, what is older than `within` is dropped: by the app's clock, or by the event's
time where queries write the stream, whose rows may be far behind the clock. In a pattern a match
that the event does not suit stays, and is not looked at (`pattern_waiting`); in a sequence it is
dropped. `every` sends a copy back to the
start each time its last element matches. Elements on one stream are tried last element first, so
one event is never two steps of a match. Settings are `Element`s wired once; state is one list per
element. Common patterns do not come here: see `codegen.chain_query`, `codegen.sequence_query`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from edgewise.kernel.operators.pattern_waiting import NEVER, Lookup, Match, Slots, Waiting
from edgewise.kernel.runtime import Row, Runtime, State

# Cells of an element's state.
PENDING, NEW, BEGUN, ACTIVE, TIME, RESTART, ENDED = 0, 1, 2, 3, 4, 5, 6

Predicate = Callable[[Slots, int, Row], Any]
OwnTest = Callable[[int, Row], Any]
Deliver = Callable[[State, int, Slots], None]


class Element:
    """One event of a stream. Others below change single verbs of it."""

    absent = False
    counts = False
    may_skip = False  # a match may pass without an event of this element

    def __init__(self, machine: Machine, test: Predicate, *, start: bool) -> None:
        self.machine = machine
        self.rt = machine.rt
        self.test = test
        self.start = start
        self.position = len(machine.elements)  # of its state, its slot and its timers
        self.sequence = machine.sequence
        self.within = machine.within
        self.next: Element | None = None
        self.every: Element | None = None
        self.around: Element | None = None  # first element of the `every` it stands in
        self.last = False  # its match is the whole match
        self.answers: Element = self  # whose `returned` says that a whole match is there
        self.returned = False
        self.restarts: Element | None = None  # the counted one that begins again with it
        self.own: OwnTest | None = None  # the part of its condition that reads its event alone
        self.lookup: Lookup | None = None  # how the rest of it finds matches
        self.lazy = False  # nobody is told of what grows too old: it may be dropped later
        self.collectors: list[Element] = []  # counted ones that end when this one takes an event
        machine.elements.append(self)

    def state(self, state: State) -> list[Any]:
        return state[self.machine.cell][self.position]  # type: ignore[no-any-return]

    def begin(self, state: State) -> None:
        """A start element gets an empty match: once, or again and again under `every`."""
        cells = self.state(state)
        again = self.every is not None or (
            self.sequence and self.next is not None and self.next.absent
        )
        if self.start and (not cells[BEGUN] or again):
            self.add(state, self.machine.empty())
            cells[BEGUN] = True

    def created(self, state: State) -> None:
        """The app or the key starts."""

    def add(self, state: State, match: Match) -> None:
        cells = self.state(state)
        if self.lazy:  # it was already asked for the event at hand
            cells[PENDING].append(match)
        elif not self.sequence or not cells[NEW]:
            cells[NEW].append(match)

    def add_every(self, state: State, match: Match) -> None:
        self.state(state)[NEW].append(self.cleared(match))

    def cleared(self, match: Match) -> Match:
        """A copy that forgets this element and all after it."""
        copy = match.copy()
        for i in range(self.position, len(copy.slots)):
            copy.slots[i] = None
        return copy

    def reset(self, state: State) -> None:
        cells = self.state(state)
        cells[PENDING].clear()
        if self.start and not cells[NEW] and not self._next_waits(state):
            self.begin(state)

    def _next_waits(self, state: State) -> bool:
        return bool(
            self.sequence
            and self.every is None
            and self.next is not None
            and self.next.state(state)[PENDING]
        )

    def update(self, state: State) -> None:
        cells = self.state(state)
        if cells[NEW]:
            cells[NEW].sort(key=_not_begun)
            cells[PENDING].extend(cells[NEW])
            cells[NEW].clear()

    def too_old(self, match: Match, now: int) -> bool:
        if self.within is None:
            return False
        for position in self.machine.starts:
            taken = match.slots[position]
            if taken and now - taken[0][0] > self.within:
                return True
        return False

    def in_time(self, test: Predicate) -> Predicate:
        """Not for a match that is too old, and not yet dropped, or that began long after it."""
        within, by_clock, rt = self.within or 0, self.machine.by_clock, self.rt
        starts, mine = self.machine.starts, self.position

        def suits(slots: Slots, ts: int, row: Row) -> Any:
            now = rt.now if by_clock else ts
            for position in starts:
                taken = slots[position]
                if not taken or (position == mine and len(taken) == 1):
                    continue
                if now - taken[0][0] > within or taken[0][0] - ts > within:
                    return False
            return test(slots, ts, row)

        return suits

    def expire(self, state: State, now: int) -> None:
        """Drop what is older than `within`; under `every (..)` the group starts again."""
        if self.within is None:
            return
        cells = self.state(state)
        gone: Match | None = None
        pending = cells[PENDING]
        leaving = []
        while pending and self.too_old(first := pending.first, now):
            pending.remove(first)
            leaving.append(first)
        if self.lazy:
            return
        leaving += [m for m in cells[NEW] if self.too_old(m, now)]
        if not leaving:
            return
        cells[NEW][:] = [m for m in cells[NEW] if not self.too_old(m, now)]
        for match in leaving:
            if not match.expired:
                self.machine.timed_out(state, match)
                match.expired = True
                gone = gone if match.whole else match
        if gone is not None and self.around is not None:
            self.around.add_every(state, gone)
            self.around.update(state)

    def take(self, state: State, ts: int, row: Row) -> list[Match]:
        """Try the event on the waiting matches that it may suit; whole matches come back."""
        pending = self.state(state)[PENDING]
        whole: list[Match] = []
        if not pending or (self.own is not None and not self.own(ts, row)):
            return whole
        position, event, test = self.position, ((ts, row),), self.test
        for match in pending.found(self.lookup, ts, row):
            match.slots[position] = event
            if test(match.slots, ts, row):
                pending.remove(match)
                self.end_collecting(state, match)
                self.advance(state, match)
                if self._answered():
                    whole.append(match)
                continue
            match.slots[position] = None
            if self.sequence:
                if not self.absent:
                    pending.remove(match)
                if self.restarts is not None:
                    self.restarts.restart(state)
        return whole

    def end_collecting(self, state: State, match: Match) -> None:
        """It has an event of this element: those before it collect no more."""
        for element in self.collectors:
            if element.lazy:
                element.state(state)[PENDING].remove(match)
            else:
                element.state(state)[ENDED] = True

    def _answered(self) -> bool:
        if self.answers.returned:
            self.answers.returned = False
            return True
        return False

    def advance(self, state: State, match: Match) -> None:
        """The event suits: the match goes on."""
        taken = match.slots[self.position]
        assert taken is not None
        match.ts = taken[0][0]
        self.pass_on(state, match)

    def pass_on(self, state: State, match: Match) -> None:
        if self.last:
            self.returned = True
        if self.next is not None:
            self.next.add(state, match)
        if self.every is not None:
            self.every.add_every(state, match)
        if self.restarts is not None:
            self.restarts.restart(state)

    def restart(self, state: State) -> None:
        self.state(state)[RESTART] = True

    def timer(self, state: State, due: int) -> None:
        raise AssertionError("only absent elements ask for timers")

    def _may_drop_late(self) -> bool:
        """Where an old match starts no group again, is no time-out, and has begun."""
        machine = self.machine
        told = machine.delivers_timeouts or self.around is not None
        if self.within is not None:  # one that a count under `every` collects stands here too
            told = told or any(e.counts and e.around is not None for e in machine.elements)
        return not (
            self.sequence or self.start or told or machine.elements[machine.starts[0]].may_skip
        )

    def wired(self) -> None:
        """Once all elements stand."""
        self.lazy = self._may_drop_late()
        if self.within is not None:
            self.test = self.in_time(self.test)


def always(_slots: Slots, _ts: int, _row: Row) -> bool:
    return True


def _not_begun(match: Match) -> bool:
    return match.ts == NEVER


class Watch(Protocol):
    """What keeps the matches within bounds (`pattern_bounds`)."""

    def after(self, state: State, ts: int) -> None: ...
    def sweep(self, state: State, due: int) -> None: ...


class Machine:
    """The elements of one query and the order in which they are asked."""

    def __init__(
        self,
        rt: Runtime,
        node: int,
        cell: int,
        *,
        sequence: bool,
        within: int | None,
        by_clock: bool = False,
    ) -> None:
        self.rt, self.node, self.cell = rt, node, cell
        self.sequence, self.within, self.by_clock = sequence, within, by_clock
        self.elements: list[Element] = []
        self.starts: list[int] = []
        self.order: list[Element] = []  # in which they begin and update; resets run backwards
        self.by_stream: dict[str, list[Element]] = {}
        self.deliver: Deliver = lambda _state, _ts, _slots: None
        self.delivers_timeouts = False  # time-outs are delivered, not whole matches
        self.started = False  # the event at hand began a match
        self.bounds: Watch | None = None

    def empty(self) -> Match:
        return Match([None] * len(self.elements))

    def fresh_cells(self) -> list[Any]:
        cells: list[Any] = [[Waiting(), [], False, True, 0, False, False] for _ in self.elements]
        return cells if self.bounds is None else [*cells, [None]]

    def created(self, state: State) -> None:
        for element in self.order:
            element.begin(state)
        for element in self.elements:
            element.created(state)

    def idle(self, cells: list[Any]) -> bool:
        """Whether this state is that of a key never seen: only empty matches wait at the start."""
        for element, mine in zip(self.elements, cells, strict=self.bounds is None):
            waiting = [*mine[PENDING], *mine[NEW]]
            if not element.start:
                if waiting:
                    return False
            elif len(waiting) != 1 or any(s is not None for s in waiting[0].slots):
                return False
            if element.absent or not mine[ACTIVE] or mine[RESTART]:
                return False
        return True

    def event(self, state: State, stream: str, ts: int, row: Row) -> None:
        for element in self.elements if self.within is not None else ():
            element.expire(state, self.rt.now if self.by_clock else ts)
        mine = self.by_stream[stream]
        if self.sequence:
            for element in reversed(self.order):
                element.reset(state)
            for element in self.order:
                element.update(state)
        else:
            for element in mine:
                element.update(state)
        for element in reversed(mine):
            for match in element.take(state, ts, row):
                self.finish(state, match)
        if self.started:
            self.started = False
            self.rt.arm(state, self.node, ts + (self.within or 0) + 1, payload=(ts, row))
        if self.bounds is not None:
            self.bounds.after(state, ts)

    def finish(self, state: State, match: Match) -> None:
        """A whole match."""
        if self.delivers_timeouts:
            match.whole = True
        else:
            self.deliver(state, match.ts, match.slots)

    # Time-outs: what is dropped for its age is delivered instead of what is whole.

    def deliver_timeouts(self) -> None:
        """Every event that may begin a match arms a timer for the moment it is too old."""
        self.delivers_timeouts = True
        for position in self.starts:
            element = self.elements[position]
            element.test = self._starting(element.test)

    def _starting(self, test: Predicate) -> Predicate:
        def starting(slots: Slots, ts: int, row: Row) -> Any:
            suits = test(slots, ts, row)
            if suits:
                self.started = True
            return suits

        return starting

    def time_out(self, state: State, first: tuple[int, Row]) -> None:
        """Drop the matches that began with this event, wherever they wait, and say so."""
        for element in self.elements:
            cells, gone = element.state(state), None
            for held in cells[: NEW + 1]:
                old = [m for m in held if self._began(m, first)]
                for match in old:
                    held.remove(match)
                for match in old:
                    gone = gone if match.expired or match.whole else match
                    self.timed_out(state, match)
            if gone is not None and element.around is not None:
                element.around.add_every(state, gone)
                element.around.update(state)

    def _began(self, match: Match, first: tuple[int, Row]) -> bool:
        return any(taken[0] == first for p in self.starts if (taken := match.slots[p]))

    def timed_out(self, state: State, match: Match) -> None:
        """`within` ends this match: delivered once, unless it was whole."""
        if self.delivers_timeouts and not match.expired:
            match.expired = True
            if not match.whole:
                self.deliver(state, self.rt.now, match.slots)

    def arm(self, state: State, element: Element, due: int) -> None:
        self.rt.arm(state, self.node, due, payload=element.position)

    def timer(self, state: State, due: int, payload: Any) -> None:
        if isinstance(payload, tuple):
            self.time_out(state, payload)
        elif isinstance(payload, str):
            assert self.bounds is not None
            self.bounds.sweep(state, due)
        else:
            self.elements[payload].timer(state, due)
