"""Windows: what enters, what leaves, and in which order.

A window appends to a chunk: C (current), X (expired), R (reset, clears aggregates). Its settings
are fields; its state is one cell of the key's state, made by `fresh`, falsy when empty. `push`
takes one event, `timer` a moment it asked for, `content` gives the rows inside for joins and
on-demand queries.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Any, Protocol

from edgewise.engines.kernel.runtime import (
    CURRENT,
    EXPIRED,
    RESET,
    Chunk,
    Row,
    Runtime,
    State,
)


class Window(Protocol):
    def fresh(self) -> Any: ...
    def push(self, state: State, ts: int, row: Row, out: Chunk) -> None: ...
    def timer(self, state: State, due: int, payload: Any, out: Chunk) -> None: ...
    def content(self, state: State) -> Iterable[tuple[int, Row]]: ...


class Length:
    """The last n: the one pushed out leaves just before the one that pushes."""

    def __init__(self, rt: Runtime, node: int, cell: int, n: int) -> None:
        del node
        self.rt, self.cell, self.n = rt, cell, n

    def fresh(self) -> deque[Row]:
        return deque()

    def push(self, state: State, ts: int, row: Row, out: Chunk) -> None:
        held = state[self.cell]
        if self.n == 0:
            out += ((CURRENT, ts, row), (EXPIRED, self.rt.now, row), (RESET, ts, row))
            return
        if len(held) == self.n:
            out.append((EXPIRED, self.rt.now, held.popleft()[1]))
        held.append((ts, row))
        out.append((CURRENT, ts, row))

    def timer(self, state: State, due: int, payload: Any, out: Chunk) -> None:
        """It asks for none."""

    def content(self, state: State) -> Iterable[tuple[int, Row]]:
        return state[self.cell]  # type: ignore[no-any-return]


class Time:
    """An event leaves `span` ms after the app's time at its arrival; the oldest has the timer.

    For an event in order that is its own time. A late one waits behind what came before it, so
    events leave in the order they came, by key or not.
    """

    def __init__(self, rt: Runtime, node: int, cell: int, span: int) -> None:
        self.rt, self.node, self.cell, self.span = rt, node, cell, span

    def fresh(self) -> deque[Any]:
        return deque()

    def push(self, state: State, ts: int, row: Row, out: Chunk) -> None:
        rt, held = self.rt, state[self.cell]
        due = rt.now + self.span
        if not held:
            rt.arm(state, self.node, due)
        held.append((due, rt.offset, ts, row))
        out.append((CURRENT, ts, row))

    def timer(self, state: State, due: int, payload: Any, out: Chunk) -> None:
        held = state[self.cell]
        while held and held[0][0] <= due:
            out.append((EXPIRED, due, held.popleft()[3]))
        if held:
            self.rt.arm(state, self.node, held[0][0], held[0][1])

    def content(self, state: State) -> Iterable[tuple[int, Row]]:
        return ((ts, row) for _, _, ts, row in state[self.cell])


# Cells of a batch window's state.
_NOW, _BEFORE, _END = 0, 1, 2


class TimeBatch:
    """Ticks every `span` ms from the first event on: [X of the last batch] R [C of this one].

    `start` aligns the ticks; `streaming` lets each C pass at once and keeps X for the tick.
    """

    def __init__(
        self,
        rt: Runtime,
        node: int,
        cell: int,
        span: int,
        start: int | None = None,
        streaming: bool = False,
    ) -> None:
        self.rt, self.node, self.cell, self.span = rt, node, cell, span
        self.start, self.streaming = start, streaming

    def fresh(self) -> list[Any]:
        return []

    def push(self, state: State, ts: int, row: Row, out: Chunk) -> None:
        batch = state[self.cell]
        if not batch:
            now = self.rt.now
            elapsed = 0 if self.start is None else (now - self.start) % self.span
            batch += ([], [], now - elapsed + self.span)
            self.rt.arm(state, self.node, batch[_END])
        batch[_NOW].append((ts, row))
        if self.streaming:
            out.append((CURRENT, ts, row))

    def timer(self, state: State, due: int, payload: Any, out: Chunk) -> None:
        del payload
        batch = state[self.cell]
        batch[_END] += self.span
        self.rt.arm(state, self.node, batch[_END], self.rt.offset)
        if self.streaming:
            out.extend((EXPIRED, due, row) for _, row in batch[_NOW])
            if batch[_NOW]:
                out.append((RESET, due, batch[_NOW][0][1]))
            batch[_NOW] = []
            return
        out.extend((EXPIRED, due, row) for _, row in batch[_BEFORE])
        if batch[_NOW]:
            out.append((RESET, due, batch[_NOW][0][1]))
            out.extend((CURRENT, ts, row) for ts, row in batch[_NOW])
        batch[_BEFORE], batch[_NOW] = batch[_NOW], []

    def content(self, state: State) -> Iterable[tuple[int, Row]]:
        batch = state[self.cell]
        return batch[_BEFORE] if batch else ()
