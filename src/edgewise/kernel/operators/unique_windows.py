"""Keep one event per key: the windows of `unique:`.

Each key has its newest event, or with `first` its oldest; the one it takes the place of leaves.
Batches come out in the order of Java's hash map over their keys, as in the original. A key is the
tuple of the attributes named; null is a key like others.
"""

from __future__ import annotations

from typing import Any

from edgewise.kernel.operators.batch_windows import Batch, TimeBatch
from edgewise.kernel.operators.external_time_batch import ExternalTimeBatch
from edgewise.kernel.operators.sliding_windows import Held, WindowOperator
from edgewise.kernel.runtime import CURRENT, EXPIRED, Chunk, Row, Runtime, State
from edgewise.plan.functions.java_maps import in_map_order

_NOW, _END, _ASLEEP = 0, 2, 3
KEYS_MAX = 1_000_000  # of a window that never forgets one; the oldest is forgotten then


class UniqueEver(WindowOperator):
    """The newest event of each key, for ever."""

    def __init__(self, rt: Runtime, node: int, cell: int, *positions: int) -> None:
        super().__init__(rt, node, cell)
        self.positions = positions

    def fresh(self) -> dict[Any, Any]:
        return {}

    def push(self, state: State, ts: int, row: Row, out: Chunk) -> None:
        held, key = state[self.cell], tuple(row[p] for p in self.positions)
        before = held.get(key)
        if before is not None:
            out.append((EXPIRED, self.rt.now, before[1]))
        elif len(held) >= KEYS_MAX:
            del held[next(iter(held))]
        held[key] = (ts, row)
        out.append((CURRENT, ts, row))

    def content(self, state: State) -> Held:
        return state[self.cell].values()  # type: ignore[no-any-return]


class UniqueFirst(UniqueEver):
    """The first event of each key; others do not pass."""

    def push(self, state: State, ts: int, row: Row, out: Chunk) -> None:
        held, key = state[self.cell], tuple(row[p] for p in self.positions)
        if key in held:
            return
        if len(held) >= KEYS_MAX:
            del held[next(iter(held))]
        held[key] = (ts, row)
        out.append((CURRENT, ts, row))


class UniqueLength(WindowOperator):
    """The newest events of the last n keys. State: events by key, the oldest first."""

    def __init__(self, rt: Runtime, node: int, cell: int, position: int, n: int) -> None:
        super().__init__(rt, node, cell)
        self.position, self.n = position, n

    def fresh(self) -> dict[Any, Any]:
        return {}

    def push(self, state: State, ts: int, row: Row, out: Chunk) -> None:
        held, key, now = state[self.cell], row[self.position], self.rt.now
        before = held.pop(key, None)
        if before is None and len(held) >= self.n > 0:
            before = held.pop(next(iter(held)))
        if before is not None:
            out.append((EXPIRED, now, before[1]))
        if self.n == 0:
            out.append((EXPIRED, now, row))
        else:
            held[key] = (ts, row)
        out.append((CURRENT, ts, row))

    def content(self, state: State) -> Held:
        return state[self.cell].values()  # type: ignore[no-any-return]


class UniqueTime(WindowOperator):
    """The newest event of each key, for `span` ms. State: events by key, the oldest first."""

    def __init__(self, rt: Runtime, node: int, cell: int, position: int, span: int) -> None:
        super().__init__(rt, node, cell)
        self.position, self.span = position, max(span, 1)

    def fresh(self) -> dict[Any, Any]:
        return {}

    def push(self, state: State, ts: int, row: Row, out: Chunk) -> None:
        held, key, now = state[self.cell], row[self.position], self.rt.now
        before = held.pop(key, None)
        if before is not None:
            out.append((EXPIRED, now, before[2]))
        self._expire(held, now, out)
        held[key] = (now + self.span, ts, row)
        self.rt.arm(state, self.node, now + self.span)
        out.append((CURRENT, ts, row))

    def timer(self, state: State, due: int, payload: Any, out: Chunk) -> None:
        self._expire(state[self.cell], due, out)

    def _expire(self, held: dict[Any, Any], now: int, out: Chunk) -> None:
        while held and held[key := next(iter(held))][0] <= now:
            out.append((EXPIRED, now, held.pop(key)[2]))

    def content(self, state: State) -> Held:
        return ((ts, row) for _, ts, row in state[self.cell].values())


