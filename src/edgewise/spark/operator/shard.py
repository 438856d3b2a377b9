"""Run the kernel of one shard: sorted rows in, tagged rows out, changes of state between.

A shard is a share of the keys of a stage. Events wait here until the watermark passes them, are
sorted, and are fed in order; then time moves to the watermark. An event behind the watermark that
was already passed is a late row, one that breaks the kernel a fault row, and the rest goes on.

No Spark in here: `batch` and `stream` are the shells around it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from edgewise.engines.batch.outputs import render_event
from edgewise.errors import EdgewiseError
from edgewise.event.arrow import from_column, to_column
from edgewise.event.column import Column, to_arrow_array
from edgewise.event.schema import Schema
from edgewise.event.types import AttrType
from edgewise.kernel import compile_kernel
from edgewise.kernel.api import EventRun, OutColumns
from edgewise.kernel.kernel import Kernel
from edgewise.kernel.runtime import Failed
from edgewise.spark.operator import stage as columns
from edgewise.spark.operator.stage import FAULTS, LATE, NEVER, START, STATS, TICK, OperatorStage
from edgewise.spark.operator.static_tables import is_table_stream

_US_PER_MS = 1000

Entries = Iterable[tuple[bytes, bytes | None]]

logger = logging.getLogger(__name__)


class ShardKernel:
    """The kernel of one shard, how far its time is, and the rows that were emitted since."""

    def __init__(self, stage: OperatorStage, *, guarded: bool = False) -> None:
        self.stage = stage
        self.kernel: Kernel = compile_kernel(stage.app, stage.kernel_fragment, as_sent=guarded)
        self.watermark = NEVER
        self._tables: list[tuple[Any, int]] = []  # rows that enter with the first event
        self.fed = 0  # events so far; their number orders the rows they cause
        self.aside: list[Any] = []  # rows of faults and late events that no kernel saw

    def feed(self, rows: Any) -> None:
        """Rows in order, as a table of the stage's input schema; ticks only move time."""
        for run_rows, stream in _split_by_stream(rows):
            if stream in (TICK, START):
                clock = pc.max(run_rows.column(columns.TS)).as_py()
                if stream == TICK:
                    self.advance(clock + self.stage.close_ms)
                elif not self.fed:
                    self.kernel.note_app_start(clock, 0, clock * _US_PER_MS)
            elif is_table_stream(self.stage.inputs[stream].name):
                self._tables.append((run_rows, stream))
            else:
                self._feed_events(run_rows, stream)

    def _feed_events(self, rows: Any, stream: int) -> None:
        ts = rows.column(columns.TS)
        first = max(ts[0].as_py(), self.watermark)
        if not self.fed:
            self.kernel.note_app_start(first, self.fed, first * _US_PER_MS)
        for table, index in self._tables:
            self._feed_run(table, index, pa.array(np.full(table.num_rows, first)))
        self._tables.clear()
        self._feed_run(rows, stream, ts)

    def _feed_run(self, rows: Any, stream: int, ts: Any) -> None:
        schema = self.stage.inputs[stream]
        clock = np.maximum.accumulate(np.maximum(ts.to_numpy(), self.watermark))
        offsets = np.arange(self.fed, self.fed + len(ts), dtype=np.int64)
        self.fed += len(ts)
        run = EventRun(
            stream=schema.name,
            ts=Column(ts, AttrType.LONG),
            columns=[
                Column(rows.column(f"s{stream}_{j}"), attribute.type)
                for j, attribute in enumerate(schema.attributes)
            ],
            offset=Column(pa.array(offsets), AttrType.LONG),
            clock=Column(pa.array(clock), AttrType.LONG),
            at=Column(pc.multiply(ts, _US_PER_MS), AttrType.LONG),
        )
        self.kernel.feed(run)
        self.watermark = max(self.watermark, int(clock[-1]))

    def advance(self, clock: int) -> None:
        """Move time without an event: timers that are due fire."""
        self.kernel.advance(clock, clock * _US_PER_MS)
        self.watermark = max(self.watermark, clock)

    def add_late(self, rows: Any) -> None:
        """Rows that came behind the watermark, as rows of `$late`."""
        if rows.num_rows:
            names, events = _describe_events(self.stage, rows)
            values = [names, rows.column(columns.TS).to_pylist(), events]
            self.aside.append(self._tag(LATE, values, rows.column(columns.TS)))

    def add_bad(self, rows: Any) -> None:
        """Rows with a value that is not of its declared type, as rows of `$faults`."""
        if rows.num_rows:
            names, events = _describe_events(self.stage, rows)
            ts = pc.fill_null(rows.column(columns.TS), self.watermark)
            errors = rows.column(columns.BAD).to_pylist()
            self.aside.append(self._tag(FAULTS, [names, ts.to_pylist(), errors, events], ts))

    def add_stats(self, events: int, waiting: int) -> None:
        """What this shard did in a batch, as a row of `$stats`."""
        clock: Any = pa.array([max(0, self.watermark)], pa.int64())
        values = [[events], [waiting], [self.kernel.stats.keys]]
        self.aside.append(self._tag(STATS, values, clock))

    def take(self) -> Any:
        """The rows since the last call, as one table of the stage's output schema."""
        tables, self.aside = self.aside, []
        for block in self.kernel.take_columns():
            schema = next((s for s in self.stage.outputs if s.name == block.stream), None)
            if schema is not None:
                tables.append(self._tag_block(schema, block))
        for failed in self.kernel.take_failed():
            tables.append(self._tag_failure(failed))
        empty = self.stage.output_schema.empty_table()
        return pa.concat_tables(tables).combine_chunks() if tables else empty

    def _tag_failure(self, failed: Failed) -> Any:
        stream, clock, _, _, error, events = failed
        texts = [render_event(event) for event in events or [()]]
        count = len(texts)
        ts: Any = pa.array([clock] * count, pa.int64())
        return self._tag(FAULTS, [[stream] * count, ts.to_pylist(), [error] * count, texts], ts)

    def _tag_block(self, schema: Schema, block: OutColumns) -> Any:
        arrays = {
            f"o{self.stage.outputs.index(schema)}_{j}": to_arrow_array(values, attribute.type)
            for j, (attribute, values) in enumerate(
                zip(schema.attributes, block.columns, strict=True)
            )
        }
        ts = to_arrow_array(block.ts, AttrType.LONG)
        order = {
            columns.CLOCK: to_arrow_array(block.clock, AttrType.LONG),
            columns.PHASE: to_arrow_array(block.phase, AttrType.LONG),
            columns.SEQ: to_arrow_array(block.seq, AttrType.LONG),
            columns.KIND: pa.array(np.asarray(block.kind, dtype=np.int8)),
        }
        return self._complete(schema.name, ts, arrays | order)

    def _tag(self, schema: Schema, values: list[list[Any]], ts: Any) -> Any:
        index = self.stage.outputs.index(schema)
        arrays = {
            f"o{index}_{j}": to_column(column, attribute.type)
            for j, (attribute, column) in enumerate(zip(schema.attributes, values, strict=True))
        }
        # Spark refuses rows behind its watermark, so these carry the time when they were found.
        clock: Any = pc.max_element_wise(ts, pa.scalar(max(1, self.watermark + 1)))
        return self._complete(schema.name, ts, arrays | {columns.CLOCK: clock})

    def _complete(self, stream: str, ts: Any, arrays: dict[str, Any]) -> Any:
        count = len(ts)
        zeros = np.zeros(count, dtype=np.int64)
        system = {
            columns.TS: ts,
            columns.STREAM: pa.array([stream] * count, pa.string()),
            columns.KIND: pa.array(zeros.astype(np.int8)),
            columns.CLOCK: ts,
            columns.PHASE: pa.array(zeros),
            columns.SEQ: pa.array(zeros),
        }
        known = system | arrays
        time = pc.multiply(known[columns.CLOCK], _US_PER_MS).cast(pa.timestamp("us", tz="UTC"))
        known[columns.TIME] = time
        schema = self.stage.output_schema
        return pa.Table.from_arrays(
            [known.get(f.name, pa.nulls(count, f.type)) for f in schema], schema=schema
        )


