"""Hold the events of batch windows and let them out together.

A batch that closes gives [X of the last batch] R [C of this one].
"""

from __future__ import annotations

from typing import Any

from edgewise.kernel.operators.cron import parse
from edgewise.kernel.operators.sliding_windows import Held, TextTest, WindowOperator
from edgewise.kernel.runtime import CURRENT, EXPIRED, RESET, Chunk, Row, Runtime, State

# Cells of a batch window's state.
_NOW, _BEFORE, _END, _ASLEEP = 0, 1, 2, 3
_ARRAY = 2  # of `batch`: what this chunk let out so far
_COUNTED, _OWED, _TEXT = 2, 3, 4  # of `expressionBatch`
KEPT_MAX = 100_000  # events a side of a join keeps where nothing makes it forget


class Batch(WindowOperator):
    """What the kinds of batches share: how one is let out."""

    streaming = False  # each C passes at once; X and R come with the end of the batch
    keeps = False  # in a join that wants no X, what was let out stays to be found

    def fresh(self) -> list[Any]:
        return [[], []]

    def flush(self, state: State, now: int, out: Chunk) -> None:
        batch = state[self.cell]
        held = batch[_NOW]
        if self.streaming:
            if not self.keeps:
                out.extend((EXPIRED, now, row) for _, row in held)
            if held:
                out.append((RESET, now, held[0][1]))
            self._keep(batch)
            return
        if not self.keeps and not (self.quiet and held):
            out.extend((EXPIRED, now, row) for _, row in batch[_BEFORE])
        if held:
            out.append((RESET, now, held[0][1]))
            out.extend((CURRENT, ts, row) for ts, row in held)
        self._keep(batch)

    def _keep(self, batch: list[Any]) -> None:
        if self.keeps:
            batch[_BEFORE] += batch[_NOW]
            del batch[_BEFORE][:-KEPT_MAX]
        else:
            batch[_BEFORE] = [] if self.streaming else batch[_NOW]
        batch[_NOW] = []

    def content(self, state: State) -> Held:
        batch = state[self.cell]
        if not batch:
            return ()
        return batch[_BEFORE] + batch[_NOW] if self.streaming else batch[_BEFORE]  # type: ignore[no-any-return]


class LengthBatch(Batch):
    def __init__(self, rt: Runtime, node: int, cell: int, n: int, streaming: bool = False) -> None:
        super().__init__(rt, node, cell)
        self.n, self.streaming = n, streaming

    def push(self, state: State, ts: int, row: Row, out: Chunk) -> None:
        held = state[self.cell][_NOW]
        if self.n == 0:
            out += ((CURRENT, ts, row), (EXPIRED, self.rt.now, row), (RESET, ts, row))
        elif self.streaming:
            if len(held) == self.n:
                self.flush(state, self.rt.now, out)
            state[self.cell][_NOW].append((ts, row))
            out.append((CURRENT, ts, row))
        else:
            held.append((ts, row))
            if len(held) == self.n:
                self.flush(state, self.rt.now, out)


