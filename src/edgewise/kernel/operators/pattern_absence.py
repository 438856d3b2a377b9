"""Match absence in patterns: `not X for t`, alone or beside another element.

An absent element is met by time passing. Its timer is armed when a match reaches it (at the start:
when the app or the key starts), and an event that suits it makes the match wait from the start.
"""

from __future__ import annotations

from edgewise.kernel.operators.pattern_elements import Logical
from edgewise.kernel.operators.pattern_waiting import NEVER, Lookup, Match
from edgewise.kernel.operators.patterns import (
    ACTIVE,
    NEW,
    PENDING,
    TIME,
    Element,
    Machine,
    Predicate,
)
from edgewise.kernel.runtime import Row, State


class Absent(Element):
    """`not X for t`; TIME holds when the waiting ends."""

    absent = True

    def __init__(self, machine: Machine, test: Predicate, *, start: bool, waiting: int) -> None:
        super().__init__(machine, test, start=start)
        self.waiting = waiting
        self.ending = Lookup(match_value=self._until, bounds=(("<=", _due),))

    @property
    def sure(self) -> bool:
        """When a match ends is known when it comes: it collects no more."""
        return self.lazy and not self.collectors

    def _until(self, match: Match) -> int:
        return match.ts + self.waiting

    def _wait(self, state: State, since: int) -> None:
        due = since + self.waiting
        self.state(state)[TIME] = due
        self.machine.arm(state, self, due)

    def created(self, state: State) -> None:
        if self.start and self.state(state)[ACTIVE]:
            self._wait(state, self.rt.now)

    def add(self, state: State, match: Match) -> None:
        cells = self.state(state)
        if not cells[ACTIVE]:
            return
        if self.sequence:
            cells[NEW].clear()
        cells[PENDING if self.lazy else NEW].append(match)
        if not self.start:
            self._wait(state, match.ts)

    def add_every(self, state: State, match: Match) -> None:
        super().add_every(state, match)
        self._wait(state, match.ts)

    def reset(self, state: State) -> None:
        self.state(state)[PENDING].clear()
        if self.start and not self._next_waits(state):
            self.begin(state)

    def take(self, state: State, ts: int, row: Row) -> list[Match]:
        if self.state(state)[ACTIVE]:
            super().take(state, ts, row)
        return []

    def advance(self, state: State, match: Match) -> None:
        """An event that must not come came: this match is over, the waiting starts anew."""
        taken = match.slots[self.position]
        assert taken is not None
        match.ts = taken[0][0]
        self.returned = True
        if self.start and self.every is self:
            self.add_every(state, match)
        self._wait(state, match.ts)

    def timer(self, state: State, due: int) -> None:
        cells = self.state(state)
        if not cells[ACTIVE]:
            return
        self._renew(state)
        self.update(state)
        met: list[Match] = []
        pending = cells[PENDING]
        for match in pending.found(self.ending if self.sure else None, due, ()):
            if self.too_old(match, due):
                pending.remove(match)
                self.machine.timed_out(state, match)
                if self.around is not None and self.every is not None and self.every is not self:
                    self.every.add_every(state, match)
                continue
            until = cells[TIME] if match.ts == NEVER else match.ts + self.waiting
            if due >= until:
                pending.remove(match)
                match.ts = due
                met.append(match)
        if self.around is not None:
            self.around.update(state)
        for match in met:
            self._met(state, match)
        if not met and cells[TIME] < due:
            self._wait(state, due)

    def _renew(self, state: State) -> None:
        cells = self.state(state)
        first = self.start and not cells[NEW] and not cells[PENDING]
        if first and self.sequence and self.every is None and cells[TIME] > 0:
            first = False  # a sequence without every is over after an event
        if first:
            self.add(state, self.machine.empty())
        elif self.sequence and cells[NEW]:
            self.reset(state)

    def _met(self, state: State, match: Match) -> None:
        if self.last:
            self.machine.finish(state, match)
        if self.next is not None:
            self.next.add(state, match)
        if self.every is not None:
            self.every.add_every(state, match)
        elif self.start:
            self.state(state)[ACTIVE] = False
        if self.restarts is not None:
            self.restarts.restart(state)


def _due(due: int, _row: Row) -> int:
    return due