class Shard:
    """A shard's kernel, replaced by a guarded one when an event breaks it."""

    def __init__(
        self, stage: OperatorStage, entries: Entries = (), head: tuple[int, int] = (0, NEVER)
    ) -> None:
        self.stage = stage
        self.live = _restore(stage, entries, head)
        self._seen: list[Any] = []  # what a batch without stored state has fed so far

    def feed(
        self, rows: Any, load: Callable[[], Entries] | None = None, clock: int | None = None
    ) -> None:
        """Feed rows in order, then move time to `clock`.

        `load` gives the state before these rows, from which a guarded kernel starts. Without it,
        as in a batch, that one starts from nothing and is fed all rows again.
        """
        head = (self.live.fed, self.live.watermark)
        try:
            _feed(self.live, rows, clock)
        except EdgewiseError:
            raise
        except Exception:
            logger.info("%s: feeding again with guards", self.stage.fragment.name, exc_info=True)
            broken = self.live
            if load is not None:
                self.live = _restore(self.stage, load(), head, guarded=True)
            else:
                self.live = _restore(self.stage, (), (0, NEVER), guarded=True)
                for seen in self._seen:
                    self.live.feed(seen)
                    self.live.take()  # was emitted when it was fed for the first time
            self.live.aside = broken.aside
            _feed(self.live, rows, clock)
        if load is None:
            self._seen.append(rows)


