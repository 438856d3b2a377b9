"""Hold the events of `externalTimeBatch` and let them out when an event's own time ends the batch.

Time is an attribute here, so batches end with events and not with the clock; only `timeout` uses
that. `codegen.time_batches` computes whole batches at once and leaves the rest in this state.
"""

from __future__ import annotations

from typing import Any

from edgewise.kernel.operators.sliding_windows import Held, WindowOperator
from edgewise.kernel.runtime import CURRENT, EXPIRED, RESET, Chunk, Row, Runtime, State

_END = 2  # of its state: where the open batch ends


def begun(end: int) -> list[Any]:
    """The state of an external time batch that holds nothing yet."""
    return [[], [], end, False, None]


def end_of(batch: list[Any]) -> int:
    return int(batch[_END])


class ExternalTimeBatch(WindowOperator):
    """Batches by an attribute that carries time; an event past the end lets the batch out.

    `start` is a time, or the position of an attribute of the first event. `timeout` lets it
    out early when nothing came for so long; what comes later for it lets it out again, whole.
    State: [events, last batch, end, let out already, timer].
    """

    def __init__(
        self,
        rt: Runtime,
        node: int,
        cell: int,
        position: int,
        span: int,
        start: tuple[str, int] | None = None,
        timeout: int | None = None,
        replace: bool = False,
    ) -> None:
        super().__init__(rt, node, cell)
        self.position, self.span, self.start = position, span, start
        self.timeout, self.replace = timeout, replace

    def fresh(self) -> list[Any]:
        return []

    def push(self, state: State, ts: int, row: Row, out: Chunk) -> None:
        batch = state[self.cell]
        now = row[self.position]
        if now is None:
            self.timeless()
            return
        if not batch:
            batch += begun(self._first_end(row))
            self._wait(state)
        if now >= batch[_END]:
            if batch[0] and (not batch[3] or batch[4] == "more"):
                self._let_out(state, out, again=batch[3])
            elif not batch[3]:
                self._drop_before(batch, out)
            batch[0], batch[3] = [], False
            batch[4] = None
            elapsed = (now - batch[_END]) % self.span
            batch[_END] = now - elapsed + self.span
            self._wait(state)
        batch[0].append((ts, row))
        if batch[3]:
            batch[4] = "more"

    def _first_end(self, row: Row) -> int:
        now: int = row[self.position]
        if self.start is None:
            return now + self.span
        kind, value = self.start
        base = row[value] if kind == "attribute" else value
        if kind == "attribute":
            return int(now if base is None else base) + self.span
        return now - (now - base) % self.span + self.span

    def _drop_before(self, batch: list[Any], out: Chunk) -> None:
        out.extend((EXPIRED, self.rt.now, row) for _, row in batch[1])
        batch[1] = []

    def _let_out(self, state: State, out: Chunk, *, again: bool) -> None:
        batch = state[self.cell]
        stamp = batch[_END]
        rows = [(ts, self._stamped(row, stamp)) for ts, row in batch[0]]
        if not self.quiet:
            out.extend((EXPIRED, self.rt.now, row) for _, row in batch[1])
        out.append((RESET, self.rt.now, rows[0][1]))
        out.extend((CURRENT, ts, row) for ts, row in rows)
        batch[1] = rows
        del again

    def _stamped(self, row: Row, stamp: int) -> Row:
        if not self.replace:
            return row
        return (*row[: self.position], stamp, *row[self.position + 1 :])

    def _wait(self, state: State) -> None:
        if self.timeout is not None:
            self.rt.arm(state, self.node, self.rt.now + self.timeout, payload=state[self.cell][2])

    def timer(self, state: State, due: int, payload: Any, out: Chunk) -> None:
        batch = state[self.cell]
        if payload != batch[_END]:
            return
        if batch[0] and (not batch[3] or batch[4] == "more"):
            self._let_out(state, out, again=batch[3])
            batch[3], batch[4] = True, None
        elif batch[1] and not batch[3]:
            self._drop_before(batch, out)
        self._wait(state)

    def content(self, state: State) -> Held:
        batch = state[self.cell]
        return batch[1] if batch else ()
