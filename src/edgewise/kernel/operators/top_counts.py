"""Count values and show the most or least frequent: `extrema:topK`, `bottomK` and their batches.

Of equally frequent ones the one that came last is first. A row comes out when what is shown
changes; it leaves before the next one, with a reset in between.
"""

from __future__ import annotations

from typing import Any

from edgewise.kernel.operators.processors import Processor
from edgewise.kernel.runtime import CURRENT, EXPIRED, RESET, Chunk, Row, Runtime, State

_COUNTS, _CLOCK, _LAST, _SHOWN, _DATA = 0, 1, 2, 3, 4


def count(cells: list[Any], value: Any, step: int) -> None:
    """Counts by value, each with the number of its last change."""
    counts = cells[_COUNTS]
    cells[_CLOCK] += 1
    found = counts.get(value, (0, 0))[0] + step
    if found > 0:
        counts[value] = (found, cells[_CLOCK])
    else:
        counts.pop(value, None)


def pick(counts: dict[Any, tuple[int, int]], k: int, *, top: bool) -> list[Any]:
    """Values and their counts by turns, filled up with nulls."""
    sign = -1 if top else 1
    best = sorted(counts.items(), key=lambda held: (sign * held[1][0], -held[1][1]))[:k]
    found = [part for value, (n, _) in best for part in (value, n)]
    return found + [None] * (2 * k - len(found))


class TopCounts(Processor):
    """State: `[counts, changes, last event, shown row, shown data]`.

    A chunk is counted whole before anything is shown.
    """

    def __init__(self, rt: Runtime, node: int, cell: int, k: int, *, top: bool) -> None:
        super().__init__(rt, node, cell)
        self.k, self.top = k, top
        self.changed = False  # by the chunk at hand

    def fresh(self) -> list[Any]:
        return [{}, 0, None, None, None]

    def process(
        self, state: State, kind: int, ts: int, row: Row, args: tuple[Any, ...], out: Chunk
    ) -> None:
        cells = state[self.cell]
        if kind == CURRENT:
            cells[_LAST] = (ts, row)
        count(cells, args[0], 1 if kind == CURRENT else -1)
        self.changed = True

    def reset(self, state: State, ts: int, row: Row, out: Chunk) -> None:
        state[self.cell][_COUNTS] = {}
        self.changed = True

    def end(self, state: State, out: Chunk) -> None:
        if not self.changed:
            return
        self.changed = False
        cells, now = state[self.cell], self.rt.now
        if cells[_SHOWN] is not None:
            out.append((EXPIRED, now, cells[_SHOWN]))
            cells[_SHOWN] = None
        if cells[_LAST] is not None:
            out.append((RESET, now, cells[_LAST][1]))
        self.show_new(cells, out, fresh=False)

    def show_new(self, cells: list[Any], out: Chunk, *, fresh: bool) -> None:
        """What is shown now, where it is other than before.

        `fresh`: texts are counted anew in each batch, and then never the same, as there.
        """
        data = pick(cells[_COUNTS], self.k, top=self.top)
        shown = 2 * min(len(cells[_COUNTS]), self.k)
        before = cells[_DATA]
        texts = fresh and any(isinstance(v, str) for v in data[:shown:2])
        if shown and (texts or before is None or before[:shown] != data[:shown]):
            cells[_DATA] = data
            ts, row = cells[_LAST]
            cells[_SHOWN] = (*row, *data)
            out.append((CURRENT, ts, cells[_SHOWN]))


class TopCountsBatch(TopCounts):
    """What batches share: they show and count anew."""

    def show_batch(self, cells: list[Any], now: int, out: Chunk) -> None:
        if cells[_SHOWN] is not None:
            out += ((EXPIRED, now, cells[_SHOWN]), (RESET, now, cells[_SHOWN]))
            cells[_SHOWN] = None
        if cells[_LAST] is not None:
            self.show_new(cells, out, fresh=True)
        cells[_COUNTS] = {}


class TopCountsLengthBatch(TopCountsBatch):
    def process(
        self, state: State, kind: int, ts: int, row: Row, args: tuple[Any, ...], out: Chunk
    ) -> None:
        cells, (value, n, _) = state[self.cell], args
        if kind != CURRENT:
            return
        cells[_LAST] = (ts, row)
        count(cells, value, 1)
        if sum(held for held, _ in cells[_COUNTS].values()) == n:
            self.show_batch(cells, self.rt.now, out)


class TopCountsTimeBatch(TopCountsBatch):
    """State has one more cell: whether its timer runs."""

    def fresh(self) -> list[Any]:
        return [*super().fresh(), False]

    def process(
        self, state: State, kind: int, ts: int, row: Row, args: tuple[Any, ...], out: Chunk
    ) -> None:
        cells, (value, span, _) = state[self.cell], args
        if kind != CURRENT:
            return
        if not cells[5]:
            cells[5] = True
            self.rt.arm(state, self.node, self.rt.now + span, payload=span)
        cells[_LAST] = (ts, row)
        count(cells, value, 1)

    def timer(self, state: State, due: int, payload: Any, out: Chunk) -> None:
        self.show_batch(state[self.cell], due, out)
        self.rt.arm(state, self.node, due + payload, payload=payload)
