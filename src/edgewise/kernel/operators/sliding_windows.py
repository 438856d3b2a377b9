"""Hold the events of sliding windows: what enters, what leaves, and in which order.

A window appends to a chunk: C (current), X (expired), R (reset, clears aggregates). Its settings
are fields; its state is one cell of the key's state, created by `fresh`, falsy when empty. `push`
takes one event, `end` closes the chunk it came in, `timer` is a moment the window asked for, and
`content` gives the rows inside for joins and on-demand queries. Batches are in `batch_windows`,
sessions in `session_window`.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Iterable
from typing import Any

from edgewise.errors import BadEvent
from edgewise.kernel.functions.java import key_text, map_order
from edgewise.kernel.queues import Queue
from edgewise.kernel.runtime import (
    CURRENT,
    EXPIRED,
    NO_TIME,
    RESET,
    Chunk,
    Row,
    Runtime,
    State,
)

Held = Iterable[tuple[int, Row]]
Test = Callable[[Held, tuple[int, Row], int, Row], Any]  # over what is held, and its first
TEXTS_MAX = 1000  # conditions kept compiled; more than that are compiled again


class WindowOperator:
    """The shape the others have. `quiet`: nobody asks for X, so none is made where R follows.
    `apart`: what leaves at one moment does so in the positions of other keys, each by itself.
    """

    quiet = apart = False

    def __init__(self, rt: Runtime, node: int, cell: int) -> None:
        self.rt, self.node, self.cell = rt, node, cell

    def fresh(self) -> Any:
        return Queue()

    def push(self, state: State, ts: int, row: Row, out: Chunk) -> None:
        out.append((CURRENT, ts, row))

    def end(self, state: State, out: Chunk) -> None:
        """The chunk is complete."""

    def timer(self, state: State, due: int, payload: Any, out: Chunk) -> None:
        """A moment this window asked for."""

    def content(self, state: State) -> Held:
        return ()

    def timeless(self) -> None:
        """An event whose own time is null is counted and dropped."""
        self.rt.fault(NO_TIME, BadEvent("the attribute that carries the time is null"))


class Nothing(WindowOperator):
    """Holds nothing."""


class Length(WindowOperator):
    """The last n: the one pushed out leaves just before the one that pushes."""

    def __init__(self, rt: Runtime, node: int, cell: int, n: int) -> None:
        super().__init__(rt, node, cell)
        self.n = n

    def push(self, state: State, ts: int, row: Row, out: Chunk) -> None:
        held = state[self.cell]
        if self.n == 0:
            out += ((CURRENT, ts, row), (EXPIRED, self.rt.now, row), (RESET, ts, row))
            return
        if len(held) == self.n:
            out.append((EXPIRED, self.rt.now, held.popleft()[1]))
        held.append((ts, row))
        out.append((CURRENT, ts, row))

    def content(self, state: State) -> Held:
        return state[self.cell]  # type: ignore[no-any-return]


class Time(WindowOperator):
    """An event leaves `span` ms after the app's time at its arrival; the oldest has the timer.

    For an event in order that is its own time. A late one waits behind what came before it, so
    events leave in the order they came, by key or not. `n` bounds how many stay.

    When `quiet`, leaving can wait until the next event asks: the newest has the timer, which only
    clears up. That is one timer a span instead of one an event.
    """

    def __init__(self, rt: Runtime, node: int, cell: int, span: int, n: int | None = None) -> None:
        super().__init__(rt, node, cell)
        self.span, self.n = max(span, 1), n  # a timer fires one millisecond later at the soonest

    def push(self, state: State, ts: int, row: Row, out: Chunk) -> None:
        rt, held = self.rt, state[self.cell]
        now = rt.now
        due = now + self.span
        if self.n is not None and len(held) >= self.n > 0:
            out.append((EXPIRED, now, held.popleft()[3]))
        if not held or self.n is not None:
            rt.arm(state, self.node, due)
        elif self.quiet:
            while held and held[0][0] <= now:
                out.append((EXPIRED, now, held.popleft()[3]))
        held.append((due, rt.offset, ts, row))
        out.append((CURRENT, ts, row))

    def timer(self, state: State, due: int, payload: Any, out: Chunk) -> None:
        held = state[self.cell]
        while held and held[0][0] <= due:
            out.append((EXPIRED, due, held.popleft()[3]))
            if self.apart:
                break
        if held and self.n is None:
            next_due, offset, _, _ = held[-1 if self.quiet else 0]
            self.rt.arm(state, self.node, next_due, offset, at_once=True)

    def content(self, state: State) -> Held:
        return ((ts, row) for _, _, ts, row in state[self.cell])


class ExternalTime(WindowOperator):
    """As time, driven by an attribute of the events alone: late ones linger behind newer ones."""

    def __init__(self, rt: Runtime, node: int, cell: int, position: int, span: int) -> None:
        super().__init__(rt, node, cell)
        self.position, self.span = position, span

    def push(self, state: State, ts: int, row: Row, out: Chunk) -> None:
        held, now, position = state[self.cell], row[self.position], self.position
        if now is None:
            self.timeless()
            return
        while held and now - held[0][1][position] >= self.span:
            out.append((EXPIRED, now, held.popleft()[1]))
        held.append((ts, row))
        out.append((CURRENT, ts, row))

    def content(self, state: State) -> Held:
        return state[self.cell]  # type: ignore[no-any-return]


class Delay(WindowOperator):
    """The event itself comes `span` ms later."""

    def __init__(self, rt: Runtime, node: int, cell: int, span: int) -> None:
        super().__init__(rt, node, cell)
        self.span = span

    def push(self, state: State, ts: int, row: Row, out: Chunk) -> None:
        due = self.rt.now + self.span
        state[self.cell].append((due, ts, row))
        self.rt.arm(state, self.node, due)

    def timer(self, state: State, due: int, payload: Any, out: Chunk) -> None:
        held = state[self.cell]
        while held and held[0][0] <= due:
            out.append((CURRENT, due, held.popleft()[2]))

    def content(self, state: State) -> Held:
        return ((ts, row) for _, ts, row in state[self.cell])


class _Down:
    """Sorts the other way round."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __lt__(self, other: _Down) -> bool:
        return bool(other.value < self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Down) and self.value == other.value

    __hash__ = None  # type: ignore[assignment]


