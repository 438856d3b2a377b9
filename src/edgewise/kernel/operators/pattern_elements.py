"""Match elements of patterns that take several events, or one of two: counts, `and`, `or`.

Each changes single verbs of `patterns.Element`; those that wait for nothing to come are in
`pattern_absence`.
"""

from __future__ import annotations

from edgewise.kernel.operators.pattern_waiting import Match
from edgewise.kernel.operators.patterns import (
    ENDED,
    NEW,
    PENDING,
    RESTART,
    Element,
    Machine,
    Predicate,
)
from edgewise.kernel.runtime import Row, State


class Counted(Element):
    """`least` to `most` events; greedy, while the next element already waits from `least` on."""

    counts = True

    def __init__(
        self, machine: Machine, test: Predicate, *, start: bool, least: int, most: int | None
    ) -> None:
        super().__init__(machine, test, start=start)
        self.least, self.most = least, most
        self.may_skip = least == 0

    def wired(self) -> None:
        super().wired()
        for element in self.machine.elements[self.position + 1 : self.position + 3]:
            element.collectors.append(self)
        if self.start and self.sequence and self.least == 0 and self.next is not None:
            self.next.restarts = self

    def add(self, state: State, match: Match) -> None:
        super().add(state, match)
        if self.least == 0 and match.slots[self.position] is None:
            self._enough(state, match)

    def update(self, state: State) -> None:
        cells = self.state(state)
        if cells[RESTART]:
            cells[RESTART] = False
            self.begin(state)
        super().update(state)

    def take(self, state: State, ts: int, row: Row) -> list[Match]:
        cells = self.state(state)
        pending, position, whole = cells[PENDING], self.position, list[Match]()
        own = self.own is None or self.own(ts, row)
        if not own and not self.sequence and not cells[ENDED]:
            return whole
        cells[ENDED] = False
        for match in pending.found(self.lookup if self.lazy else None, ts, row):
            slots = match.slots
            if any(s is not None for s in slots[position + 1 : position + 3]):
                pending.remove(match)  # the next element took an event: collecting is over
                continue
            before = slots[position]
            slots[position] = (*before, (ts, row)) if before else ((ts, row),)
            if not own or not self.test(slots, ts, row):
                slots[position] = before
                if self.sequence:
                    pending.remove(match)
                continue
            done = self._collect(state, match)
            self.end_collecting(state, match)
            if self._answered():
                whole.append(match)
            if done:
                pending.remove(match)
        return whole

    def _collect(self, state: State, match: Match) -> bool:
        """One more is in; True when this match waits here no longer."""
        taken = match.slots[self.position]
        assert taken is not None
        match.ts = taken[-1][0]
        n, done = len(taken), False
        if n < self.least:
            return False
        if self.sequence:
            if self.next is not None:
                self.next.add(state, match)
            if n != self.most:
                self.add(state, match)
        elif n == self.least:
            done = self._enough(state, match)
        return done or n == self.most

    def _enough(self, state: State, match: Match) -> bool:
        if self.last:
            self.returned = True
        if self.next is not None:
            self.next.add(state, match)
        if self.every is not None:
            self.every.add_every(state, match)
        return self.last


class Logical(Element):
    """One side of `and` or `or`; both sides hold the same matches."""

    def __init__(self, machine: Machine, test: Predicate, *, start: bool, op: str) -> None:
        super().__init__(machine, test, start=start)
        self.op = op
        self.partner: Logical = self

    def wired(self) -> None:
        super().wired()
        self.lazy = self.lazy and not (self.absent or self.partner.absent)
        if self.op == "or" and self.lazy:
            self.collectors.append(self.partner)

    def add(self, state: State, match: Match) -> None:
        for side in (self, self.partner):
            if side.lazy:
                side.state(state)[PENDING].append(match)
                continue
            new = side.state(state)[NEW]
            if not (self.start or self.sequence) or not new:
                new.append(match)

    def add_every(self, state: State, match: Match) -> None:
        copy = self.cleared(match)
        copy.slots[self.partner.position] = None
        self.state(state)[NEW].append(copy)
        self.partner.state(state)[NEW].append(copy)

    def reset(self, state: State) -> None:
        mine, other = self.state(state), self.partner.state(state)
        if self.op == "or" or len(mine[PENDING]) == len(other[PENDING]):
            mine[PENDING].clear()
            other[PENDING].clear()
            if self.start and not mine[NEW] and not self._next_waits(state):
                self.begin(state)

    def update(self, state: State) -> None:
        Element.update(self, state)
        Element.update(self.partner, state)

    def take(self, state: State, ts: int, row: Row) -> list[Match]:
        if self.op == "or" and not self.lazy:
            pending, other = self.state(state)[PENDING], self.partner.position
            for match in [m for m in pending if m.slots[other] is not None]:
                pending.remove(match)
        return super().take(state, ts, row)

    def advance(self, state: State, match: Match) -> None:
        partner = self.partner
        if self.op == "or" or partner.lets(state, match):
            super().advance(state, match)
            if partner.last and self.answers is partner:
                partner.returned = True

    def lets(self, state: State, match: Match) -> bool:
        """Whether the other side may complete the match: this side has its event."""
        return match.slots[self.position] is not None