class AbsentLogical(Logical):
    """`not X [for t]` beside `and` or `or`; TIME holds when an X last came, 0 for never."""

    absent = True

    def __init__(
        self, machine: Machine, test: Predicate, *, start: bool, op: str, waiting: int | None
    ) -> None:
        super().__init__(machine, test, start=start, op=op)
        self.waiting = waiting

    def created(self, state: State) -> None:
        if self.start and self.waiting is not None and self.state(state)[ACTIVE]:
            self.machine.arm(state, self, self.rt.now + self.waiting)

    def add(self, state: State, match: Match) -> None:
        if not self.state(state)[ACTIVE]:
            return
        super().add(state, match)
        if self.start or self.waiting is None:
            return
        self.machine.arm(state, self, match.ts + self.waiting)
        partner = self.partner
        if isinstance(partner, AbsentLogical):
            self.machine.arm(state, partner, match.ts + (partner.waiting or NEVER))

    def add_every(self, state: State, match: Match) -> None:
        copy = match.copy()
        taken = copy.slots[self.position]
        if taken:
            copy.ts = taken[0][0]
        copy.slots[self.position] = copy.slots[self.partner.position] = None
        self.state(state)[NEW].append(copy)
        self.partner.state(state)[NEW].append(copy)

    def take(self, state: State, ts: int, row: Row) -> list[Match]:
        cells = self.state(state)
        if not cells[ACTIVE]:
            return []
        position, other, pending = self.position, self.partner.position, cells[PENDING]
        returns = self.waiting is not None or (
            self.sequence and self.op == "and" and self.every is not None
        )
        for match in list(pending):
            if self.op == "or" and match.slots[other] is not None:
                pending.remove(match)
                continue
            before = match.slots[position]
            match.slots[position] = ((ts, row),)
            suits = bool(self.test(match.slots, ts, row))
            if suits:
                self.returned = True
                cells[TIME] = ts
            if returns or not suits:
                match.slots[position] = before
            else:
                self.end_collecting(state, match)
            removed = False
            if self._answered():
                removed = True
                if self.sequence:
                    self.partner.state(state)[PENDING].remove(match)
            if not suits and self.sequence:
                removed = True
            if removed:
                pending.remove(match)
        return []

    def lets(self, state: State, match: Match) -> bool:
        cells = self.state(state)
        if self.sequence and self.every is None and cells[TIME] > 0:
            return False
        if self.waiting is not None:
            return match.slots[self.position] is not None
        if self.every is None:
            return match.slots[self.position] is None
        if cells[TIME] > 0:
            cells[TIME] = 0
            self.begin(state)
            return False
        return True

    def timer(self, state: State, due: int) -> None:
        cells = self.state(state)
        assert self.waiting is not None
        if not cells[ACTIVE]:
            return
        met: list[Match] = []
        if due >= cells[TIME] + self.waiting:
            met = self._due(state, due)
            for match in met:
                match.ts = due
                self._met(state, match)
            cells[TIME] = 0
        if self.every is not None or (not met and self.start):
            since = cells[TIME] or self.rt.now
            self.machine.arm(state, self, since + self.waiting)

    def _due(self, state: State, due: int) -> list[Match]:
        """Matches whose waiting is over and whose other side allows it."""
        cells, position, other = self.state(state), self.position, self.partner.position
        if self.start and self.sequence and not cells[NEW] and not cells[PENDING]:
            self.add(state, self.machine.empty())
        elif self.sequence and cells[NEW]:
            self.reset(state)
        self.update(state)
        met: list[Match] = []
        gone: Match | None = None
        pending = cells[PENDING]
        for match in list(pending):
            if self.too_old(match, due):
                pending.remove(match)
                self.machine.timed_out(state, match)
                gone = match
                continue
            assert self.waiting is not None
            mine = match.slots[position]
            since = match.ts if mine is None else mine[0][0]
            if due < since + self.waiting:
                continue
            pending.remove(match)
            if match.slots[other] is not None:
                if self.op == "and":
                    met.append(match)
            else:
                match.slots[position] = (*(mine or ()), (NEVER, ()))
                self.end_collecting(state, match)
                if self.op == "or":
                    met.append(match)
        if gone is not None and self.around is not None:
            self.around.add_every(state, gone)
            self.around.update(state)
        return met

    def _met(self, state: State, match: Match) -> None:
        if self.last:
            self.machine.finish(state, match)
        if self.next is not None:
            self.next.add(state, match)
        if self.every is not None:
            self.every.add_every(state, match)
        elif self.start:
            self.state(state)[ACTIVE] = False
            if self.op == "or" and isinstance(self.partner, AbsentLogical):
                self.partner.state(state)[ACTIVE] = False
        if self.restarts is not None:
            self.restarts.restart(state)
