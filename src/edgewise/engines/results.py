"""What fragments make of a batch: rows by stream in the one order of the app, and counts.

A row carries its place in that order (ORDER) until all partitions are there; then the rows of a
stream are put in order and go to its log. How they get to the driver is `parcel`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from edgewise.engines.inputs import CLOCK, OFFSET
from edgewise.engines.kernel.api import OutColumns
from edgewise.engines.kernel.runtime import Failed
from edgewise.errors import SetupError
from edgewise.event.arrow import ARROW_TYPES, AT, KIND, TS, to_column
from edgewise.event.column import arrow_of
from edgewise.event.event import Kind
from edgewise.event.schema import Schema
from edgewise.event.types import AttrType
from edgewise.log.api import LogWriter, Part, PartsWriter
from edgewise.log.rows import parts_of
from edgewise.plan.nodes import Stream

PHASE, SEQ = "_phase", "_seq"
ORDER = [CLOCK, PHASE, OFFSET, SEQ]
PLACED: list[Any] = [
    *(pa.field(name, pa.int64()) for name in (*ORDER, TS, AT)),
    pa.field(KIND, pa.int8()),
]
FAULTS = Stream(
    Schema.of("$faults", stream="string", offset="long", error="string", event="string")
)  # what could not be processed: `offset` is the place in the merged input until it is appended
_LONG = AttrType.LONG
_MISFITS = (pa.ArrowInvalid, pa.ArrowTypeError, TypeError, ValueError, OverflowError)

Counts = dict[str, dict[str, int]]  # what went wrong or was let go: of which kind, by whom


@dataclass(slots=True)
class Made:
    """By a partition of a fragment, or by all of them."""

    rows: dict[str, list[Any]] = field(default_factory=dict)  # tables, by stream
    keys: int = 0  # held in its state
    counts: Counts = field(default_factory=dict)
    parts: dict[str, list[Part]] = field(default_factory=dict)  # rows made ready for their logs

    def add(self, other: Made) -> None:
        for mine, theirs in ((self.rows, other.rows), (self.parts, other.parts)):
            for stream, some in theirs.items():
                mine.setdefault(stream, []).extend(some)
        self.keys += other.keys
        add_counts(self.counts, other.counts)

    def ordered(self) -> Iterator[tuple[str, Any]]:
        """Per stream one table in order, without the places. Rows that have none are in order."""
        for stream, tables in self.rows.items():
            table = pa.concat_tables(tables)
            if table.num_rows:
                yield stream, in_order(table).drop_columns(ORDER) if _has_places(table) else table

    def settled(self, but: Sequence[str] = ()) -> Made:
        """In order and without the places, the streams `but` as they are. For what is whole, or
        stands in order between others that are settled.
        """
        rows = {s: self.rows[s] for s in but if s in self.rows}
        rest = Made({s: t for s, t in self.rows.items() if s not in rows})
        rows |= {stream: [table] for stream, table in rest.ordered()}
        return Made(rows, self.keys, self.counts)

    def placed(self, stream: str, schema: Schema) -> Any:
        """The rows of one stream in order, with their places."""
        several = self.rows.get(stream)
        return in_order(pa.concat_tables(several)) if several else placed(schema).empty_table()


def merged(parts: Iterable[Made]) -> Made:
    whole = Made()
    for part in parts:
        whole.add(part)
    return whole


def add_counts(total: Counts, more: Counts) -> None:
    for kind, names in more.items():
        mine = total.setdefault(kind, {})
        for name, count in names.items():
            mine[name] = mine.get(name, 0) + count


def _has_places(table: Any) -> bool:
    return CLOCK in table.column_names


def in_order(table: Any) -> Any:
    places = table.select(ORDER)
    if _ascend(places):
        return table
    keys = [places.column(name).to_numpy() for name in ORDER]
    return table.take(pa.array(np.lexsort(keys[::-1])))


def _ascend(places: Any) -> bool:
    """Whether rows stand in order already; looked at piece by piece, as they lie."""
    last: list[Any] = []
    for batch in places.to_batches():
        keys = [column.to_numpy() for column in batch.columns]
        if last and last > [key[0] for key in keys]:
            return False
        if len(batch) and not _ascending(keys):
            return False
        last = [key[-1] for key in keys]
    return True


def _ascending(keys: list[Any]) -> bool:
    """The first keys decide, the others where those tie."""
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


# From rows of a kernel.


def tables(blocks: Iterable[OutColumns], schemas: Mapping[str, Schema]) -> dict[str, list[Any]]:
    """Rows of a kernel as Arrow, by stream.

    A value that is not of its attribute's type has no place in a log: its row is a fault.
    """
    found: dict[str, list[Any]] = {}
    for block in blocks:
        try:
            made = {block.stream: _table(block, schemas[block.stream])}
        except _MISFITS:
            made = _fitting(block, schemas[block.stream])
        for stream, table in made.items():
            found.setdefault(stream, []).append(table)
    return found


def _table(block: OutColumns, schema: Schema) -> Any:
    places = (block.clock, block.phase, block.offset, block.seq, block.ts, block.at)
    columns = [arrow_of(p, _LONG) for p in places]
    columns.append(arrow_of(block.kind, AttrType.INT).cast(pa.int8()))
    columns += [arrow_of(c, a.type) for c, a in zip(block.columns, schema.attributes, strict=True)]
    return pa.Table.from_arrays(columns, schema=placed(schema))


def placed(schema: Schema) -> Any:
    """The Arrow schema of a stream's rows with their places."""
    own = [pa.field(a.name, ARROW_TYPES[a.type]) for a in schema.attributes]
    return pa.schema([*PLACED, *own])