def let_out(held: dict[Any, Any], now: int) -> list[tuple[int, Row]]:
    """The events of a batch, in the order of Java's hash map over their keys."""
    return [(now, held[key][1]) for key in in_map_order(held)]


class UniqueLengthBatch(Batch):
    """A batch is full with n keys."""

    def __init__(
        self, rt: Runtime, node: int, cell: int, position: int, n: int, *, first: bool = False
    ) -> None:
        super().__init__(rt, node, cell)
        self.position, self.n, self.first = position, n, first

    def fresh(self) -> list[Any]:
        return [{}, []]

    def push(self, state: State, ts: int, row: Row, out: Chunk) -> None:
        batch, key = state[self.cell], row[self.position]
        if not (self.first and key in batch[_NOW]):
            batch[_NOW][key] = (ts, row)
        if len(batch[_NOW]) == self.n:
            batch[_NOW] = let_out(batch[_NOW], self.rt.now)
            self.flush(state, self.rt.now, out)
            batch[_NOW] = {}

    def content(self, state: State) -> Held:
        return state[self.cell][_NOW].values() if state[self.cell] else ()


class UniqueTimeBatch(TimeBatch):
    """Ticks as `timeBatch` does; each key once."""

    def __init__(
        self,
        rt: Runtime,
        node: int,
        cell: int,
        position: int,
        span: int,
        start: int | None = None,
        *,
        first: bool = False,
    ) -> None:
        super().__init__(rt, node, cell, span, start)
        self.position, self.first = position, first

    def push(self, state: State, ts: int, row: Row, out: Chunk) -> None:
        batch, key = state[self.cell], row[self.position]
        self._begin(state)
        if not (self.first and key in batch[_NOW]):
            batch[_NOW][key] = (ts, row)

    def _begin(self, state: State) -> None:
        batch = state[self.cell]
        if not batch:
            now = self.rt.now
            elapsed = 0 if self.start is None else (now - self.start) % self.span
            batch += ({}, [], now - elapsed + self.span)
            self.rt.arm(state, self.node, batch[_END])
        elif len(batch) > _ASLEEP:
            batch[_END] = self.rt.wake(state, self.node, self.span, batch.pop())

    def flush(self, state: State, now: int, out: Chunk) -> None:
        batch = state[self.cell]
        batch[_NOW] = let_out(batch[_NOW], now)
        super().flush(state, now, out)
        batch[_NOW] = {}


class UniqueTimeLengthBatch(UniqueTimeBatch):
    """Full with n keys or by time; what comes after it is full waits for no batch: it is gone.

    State as of a time batch, and after the end whether this one was let out already.
    """

    def __init__(
        self, rt: Runtime, node: int, cell: int, position: int, span: int, *rest: int
    ) -> None:
        *start, self.n = rest
        super().__init__(rt, node, cell, position, span, start[0] if start else None)

    def push(self, state: State, ts: int, row: Row, out: Chunk) -> None:
        batch = state[self.cell]
        if not batch:
            self._begin(state)
            batch.append(False)
        if batch[3]:
            return
        batch[_NOW][row[self.position]] = (ts, row)
        if len(batch[_NOW]) == self.n:
            self.flush(state, self.rt.now, out)
            batch[3] = True

    def timer(self, state: State, due: int, payload: Any, out: Chunk) -> None:
        batch = state[self.cell]
        batch[_END] += self.span
        if not batch[3]:
            self.flush(state, due, out)
        batch[3] = False
        self.rt.again(state, batch[_END])


class UniqueExternalTimeBatch(ExternalTimeBatch):
    """As `externalTimeBatch`, each key once, in the order the keys first came."""

    def __init__(self, rt: Runtime, node: int, cell: int, key_position: int, *rest: Any) -> None:
        super().__init__(rt, node, cell, *rest)
        self.key_position = key_position

    def _let_out(self, state: State, out: Chunk, *, again: bool) -> None:
        batch = state[self.cell]
        newest = {row[self.key_position]: (ts, row) for ts, row in batch[0]}
        batch[0] = list(newest.values())
        super()._let_out(state, out, again=again)
