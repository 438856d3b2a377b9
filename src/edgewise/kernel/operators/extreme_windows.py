"""Keep the event with the largest or smallest value: the windows of `extrema:`.

Of equal values the newest counts. What was shown leaves when another takes its place. A null value
cannot be compared: its event is counted and dropped.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from edgewise.errors import BadEvent
from edgewise.kernel.operators.batch_windows import TimeBatch
from edgewise.kernel.operators.sliding_windows import Held, WindowOperator
from edgewise.kernel.runtime import CURRENT, EXPIRED, NO_TIME, RESET, Chunk, Row, Runtime, State

_END, _ASLEEP = 2, 3


class Extreme(WindowOperator):
    """What they share: which value, and which is better."""

    def __init__(
        self, rt: Runtime, node: int, cell: int, largest: bool, position: int, size: int
    ) -> None:
        super().__init__(rt, node, cell)
        self.best: Callable[..., Any] = max if largest else min
        self.largest, self.position, self.size = largest, position, size

    def has_value(self, row: Row) -> bool:
        if row[self.position] is None:
            self.rt.fault(NO_TIME, BadEvent("the attribute that is compared is null"))
            return False
        return True

    def is_better(self, row: Row, other: Row) -> bool:
        """Of equal ones the later is better; null is no better than anything."""
        mine, its = row[self.position], other[self.position]
        if mine is None or its is None:
            return False
        return bool(mine >= its if self.largest else mine <= its)


class ExtremeLength(Extreme):
    """The best of the last n events, shown with each event.

    State: `[events by value, values in order, shown]`.
    """

    def fresh(self) -> list[Any]:
        return [{}, deque(), None]

    def push(self, state: State, ts: int, row: Row, out: Chunk) -> None:
        if not self.has_value(row):
            return
        cells, now = state[self.cell], self.rt.now
        by_value, values, shown = cells
        by_value[row[self.position]] = (ts, row)
        if len(values) == self.size:
            by_value.pop(values.popleft(), None)
        values.append(row[self.position])
        if not by_value:
            return
        found = by_value[self.best(by_value)]
        if shown is not None and shown != found:
            out.append((EXPIRED, now, shown[1]))
        out.append((CURRENT, ts, found[1]))
        cells[2] = found

    def content(self, state: State) -> Held:
        shown = state[self.cell][2] if state[self.cell] else None
        return [shown] if shown else ()


class ExtremeTime(Extreme):
    """The best of the last `size` ms, shown when it changes; it leaves when its time is over.

    State: `[events by value, shown events in order, the last shown]`.
    """

    def fresh(self) -> list[Any]:
        return [{}, deque(), None]

    def push(self, state: State, ts: int, row: Row, out: Chunk) -> None:
        if not self.has_value(row):
            return
        cells, now = state[self.cell], self.rt.now
        self._expire(cells, now, out)
        cells[0][row[self.position]] = (now, ts, row)
        self.rt.arm(state, self.node, now + self.size)
        found = cells[0][self.best(cells[0])]
        if found != cells[2]:
            cells[2] = found
            cells[1].append(found)
            out.append((CURRENT, found[1], found[2]))

    def timer(self, state: State, due: int, payload: Any, out: Chunk) -> None:
        self._expire(state[self.cell], due, out)

    def _expire(self, cells: list[Any], now: int, out: Chunk) -> None:
        by_value, shown, _ = cells
        for value in [v for v, held in by_value.items() if held[0] + self.size <= now]:
            del by_value[value]
        for held in [h for h in shown if h[0] + self.size <= now]:
            shown.remove(held)
            out.append((EXPIRED, now, held[2]))

    def content(self, state: State) -> Held:
        return ((ts, row) for _, ts, row in state[self.cell][1]) if state[self.cell] else ()


class ExtremeLengthBatch(Extreme):
    """The best of each n events: `[X of the last] R [C]`. State: `[best, seen, shown]`."""

    def fresh(self) -> list[Any]:
        return [None, 0, None]

    def push(self, state: State, ts: int, row: Row, out: Chunk) -> None:
        cells, now = state[self.cell], self.rt.now
        if cells[0] is None or self.is_better(row, cells[0][1]):
            cells[0] = (ts, row)
        cells[1] += 1
        if cells[1] < self.size:
            return
        if cells[2] is not None:
            out += ((EXPIRED, now, cells[2][1]), (RESET, now, cells[2][1]))
        out.append((CURRENT, *cells[0]))
        cells[:] = [None, 0, cells[0]]

    def content(self, state: State) -> Held:
        shown = state[self.cell][2] if state[self.cell] else None
        return [shown] if shown else ()


class ExtremeTimeBatch(TimeBatch):
    """The best of each `span` ms."""

    def __init__(
        self,
        rt: Runtime,
        node: int,
        cell: int,
        largest: bool,
        position: int,
        span: int,
        start: int | None = None,
    ) -> None:
        super().__init__(rt, node, cell, span, start)
        self.extreme = Extreme(rt, node, cell, largest, position, span)

    def push(self, state: State, ts: int, row: Row, out: Chunk) -> None:
        super().push(state, ts, row, out)
        held = state[self.cell][0]
        if len(held) > 1:
            last = held.pop()
            if self.extreme.is_better(last[1], held[0][1]):
                held[0] = last
