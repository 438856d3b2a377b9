"""Collect what fragments emit in a batch, sort it into the app's order, append it to the logs.

Every row carries order columns (`columns.ORDER`) until the rows of all key partitions are there;
then the rows of a stream are sorted by them, and they are dropped. The engines use this; how rows
travel from a task to Spark's driver is in `spark.task_results`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from edgewise.engines.batch.columns import CLOCK, ORDER
from edgewise.errors import SetupError
from edgewise.event.arrow import ARROW_TYPES, AT, KIND, TS, to_column
from edgewise.event.column import to_arrow_array
from edgewise.event.event import EventKind
from edgewise.event.schema import Schema
from edgewise.event.types import AttrType
from edgewise.kernel.api import OutColumns
from edgewise.kernel.runtime import Failed
from edgewise.log.api import EncodedBatch, EncodedBatchWriter, LogWriter
from edgewise.log.rows import encode_batches
from edgewise.plan.nodes import Stream

ORDERED_FIELDS: list[Any] = [
    *(pa.field(name, pa.int64()) for name in (*ORDER, TS, AT)),
    pa.field(KIND, pa.int8()),
]
FAULTS = Stream(
    Schema.of("$faults", stream="string", offset="long", error="string", event="string")
)  # events that failed; `offset` counts all inputs as one until `fault_rows` resolves it
_LONG = AttrType.LONG
_MISFITS = (pa.ArrowInvalid, pa.ArrowTypeError, TypeError, ValueError, OverflowError)

Counts = dict[str, dict[str, int]]  # late, dropped, faults: by name of stream or query


@dataclass(slots=True)
class FragmentOutput:
    """What one key partition of a fragment emitted in a batch, or all of them together."""

    rows: dict[str, list[Any]] = field(default_factory=dict)  # tables, by stream
    keys: int = 0  # in its state
    counts: Counts = field(default_factory=dict)
    encoded: dict[str, list[EncodedBatch]] = field(
        default_factory=dict
    )  # rows as frames of their logs

    def add(self, other: FragmentOutput) -> None:
        for mine, theirs in ((self.rows, other.rows), (self.encoded, other.encoded)):
            for stream, some in theirs.items():
                mine.setdefault(stream, []).extend(some)
        self.keys += other.keys
        add_counts(self.counts, other.counts)

    def iterate_sorted(self) -> Iterator[tuple[str, Any]]:
        """Per stream one sorted table without order columns. A table that came without them is
        sorted already.
        """
        for stream, tables in self.rows.items():
            table = pa.concat_tables(tables)
            if table.num_rows:
                ordered = CLOCK in table.column_names
                yield stream, sort_rows(table).drop_columns(ORDER) if ordered else table

    def sort_and_strip(self, keep: Sequence[str] = ()) -> FragmentOutput:
        """Sort the rows and drop the order columns, but for the streams `keep`.

        Valid only if these rows do not interleave with another partition's.
        """
        rows = {s: self.rows[s] for s in keep if s in self.rows}
        others = FragmentOutput({s: t for s, t in self.rows.items() if s not in rows})
        rows |= {stream: [table] for stream, table in others.iterate_sorted()}
        return FragmentOutput(rows, self.keys, self.counts)

    def sort_stream(self, stream: str, schema: Schema) -> Any:
        """The rows of one stream, sorted, with their order columns."""
        tables = self.rows.get(stream)
        if not tables:
            return build_ordered_schema(schema).empty_table()
        return sort_rows(pa.concat_tables(tables))


def merge_outputs(outputs: Iterable[FragmentOutput]) -> FragmentOutput:
    whole = FragmentOutput()
    for output in outputs:
        whole.add(output)
    return whole


def add_counts(total: Counts, more: Counts) -> None:
    for kind, names in more.items():
        mine = total.setdefault(kind, {})
        for name, count in names.items():
            mine[name] = mine.get(name, 0) + count


def sort_rows(table: Any) -> Any:
    """Sort by the order columns; rows of one key partition often are sorted already."""
    order = table.select(ORDER)
    if _is_sorted(order):
        return table
    keys = [order.column(name).to_numpy() for name in ORDER]
    return table.take(pa.array(np.lexsort(keys[::-1])))


def _is_sorted(order: Any) -> bool:
    """Checked chunk by chunk, so that nothing is copied."""
    last: list[Any] = []
    for batch in order.to_batches():
        keys = [column.to_numpy() for column in batch.columns]
        if last and last > [key[0] for key in keys]:
            return False
        if len(batch) and not _is_chunk_sorted(keys):
            return False
        last = [key[-1] for key in keys]
    return True


def _is_chunk_sorted(keys: list[Any]) -> bool:
    """The first key decides, each further one where those before it are equal."""
    tied: Any = slice(None)
    for key in keys:
        before, after = key[:-1][tied], key[1:][tied]
        if bool((after < before).any()):
            return False
        equal = np.flatnonzero(after == before)
        if not len(equal):
            return True
        tied = equal if isinstance(tied, slice) else tied[equal]
    return True


def convert_to_tables(
    blocks: Iterable[OutColumns], schemas: Mapping[str, Schema]
) -> dict[str, list[Any]]:
    """Convert the rows of a kernel to Arrow, by stream.

    A value that does not fit its attribute's type cannot be kept in a log: its row is a fault.
    """
    found: dict[str, list[Any]] = {}
    for block in blocks:
        try:
            converted = {block.stream: _convert_block(block, schemas[block.stream])}
        except _MISFITS:
            converted = _separate_misfits(block, schemas[block.stream])
        for stream, table in converted.items():
            found.setdefault(stream, []).append(table)
    return found


def _convert_block(block: OutColumns, schema: Schema) -> Any:
    order = (block.clock, block.phase, block.offset, block.seq, block.ts, block.at)
    columns = [to_arrow_array(numbers, _LONG) for numbers in order]
    columns.append(to_arrow_array(block.kind, AttrType.INT).cast(pa.int8()))
    columns += [
        to_arrow_array(c, a.type) for c, a in zip(block.columns, schema.attributes, strict=True)
    ]
    return pa.Table.from_arrays(columns, schema=build_ordered_schema(schema))


def build_ordered_schema(schema: Schema) -> Any:
    """The Arrow schema of a stream's rows with their order columns."""
    own = [pa.field(a.name, ARROW_TYPES[a.type]) for a in schema.attributes]
    return pa.schema([*ORDERED_FIELDS, *own])