class TimeBatch(Batch):
    """Ticks every `span` ms from the first event on, for ever; `start` aligns the ticks.

    While nothing is inside it sleeps: then what is kept of its timer stands behind _END.
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
        super().__init__(rt, node, cell)
        self.span, self.start, self.streaming = span, start, streaming

    def fresh(self) -> list[Any]:
        return []

    def push(self, state: State, ts: int, row: Row, out: Chunk) -> None:
        batch = state[self.cell]
        if not batch:
            now = self.rt.now
            elapsed = 0 if self.start is None else (now - self.start) % self.span
            batch += ([], [], now - elapsed + self.span)
            self.rt.arm(state, self.node, batch[_END])
        elif len(batch) > _ASLEEP:
            batch[_END] = self.rt.wake(state, self.node, self.span, batch.pop())
        batch[_NOW].append((ts, row))
        if self.streaming:
            out.append((CURRENT, ts, row))

    def timer(self, state: State, due: int, payload: Any, out: Chunk) -> None:
        batch = state[self.cell]
        batch[_END] += self.span
        self.flush(state, due, out)
        if self.rests(batch):
            batch.append(self.rt.asleep(batch[_END]))
        else:
            self.rt.again(state, batch[_END])

    def rests(self, batch: list[Any]) -> bool:
        """Whether the next tick would let nothing out."""
        return self.keeps or not batch[_BEFORE]


class CronBatch(Batch):
    """Let out at the times of a cron expression: [X of the last batch] [C of this one], no R."""

    def __init__(self, rt: Runtime, node: int, cell: int, text: str) -> None:
        super().__init__(rt, node, cell)
        self.cron = parse(text)

    def push(self, state: State, ts: int, row: Row, out: Chunk) -> None:
        held = state[self.cell][_NOW]
        if not held:
            self.rt.arm(state, self.node, self.cron.after(self.rt.now))
        held.append((ts, row))

    def timer(self, state: State, due: int, payload: Any, out: Chunk) -> None:
        batch = state[self.cell]
        out.extend((EXPIRED, due, row) for _, row in batch[_BEFORE])
        out.extend((CURRENT, ts, row) for ts, row in batch[_NOW])
        batch[_BEFORE], batch[_NOW] = batch[_NOW], []


class Hopping(WindowOperator):
    """Every `hop` ms the events of the last `span` ms come out as one batch."""

    def __init__(self, rt: Runtime, node: int, cell: int, span: int, hop: int) -> None:
        super().__init__(rt, node, cell)
        self.span, self.hop = span, hop

    def fresh(self) -> list[Any]:
        return []

    def push(self, state: State, ts: int, row: Row, out: Chunk) -> None:
        batch = state[self.cell]
        if not batch:
            batch += ([], [], self.rt.now + self.hop)
            self.rt.arm(state, self.node, batch[_END])
        batch[_NOW].append((ts, row))

    def timer(self, state: State, due: int, payload: Any, out: Chunk) -> None:
        batch = state[self.cell]
        out.extend((EXPIRED, due, row) for _, row in batch[_BEFORE])
        batch[_NOW] = [(ts, row) for ts, row in batch[_NOW] if ts > due - self.span - 1]
        inside = [(ts, row) for ts, row in batch[_NOW] if ts >= due - self.span]
        if inside:
            out.append((RESET, due, inside[0][1]))
            out.extend((CURRENT, ts, row) for ts, row in inside)
        batch[_BEFORE] = inside
        if not inside:
            batch.clear()
            return
        batch[_END] += self.hop
        self.rt.arm(state, self.node, batch[_END], self.rt.offset)

    def content(self, state: State) -> Held:
        batch = state[self.cell]
        return batch[_BEFORE] if batch else ()


class ChunkBatch(Batch):
    """`batch()`: one chunk of input is one batch, or slices of n of it.

    The first slice pushes out all that the chunk before let in.
    """

    def __init__(self, rt: Runtime, node: int, cell: int, n: int = 0) -> None:
        super().__init__(rt, node, cell)
        self.n = n

    def fresh(self) -> list[Any]:
        return [[], [], []]

    def push(self, state: State, ts: int, row: Row, out: Chunk) -> None:
        held = state[self.cell][_NOW]
        held.append((ts, row))
        if self.n and len(held) == self.n:
            self.flush(state, self.rt.now, out)

    def flush(self, state: State, now: int, out: Chunk) -> None:
        batch = state[self.cell]
        held = batch[_NOW]
        if not (self.quiet or batch[_ARRAY]):
            out.extend((EXPIRED, now, row) for _, row in batch[_BEFORE])
        out.append((RESET, now, held[0][1]))
        out.extend((CURRENT, ts, row) for ts, row in held)
        batch[_ARRAY] += held
        batch[_NOW] = []

    def end(self, state: State, out: Chunk) -> None:
        batch = state[self.cell]
        if batch[_NOW]:
            self.flush(state, self.rt.now, out)
        if batch[_ARRAY]:
            batch[_BEFORE], batch[_ARRAY] = batch[_ARRAY], []


class ExpressionBatch(Batch):
    """A batch is closed by the event that makes the expression false.

    That event opens the next batch, or with `include` still belongs to this one. Aggregates in
    the expression count from the event that closed the last batch on, whichever it belongs to.
    An event that finds nothing held and makes it false comes and goes. Where events bring the
    expression along, a new text judges again, one by one, what is held.
    State: [held, last batch, counted, rows owed to the next chunk, text].
    """

    def __init__(
        self, rt: Runtime, node: int, cell: int, test: Any, include: Any = False,
        streaming: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(rt, node, cell)
        self.test, self.include, self.streaming = test, include, streaming

    def fresh(self) -> list[Any]:
        return [[], [], [], [], None]

    def push(self, state: State, ts: int, row: Row, out: Chunk) -> None:
        batch, test = state[self.cell], self.test
        if isinstance(test, TextTest):
            text = row[test.position]
            test = test.compiled(text)
            if text != batch[_TEXT]:
                batch[_TEXT], batch[_COUNTED] = text, []
                self._again(batch, test, out)
        if not self.streaming:
            self._take(batch, test, (ts, row), out)
            return
        out += batch[_OWED]
        batch[_OWED] = []
        self._pass(batch, test, (ts, row), out)

    def _again(self, batch: list[Any], test: Any, out: Chunk) -> None:
        held, batch[_NOW] = batch[_NOW], []
        for event in held:
            if self.streaming:
                self._repass(batch, test, event)
            else:
                self._take(batch, test, event, out)

    def _includes(self, row: Row) -> bool:
        return bool(row[self.include[1]] if isinstance(self.include, tuple) else self.include)

    def _holds(self, batch: list[Any], test: Any, event: tuple[int, Row]) -> bool:
        batch[_COUNTED].append(event)
        first = batch[_NOW][0] if batch[_NOW] else event
        if test(batch[_COUNTED], first, *event):
            return True
        batch[_COUNTED] = [event]
        return False

    def _take(self, batch: list[Any], test: Any, event: tuple[int, Row], out: Chunk) -> None:
        if self._holds(batch, test, event):
            batch[_NOW].append(event)
            return
        now, (ts, row) = self.rt.now, event
        out.extend((EXPIRED, now, r) for _, r in batch[_BEFORE])
        held, batch[_BEFORE], batch[_NOW] = batch[_NOW], [], []
        if not held:
            out += ((EXPIRED, now, row), (CURRENT, ts, row))
            return
        if self._includes(row):
            held.append(event)
        else:
            batch[_NOW] = [event]
        out.extend((CURRENT, t, r) for t, r in held)
        batch[_BEFORE] = held

    def _pass(self, batch: list[Any], test: Any, event: tuple[int, Row], out: Chunk) -> None:
        now, (ts, row) = self.rt.now, event
        if self._holds(batch, test, event):
            batch[_NOW].append(event)
            out.append((CURRENT, ts, row))
            return
        held, batch[_NOW] = batch[_NOW], []
        leaving = [(EXPIRED, now, r) for _, r in held]
        if not held:
            out += ((EXPIRED, now, row), (CURRENT, ts, row))
        elif self._includes(row):
            out += [(CURRENT, ts, row), *leaving, (EXPIRED, now, row)]
        else:
            out += [*leaving, (CURRENT, ts, row)]
            batch[_NOW] = [event]

    def _repass(self, batch: list[Any], test: Any, event: tuple[int, Row]) -> None:
        """It was let out when it came; only what leaves is owed."""
        if self._holds(batch, test, event):
            batch[_NOW].append(event)
            return
        held, batch[_NOW] = batch[_NOW], []
        if held and not self._includes(event[1]):
            batch[_NOW] = [event]
        else:
            held.append(event)
        batch[_OWED] += [(EXPIRED, self.rt.now, r) for _, r in held]