def _fitting(block: OutColumns, schema: Schema) -> dict[str, Any]:
    """Row by row: those that fit, and a fault for each that does not."""
    kept, failed = [], []
    for row in block.rows():
        error = _misfit(row[-1], schema)
        if error:
            stream, clock, _, offset, _, _, at, _, data = row
            failed.append((stream, clock, offset, at, error, [data]))
        else:
            kept.append(row)
    made = {FAULTS.name: fault_table(failed)}
    if kept:
        made[block.stream] = _table(OutColumns.of(kept), schema)
    return made


def _misfit(data: tuple[Any, ...], schema: Schema) -> str:
    for value, attribute in zip(data, schema.attributes, strict=True):
        try:
            to_column([value], attribute.type)
        except _MISFITS as why:
            return f"{attribute.name} is no {attribute.type.value}: {why}"
    return ""


def fault_table(failed: Iterable[Failed]) -> Any:
    rows = [row for one in failed for row in _faults(one)]
    return (
        _table(OutColumns.of(rows), FAULTS.schema) if rows else placed(FAULTS.schema).empty_table()
    )


def _faults(failed: Failed) -> Iterator[tuple[Any, ...]]:
    stream, clock, offset, at, error, events = failed
    for seq, event in enumerate(events or [()]):
        data = (stream, offset, error, event_text(event))
        yield (FAULTS.name, clock, 1, offset, seq, clock, at, int(Kind.CURRENT), data)


def event_text(event: Iterable[Any]) -> str:
    """Its values as JSON, for people."""
    return json.dumps(list(event), default=str)


# To the logs.


def fit(table: Any, schema: Any) -> Any:
    """A table with a log's column names as one record batch of exactly the log's schema."""
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


def append(
    writers: Mapping[str, LogWriter], out: Mapping[str, list[Any]], producer: str, version: int
) -> int:
    """Once for each log; streams without one are for other queries only. Answers how many.

    `out` holds tables and, for logs that take them, lists of parts.
    """
    count = 0
    for stream, several in out.items():
        writer = writers.get(stream)
        if writer is None:
            continue
        if isinstance(writer, PartsWriter):
            parts = [p for some in several for p in _ready(some, writer)]
            writer.append_parts(parts, producer=producer, sequence=version)
            count += sum(part.rows for part in parts)
        else:
            rows = fit(pa.concat_tables(several), writer.schema)
            writer.append(rows, producer=producer, sequence=version)
            count += rows.num_rows
    return count


def _ready(rows: Any, writer: PartsWriter) -> Iterable[Part]:
    return rows if isinstance(rows, list) else made_ready(rows, writer.schema, writer.rows_max)


def made_ready(table: Any, schema: Any, rows_max: int) -> Iterator[Part]:
    """Rows in order as a log keeps them; one by one, each is copied while it is in the caches."""
    for at in range(0, table.num_rows, rows_max):
        yield from parts_of(fit(table.slice(at, rows_max), schema), schema, rows_max)
