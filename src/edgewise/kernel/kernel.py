"""Run a fragment: feed events, move time, take rows, save and restore state.

A `Kernel` is what engines hold: the functions that `compile` loaded around one `Runtime`. Events
come in as columns and in order; where streams declare a lateness they are put in order here first.
"""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from edgewise.event.event import EventKind
from edgewise.kernel import on_demand
from edgewise.kernel.api import EventRun, KernelStats, OutColumns, OutRow
from edgewise.kernel.code_globals import CODE_GLOBALS
from edgewise.kernel.codegen.state_owners import StateLayout
from edgewise.kernel.operators import external_time_batch
from edgewise.kernel.operators.reorder import APP_START, ReorderBuffer
from edgewise.kernel.operators.stored_table import StoredTable
from edgewise.kernel.runtime import Failed, Runtime, do_nothing
from edgewise.kernel.state.kernel_state import KernelState
from edgewise.kernel.state.queue_parts import LaterEntries, encode_entries
from edgewise.plan.nodes import App, OnDemandQuery

_KINDS = tuple(EventKind)


LONG_RUN_EVENTS = 64  # from here on the collector waits until a run is done


@contextmanager
def _uncollected() -> Iterator[None]:
    """Kernels make no cycles, and a collector that looks for them doubles what a row costs."""
    running = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if running:
            gc.enable()


class StoreSession(Protocol):
    """The databases behind the tables of a kernel (`engines.batch.open_stores`)."""

    def begin(self, version: int) -> None: ...

    def stop_writes(self) -> None: ...

    def commit(self, version: int | None) -> None: ...

    def close(self) -> None: ...