class Sort(WindowOperator):
    """The n smallest in the given order; what is too much leaves right after it came."""

    def __init__(
        self, rt: Runtime, node: int, cell: int, n: int, *terms: tuple[int, bool]
    ) -> None:
        super().__init__(rt, node, cell)
        self.n, self.terms = n, terms

    def fresh(self) -> list[Any]:
        return []

    def _rank(self, held: tuple[int, Row]) -> tuple[Any, ...]:
        row = held[1]
        parts: list[Any] = []
        for position, down in self.terms:
            value = row[position]
            parts += (value is not None, _Down(value) if down and value is not None else value)
        return tuple(parts)

    def push(self, state: State, ts: int, row: Row, out: Chunk) -> None:
        held = state[self.cell]
        insort(held, (ts, row), key=self._rank)
        out.append((CURRENT, ts, row))
        if len(held) > self.n:
            out.append((EXPIRED, self.rt.now, held.pop()[1]))

    def content(self, state: State) -> Held:
        return state[self.cell]  # type: ignore[no-any-return]


class Frequent(WindowOperator):
    """Misra-Gries: at most n keys are tracked; a new one that finds no room weakens them all.

    Those that are too weak then leave in the order of the original's map.
    """

    def __init__(self, rt: Runtime, node: int, cell: int, n: int, *positions: int) -> None:
        super().__init__(rt, node, cell)
        self.n, self.positions = n, positions

    def fresh(self) -> dict[Any, Any]:
        return {}

    def push(self, state: State, ts: int, row: Row, out: Chunk) -> None:
        held = state[self.cell]
        key = tuple(row[p] for p in self.positions) if self.positions else row
        if key in held:
            held[key][0] += 1
            held[key][1] = (ts, row)
            out.append((CURRENT, ts, row))
            return
        if len(held) >= self.n:
            for other in map_order(held, key_text):
                held[other][0] -= 1
                if held[other][0] == 0:
                    out.append((EXPIRED, self.rt.now, held.pop(other)[1][1]))
        if len(held) < self.n:
            held[key] = [1, (ts, row)]
            out.append((CURRENT, ts, row))

    def content(self, state: State) -> Held:
        return (held for _, held in state[self.cell].values())


class LossyFrequent(WindowOperator):
    """Lossy counting: passes what is at least `support - error` of everything."""

    def __init__(
        self, rt: Runtime, node: int, cell: int, support: float, error: float, *positions: int
    ) -> None:
        super().__init__(rt, node, cell)
        self.support, self.error, self.positions = support, error, positions
        self.width = -(-1 // error)

    def fresh(self) -> list[Any]:
        return []

    def push(self, state: State, ts: int, row: Row, out: Chunk) -> None:
        cells = state[self.cell]
        if not cells:
            cells += (0, {})
        cells[0] += 1
        total, held = cells[0], cells[1]
        bucket = -(-total // self.width)
        key = tuple(row[p] for p in self.positions) if self.positions else row
        if key in held:
            held[key][0] += 1
            held[key][2] = (ts, row)
        else:
            held[key] = [1, bucket - 1, (ts, row)]
        if held[key][0] >= (self.support - self.error) * total:
            out.append((CURRENT, ts, row))
        if total % self.width == 0:
            for other in list(held):
                count, slack, last = held[other]
                if count + slack <= bucket:
                    del held[other]
                    out.append((EXPIRED, self.rt.now, last[1]))

    def content(self, state: State) -> Held:
        return (held[2] for held in (state[self.cell] or [0, {}])[1].values())


class TextTest:
    """Conditions that events bring along at `position`: each text is compiled once and kept."""

    def __init__(self, compile_text: Callable[[str], Test], position: int) -> None:
        self._compile, self.position = compile_text, position
        self._known: dict[str, Test] = {}

    def __call__(self, held: Held, first: tuple[int, Row], ts: int, row: Row) -> Any:
        return self.compiled(row[self.position])(held, first, ts, row)

    def compiled(self, text: str) -> Test:
        found = self._known.get(text)
        if found is None:
            if len(self._known) >= TEXTS_MAX:
                self._known.clear()
            found = self._known[text] = self._compile(text)
        return found


class Expression(WindowOperator):
    """Sliding as far as an expression over the content holds; the oldest leave until it does."""

    def __init__(self, rt: Runtime, node: int, cell: int, test: Any) -> None:
        super().__init__(rt, node, cell)
        self.test = test

    def push(self, state: State, ts: int, row: Row, out: Chunk) -> None:
        held = state[self.cell]
        held.append((ts, row))
        while held and not self.test(held, held[0], ts, row):
            out.append((EXPIRED, self.rt.now, held.popleft()[1]))
        out.append((CURRENT, ts, row))

    def content(self, state: State) -> Held:
        return state[self.cell]  # type: ignore[no-any-return]