def _feed(live: ShardKernel, rows: Any, clock: int | None) -> None:
    live.feed(rows)
    if clock is not None:
        live.advance(clock)


def _restore(
    stage: OperatorStage, entries: Entries, head: tuple[int, int], *, guarded: bool = False
) -> ShardKernel:
    shard = ShardKernel(stage, guarded=guarded)
    held = [(key, value) for key, value in entries if value is not None]
    if held:
        shard.kernel.restore(held)
    shard.fed, shard.watermark = head
    return shard


def set_bad_aside(live: ShardKernel, rows: Any) -> Any:
    """Turn rows with a value that is not of its declared type into faults, return the others."""
    bad: Any = pc.is_valid(rows.column(columns.BAD))
    if not pc.any(bad).as_py():
        return rows
    live.add_bad(rows.filter(bad))
    return rows.filter(pc.invert(bad))


def decode_nulls(stage: OperatorStage, rows: Any) -> Any:
    """Give numbers and bools the nulls that travelled as bits of a long."""
    bits = rows.column(columns.NULLS).to_numpy()
    if not bits.any():
        return rows
    for bit, name in stage.nullable():
        mask = (bits >> bit) & 1 == 1
        if mask.any():
            index = rows.schema.get_field_index(name)
            column = pc.if_else(pa.array(~mask), rows.column(index), None)
            rows = rows.set_column(index, rows.schema.field(index), column)
    return rows


def _split_by_stream(rows: Any) -> Iterator[tuple[Any, int]]:
    """Consecutive rows of one stream; a kernel is fed one stream at a time."""
    if not rows.num_rows:
        return
    rows = rows.combine_chunks()
    streams = rows.column(columns.STREAM).to_numpy()
    edges = [0, *(np.flatnonzero(np.diff(streams)) + 1).tolist(), len(streams)]
    for start, end in pairwise(edges):
        batch = rows.slice(start, end - start).to_batches()[0]
        yield batch, int(streams[start])


def _describe_events(stage: OperatorStage, rows: Any) -> tuple[list[str], list[str]]:
    """The stream of each row and its attributes as JSON."""
    names: list[str] = []
    events: list[str] = []
    streams = rows.column(columns.STREAM).to_pylist()
    values = {
        (i, attribute.name): from_column(rows.column(f"s{i}_{j}"), attribute.type)
        for i, schema in enumerate(stage.inputs)
        for j, attribute in enumerate(schema.attributes)
    }
    for row, stream in enumerate(streams):
        schema = stage.inputs[stream]
        read = stage.read[schema.name]
        event = {name: values[stream, name][row] for name in read}
        names.append(schema.name)
        events.append(msgspec.json.encode(event).decode())
    return names, events
