"""Keep the partial matches of a pattern within bounds, and count what is dropped.

    limit   at most so many matches wait; the one that has waited longest for its next event goes.
            One that waits at two elements at once, at a count and behind it, counts for both.
    idle    a match that took no event for so long goes, at that moment.
    prune   for a pattern with its own key: where no further event of the key comes, what `within`
            ended would wait for ever. It goes when the clock ends it; where event times end it, a
            while later, so that rows that come late find what a pattern without keys would find.

One timer at a time watches the matches of a key.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from edgewise.kernel.operators.pattern_elements import Counted, Logical
from edgewise.kernel.operators.pattern_waiting import Match
from edgewise.kernel.operators.patterns import (
    NEW,
    PENDING,
    Element,
    Machine,
)
from edgewise.kernel.runtime import State

SWEEP = "sweep"  # payload of the timer
PRUNE_AFTER_MS = 60_000


class Bounds:
    """Its cell, behind those of the elements, holds the timer that watches, without the number of
    the operator, or None.
    """

    def __init__(
        self,
        machine: Machine,
        name: str,
        *,
        limit: int | None = None,
        idle: int | None = None,
        prune: bool = False,
    ) -> None:
        self.machine, self.rt, self.name = machine, machine.rt, name
        self.limit, self.idle = limit, idle
        self.prune = machine.within if prune else None
        spans = [] if idle is None else [idle + 1]
        self.grace = 0 if machine.by_clock else PRUNE_AFTER_MS
        spans += [] if self.prune is None else [self.prune + 1 + self.grace]
        self.span = min(spans, default=None)
        machine.bounds = self

    def after(self, state: State, ts: int) -> None:
        """An event of time `ts` was handled."""
        if self.limit is not None:
            self._trim(state, self.limit)
        if self.span is None:
            return
        cell = state[self.machine.cell][-1]
        if next(self._waiting(state), None) is None:
            self._look_away(state)
        elif cell[0] is None or ts + self.span < cell[0][0]:
            self._watch(state, ts + self.span)

    def _watch(self, state: State, due: int) -> None:
        self._look_away(state)
        due, offset, _, n = self.rt.arm(state, self.machine.node, due, payload=SWEEP)
        state[self.machine.cell][-1][0] = (due, offset, n)

    def _look_away(self, state: State) -> None:
        cell = state[self.machine.cell][-1]
        if cell[0] is not None:
            due, offset, n = cell[0]
            self.rt.disarm(state, (due, offset, self.machine.node, n))
            cell[0] = None

    def sweep(self, state: State, due: int) -> None:
        state[self.machine.cell][-1][0] = None
        if self.idle is not None:
            for element, held, match in list(self._waiting(state)):
                if due - match.ts > self.idle and not match.expired:
                    self._drop(state, element, held, match)
        if self.prune is not None:
            for element in self.machine.elements:
                element.expire(state, due - self.grace)
        moments = [
            *(m.ts + self.idle + 1 for _, _, m in self._waiting(state) if self.idle is not None),
            *(due + self.prune + 1 for _ in self._waiting(state) if self.prune is not None),
        ]
        if moments:
            self._watch(state, min(moments))

    def _waiting(self, state: State) -> Iterator[tuple[Element, list[Match], Match]]:
        """Every match that has begun, at every element it waits for."""
        for element in self.machine.elements:
            for held in element.state(state)[PENDING : NEW + 1]:
                for match in held:
                    if match.begun:
                        yield element, held, match

    def _trim(self, state: State, limit: int) -> None:
        while self._count(state) > limit:
            heads = [
                (match.ts, element.position, element, held, match)
                for element in self.machine.elements
                for held in element.state(state)[PENDING : NEW + 1]
                if (match := next((m for m in held if m.begun), None)) is not None
            ]
            *_, element, held, match = min(heads, key=lambda head: head[:2])
            self._drop(state, element, held, match)

    def _count(self, state: State) -> int:
        count = 0
        for element in self.machine.elements:
            pending, new = element.state(state)[PENDING : NEW + 1]
            if element.start or self._skips:  # here matches wait that have not begun
                count += sum(m.begun for m in pending) + sum(m.begun for m in new)
            else:
                count += len(pending) + len(new)
        return count

    @cached_property
    def _skips(self) -> bool:
        """A match may come to a later element without any event."""
        return any(isinstance(e, Counted) and not e.least for e in self.machine.elements)

    @cached_property
    def _shares(self) -> bool:
        """A match may wait at two elements."""
        return any(isinstance(e, Counted | Logical) for e in self.machine.elements)

    def _drop(self, state: State, element: Element, held: list[Match], match: Match) -> None:
        """Out of every list it stands in; under `every (..)` the group starts again."""
        held.remove(match)
        match.expired = True
        for other in self.machine.elements if self._shares else ():
            for listed in other.state(state)[PENDING : NEW + 1]:
                if match in listed:
                    listed.remove(match)
        self.rt.drop(self.name)
        if element.around is not None and not match.whole:
            element.around.add_every(state, match)
            element.around.update(state)