class Kernel:
    """A kernel: generated functions around a runtime."""

    def __init__(
        self,
        app: App,
        source: str,
        feeders: dict[str, Any],
        rt: Runtime,
        layout: StateLayout,
        plan_id: bytes,
        by_key: int | None = None,
    ) -> None:
        self.app = app
        self.source = source
        self.layout = layout
        self.stats = KernelStats(faults=rt.faults, reasons=rt.reasons, dropped=rt.dropped)
        self._feeders = feeders
        self._rt = rt
        self.session: StoreSession | None = None  # set by an engine that opens its stores
        self._saved = KernelState(app, rt, self.stats, layout, plan_id, by_key)

    @property
    def _order(self) -> ReorderBuffer | None:
        return self._saved.order

    def start(self, clock: int) -> None:
        """The app begins: what waits from the start on waits from here."""
        self._rt.now = clock
        if self._order is not None:
            self._order.floor = clock
        if not self._rt.keyed:
            self._rt.state(())

    def note_app_start(self, clock: int, offset: int, at: int) -> None:
        """An event of the app, maybe of no stream that is read here: what counts from the app's
        first event on does so from here, if it has not begun.
        """
        if self._rt.keyed or () in self._rt.keys or self._rt.created is do_nothing:
            return
        if self._order is None:
            self._begin(clock, offset, at)
        else:
            self._order.note_app_start(clock, offset, at)

    def _begin(self, clock: int, offset: int, at: int) -> None:
        if () not in self._rt.keys:
            self._rt.begin(clock, 1, offset, at)
            self._rt.state(())

    def feed(self, run: EventRun) -> None:
        self.stats.events_in += len(run.ts)
        if self._order is None:
            self._pass_on(run)
        elif len(run.ts):
            self._order.put(run)
            self.advance(run.clock[-1], run.at[-1])

    def _pass_on(self, run: EventRun) -> None:
        if run.stream == APP_START:
            self._begin(run.clock[0], run.offset[0], run.at[0])
            return
        feeder = self._feeders.get(run.stream)
        if feeder is not None and len(run.ts) >= LONG_RUN_EVENTS:
            with _uncollected():
                feeder(run)
        elif feeder is not None:
            feeder(run)
        elif len(run.ts):
            self._move(run.clock[-1], run.at[-1])
        if run.stream.startswith("!"):
            rows = zip(*run.columns, strict=True)
            positions = zip(run.clock, run.offset, run.at, run.ts, rows, strict=True)
            for clock, offset, at, ts, row in positions:
                self._rt.begin(clock, 1, offset, at)
                self._rt.emit(run.stream, [(0, ts, row)])

    def feed_chunk(self, run: EventRun) -> None:
        """All events of the run as one chunk, at the clock of the last."""
        rt = self._rt
        if run.stream not in self._feeders or not len(run.ts) or self._order is not None:
            self.feed(run)
            return
        self.stats.events_in += len(run.ts)
        rt.fire(run.clock[-1], run.at[-1])
        rt.begin(run.clock[-1], 1, run.offset[-1], run.at[-1])
        rows = zip(*run.columns, strict=True)
        chunk = [(0, ts, row) for ts, row in zip(run.ts, rows, strict=True)]
        self._feeders["", run.stream](rt.state(()), chunk)  # type: ignore[index]

    def answer(self, query: OnDemandQuery) -> list[tuple[Any, ...]]:
        """An on-demand query against what the app holds."""
        return on_demand.answer(self.app, self._rt, query, CODE_GLOBALS)

    def advance(self, clock: int, at: int) -> None:
        if self._order is not None:
            for run in self._order.release(clock):
                self._pass_on(run)
            clock -= self._order.lag_ms
        self._move(clock, at)

    def next_timer(self) -> int | None:
        """When the next timer is due; None: nothing waits for time."""
        heap = self._rt.heap
        return heap[0][0] if heap else None

    def _move(self, clock: int, at: int) -> None:
        self._rt.fire(clock, at)
        self._rt.now = max(self._rt.now, clock)

    def batch_end(self) -> int | None:
        """When the open batch of an external time window ends; None: none has begun."""
        batch = self._rt.state(())[self._rt.batches]
        return external_time_batch.end_of(batch) if batch else None

    def begin_batch(self, end: int) -> None:
        """As after an event that closed the batch before, without that event."""
        self._rt.state(())[self._rt.batches] = external_time_batch.begun(end)

    def take(self) -> list[OutRow]:
        return [
            OutRow(stream, clock, phase, offset, seq, ts, at, _KINDS[kind], data)
            for stream, clock, phase, offset, seq, ts, at, kind, data in self.take_tuples()
        ]

    def take_tuples(self) -> list[tuple[Any, ...]]:
        """As `take`, without an object per row: the fields of OutRow in order."""
        rows, self._rt.rows = self._rt.rows, []
        if self._rt.blocks:
            self._rt.blocks = 0
            rows = [row for r in rows for row in (r.rows() if isinstance(r, OutColumns) else (r,))]
        self.stats.rows_out += len(rows)
        return rows

    def take_columns(self) -> list[OutColumns]:
        """As `take`, as columns: a block for each stream, and those made as blocks."""
        rows, self._rt.rows = self._rt.rows, []
        found: list[OutColumns] = []
        if self._rt.blocks:
            found = [row for row in rows if isinstance(row, OutColumns)]
            rows = [row for row in rows if not isinstance(row, OutColumns)]
            self._rt.blocks = 0
        by_stream: dict[str, list[tuple[Any, ...]]] = {}
        for row in rows:
            by_stream.setdefault(row[0], []).append(row)
        found += map(OutColumns.of, by_stream.values())
        self.stats.rows_out += sum(map(len, found))
        return found

    def take_failed(self) -> list[Failed]:
        """The faults since the last call, as many as were kept whole."""
        failed, self._rt.failed = self._rt.failed, []
        return failed

    @property
    def stored_tables(self) -> dict[str, StoredTable]:
        """The tables with `@store`; an engine opens their backends."""
        stores = self._rt.stores.items()
        return {name: store for name, store in stores if isinstance(store, StoredTable)}

    def changed(self) -> Iterable[tuple[bytes, bytes | None]]:
        return encode_entries(self._saved.changed())

    def collect_changed(self) -> LaterEntries:
        """As `changed`; what need not stand still meanwhile is left to be encoded later."""
        return self._saved.changed()

    def restore(self, states: Iterable[tuple[bytes, bytes]]) -> None:
        self._saved.restore(states)

    def carry(self, old: StateLayout, states: Iterable[tuple[bytes, bytes]], clock: int) -> None:
        """Into a fresh kernel, from another plan's: what both plans have goes on, the rest is new.

        `clock` is the app's time. May be called for several old fragments, one after the other.
        """
        self._saved.carry(old, states, clock)