def _separate_misfits(block: OutColumns, schema: Schema) -> dict[str, Any]:
    """Row by row: those that fit, and a fault for each that does not."""
    kept, failed = [], []
    for row in block.rows():
        error = _find_misfit(row[-1], schema)
        if error:
            stream, clock, _, offset, _, _, at, _, data = row
            failed.append((stream, clock, offset, at, error, [data]))
        else:
            kept.append(row)
    tables = {FAULTS.name: build_fault_table(failed)}
    if kept:
        tables[block.stream] = _convert_block(OutColumns.of(kept), schema)
    return tables


def _find_misfit(data: tuple[Any, ...], schema: Schema) -> str:
    for value, attribute in zip(data, schema.attributes, strict=True):
        try:
            to_column([value], attribute.type)
        except _MISFITS as why:
            return f"{attribute.name} is no {attribute.type.value}: {why}"
    return ""


def build_fault_table(failed: Iterable[Failed]) -> Any:
    rows = [row for one in failed for row in _list_fault_rows(one)]
    if not rows:
        return build_ordered_schema(FAULTS.schema).empty_table()
    return _convert_block(OutColumns.of(rows), FAULTS.schema)


def _list_fault_rows(failed: Failed) -> Iterator[tuple[Any, ...]]:
    stream, clock, offset, at, error, events = failed
    for seq, event in enumerate(events or [()]):
        data = (stream, offset, error, render_event(event))
        yield (FAULTS.name, clock, 1, offset, seq, clock, at, int(EventKind.CURRENT), data)


def render_event(event: Iterable[Any]) -> str:
    """Its values as JSON, for people."""
    return json.dumps(list(event), default=str)


def fit_to_log(table: Any, schema: Any) -> Any:
    """Convert a table with a log's column names to one record batch of exactly its schema."""
    defaults: dict[str, Any] = {KIND: pa.scalar(0, pa.int8()), AT: pa.scalar(0, pa.int64())}
    columns: list[Any] = []
    for own in schema:
        if own.name in table.column_names:
            columns.append(pc.cast(table.column(own.name), own.type))
        elif own.name in defaults:
            columns.append(pa.chunked_array([pa.repeat(defaults[own.name], table.num_rows)]))
        else:
            raise SetupError(f"the log needs the column '{own.name}', the table has none")
    whole = pa.Table.from_arrays(columns, schema=schema).combine_chunks()
    return whole.to_batches()[0]


def append_outputs(
    writers: Mapping[str, LogWriter], outputs: Mapping[str, list[Any]], producer: str, version: int
) -> int:
    """Append once to each log; the number of rows. Streams without a log are dropped: only other
    queries read them.

    `outputs` holds tables and, for logs that take them, lists of encoded frames.
    """
    count = 0
    for stream, pieces in outputs.items():
        writer = writers.get(stream)
        if writer is None:
            continue
        if isinstance(writer, EncodedBatchWriter):
            frames = [f for piece in pieces for f in _as_frames(piece, writer)]
            writer.append_encoded(frames, producer=producer, sequence=version)
            count += sum(frame.rows for frame in frames)
        else:
            rows = fit_to_log(pa.concat_tables(pieces), writer.schema)
            writer.append(rows, producer=producer, sequence=version)
            count += rows.num_rows
    return count


def _as_frames(piece: Any, writer: EncodedBatchWriter) -> Iterable[EncodedBatch]:
    return (
        piece if isinstance(piece, list) else encode_frames(piece, writer.schema, writer.rows_max)
    )


def encode_frames(table: Any, schema: Any, rows_max: int) -> Iterator[EncodedBatch]:
    """Encode sorted rows as frames of a log, one at a time while its rows are in the CPU cache."""
    for at in range(0, table.num_rows, rows_max):
        yield from encode_batches(fit_to_log(table.slice(at, rows_max), schema), schema, rows_max)
