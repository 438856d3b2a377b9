"""Read the input logs of an app as one Arrow table in the app's order.

Attribute `a` of the i-th stream is the column `s<i>_a`; `columns` names the others.

An app with several inputs has one order, that of capture (MERGE_ORDER): whoever merges them counts
the rows anew in `_offset` and lets `_clock` run over all of them. The price is a sort of each
batch. A single log is in order by itself, and with `merged=False` its attributes keep their names.

Used by both engines, in Spark's driver and tasks, and by the Spark data source.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from edgewise.engines.batch.columns import CLOCK, MERGE_ORDER, OFFSET, STREAM
from edgewise.errors import SetupError
from edgewise.event.arrow import AT, KIND, SYSTEM_COUNT, TS
from edgewise.event.event import EventKind
from edgewise.log.api import LogBatch, LogReader
from edgewise.log.locations import open_reader
from edgewise.log.tail import find_offset_at
from edgewise.plan.nodes import App

Offsets = dict[str, int]


def require_inputs(app: App) -> None:
    """SetupError for an app without an input stream: an engine on logs has its time from them."""
    if not app.inputs:
        raise SetupError(
            f"the app '{app.name}' reads no stream: time comes with events, for triggers too; "
            "define a stream that no query writes"
        )


class InputLogs:
    """The logs that one app or one data source reads, opened where they are used: in the driver,
    in Spark's planner, in a task.
    """

    def __init__(self, paths: Mapping[str, str], *, merged: bool = True) -> None:
        self.merged = merged
        self.paths = dict(paths)
        self._readers: dict[str, LogReader] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {"merged": self.merged, "paths": self.paths, "_readers": {}}

    def reader(self, stream: str) -> LogReader:
        if stream not in self._readers:
            self._readers[stream] = open_reader(self.paths[stream])
        return self._readers[stream]

    def close(self) -> None:
        for reader in self._readers.values():
            reader.close()
        self._readers.clear()

    def earliest(self) -> Offsets:
        return {stream: self.reader(stream).earliest() for stream in self.paths}

    def heads(self) -> Offsets:
        return {stream: self.reader(stream).head().offset for stream in self.paths}

    def find_offsets_at(self, ms: int) -> Offsets:
        """The first offsets at which event time has reached `ms`; heads where it has not yet."""
        return {stream: find_offset_at(self.reader(stream), ms) for stream in self.paths}

    def fill_missing(self, offsets: Offsets) -> Offsets:
        """Complete offsets of an earlier plan: a stream it did not read starts at its first."""
        if set(offsets) == set(self.paths):
            return offsets
        return {s: offsets.get(s, first) for s, first in self.earliest().items()}

    def clock_at(self, offsets: Offsets) -> int:
        """The app's time at these offsets."""
        return max(self.reader(stream).clock(offset) for stream, offset in offsets.items())

    def last_capture_time(self, start: Mapping[str, int], end: Mapping[str, int]) -> int:
        """Of the rows in a range, idle ticks among them; 0 where there is none."""
        last = [self._capture_times(s, at - 1, at) for s, at in end.items() if at > start[s]]
        return max((int(at[-1]) for at in last), default=0)

    def limit_end(self, begin: Offsets, heads: Offsets, rows: int) -> Offsets:
        """The end of a range of about `rows` rows from `begin`, at least one, before `heads`.

        Several streams end at one capture time, so that no event is ahead of one captured before.
        """
        if len(begin) == 1:
            return {s: self._skip_chunk(s, begin[s] + rows, heads[s]) for s in begin}
        seen = {s: self._capture_times(s, begin[s], min(heads[s], begin[s] + rows)) for s in begin}
        merged = np.sort(np.concatenate(list(seen.values())))
        if not len(merged):
            return begin
        # A stream of which not all was read has unknown rows from its last capture time on.
        known = [int(at[-1]) - 1 for s, at in seen.items() if begin[s] + len(at) < heads[s]]
        last = min([int(merged[min(rows, len(merged)) - 1]), *known])
        last = max(last, int(merged[0]))
        return {
            s: begin[s] + int(np.searchsorted(at, last, side="right")) for s, at in seen.items()
        }

    def _skip_chunk(self, stream: str, end: int, head: int) -> int:
        """`end`, moved on where it would split a chunk."""
        while end < head:
            [batch] = self.reader(stream).read(end - 1, end, [KIND])
            if batch.rows.column(KIND)[0].as_py() != EventKind.MORE:
                return end
            end += 1
        return head

    def _capture_times(self, stream: str, start: int, end: int) -> Any:
        """Never falling: a row counts as captured with the latest before it."""
        pieces = [np.empty(0, dtype=np.int64)]
        batches = self.reader(stream).read(start, end, [AT])
        pieces += [batch.rows.column(AT).to_numpy(zero_copy_only=False) for batch in batches]
        return np.maximum.accumulate(np.concatenate(pieces))

    def build_schema(self) -> Any:
        """The Arrow schema of the rows that `read_batches` and `read_table` return."""
        fields = [
            pa.field(TS, pa.int64()),
            pa.field(AT, pa.int64()),
            pa.field(KIND, pa.int8()),
            pa.field(OFFSET, pa.int64()),
            pa.field(CLOCK, pa.int64()),
        ]
        if self.merged:
            fields.append(pa.field(STREAM, pa.int32()))
        for index, stream in enumerate(self.paths):
            prefix = f"s{index}_" if self.merged else ""
            own = list(self.reader(stream).schema)[SYSTEM_COUNT:]
            fields.extend(pa.field(prefix + field.name, field.type) for field in own)
        return pa.schema(fields)

    def read_batches(self, stream: str, start: int, end: int) -> Iterator[Any]:
        """Record batches of one stream in the common schema, columns of other streams null."""
        schema = self.build_schema()
        index = list(self.paths).index(stream)
        prefix = f"s{index}_" if self.merged else ""
        for batch in self.reader(stream).read(start, end):
            yield _widen(batch, schema, prefix, index)

    def read_table(self, start: Mapping[str, int], end: Mapping[str, int], clock: int) -> Any:
        """All rows of a range as one table in order, without idle ticks.

        `clock` is the app's time at `start`.
        """
        if len(self.paths) == 1:
            [(stream, first)] = start.items()
            table = self._read_single(stream, first, end[stream])
        else:
            batches = [b for s, at in start.items() for b in self.read_batches(s, at, end[s])]
            table = pa.Table.from_batches(batches, schema=self.build_schema())
            table = _merge(table, sum(start.values()), clock)
        is_event = pc.not_equal(table.column(KIND), pa.scalar(int(EventKind.TICK), pa.int8()))
        return table if pc.all(is_event).as_py() else table.filter(is_event)

    def _read_single(self, stream: str, start: int, end: int) -> Any:
        """The only log: offsets and clock are computed for all rows at once."""
        batches = list(self.reader(stream).read(start, end))
        schema = self.build_schema()
        if not batches:
            return schema.empty_table()
        rows = pa.Table.from_batches([b.rows for b in batches])
        clock = np.maximum(rows.column(TS).to_numpy(), batches[0].clock_before)
        own = {
            OFFSET: np.arange(start, end, dtype=np.int64),
            CLOCK: np.maximum.accumulate(clock, out=clock),
            STREAM: np.zeros(end - start, dtype=np.int32),
        }
        columns = [
            pa.array(own[f.name]) if f.name in own else rows.column(f.name.removeprefix("s0_"))
            for f in schema
        ]
        return pa.Table.from_arrays(columns, schema=schema)


def _merge(table: Any, first: int, clock: int) -> Any:
    """Sort several inputs by capture, number them from `first`, compute the clock over all."""
    table = table.sort_by([(name, "ascending") for name in MERGE_ORDER])
    ts = table.column(TS).to_numpy()
    clocks = np.maximum.accumulate(np.maximum(ts, clock))
    numbers = np.arange(first, first + len(ts), dtype=np.int64)
    for name, values in ((CLOCK, clocks), (OFFSET, numbers)):
        index = table.schema.get_field_index(name)
        table = table.set_column(index, name, pa.array(values, pa.int64()))
    return table


def _widen(batch: LogBatch, schema: Any, prefix: str, stream: int) -> Any:
    """One stored batch with its offsets and clock, in the columns of `schema`."""
    rows = batch.rows
    count = rows.num_rows
    ts = rows.column(TS).to_numpy(zero_copy_only=False)
    own = {prefix + name: rows.column(name) for name in rows.schema.names[SYSTEM_COUNT:]}
    own |= {name: rows.column(name) for name in (TS, AT, KIND)}
    own[OFFSET] = pa.array(np.arange(batch.first, batch.first + count, dtype=np.int64))
    own[CLOCK] = pa.array(np.maximum.accumulate(np.maximum(ts, batch.clock_before)))
    if STREAM in schema.names:
        own[STREAM] = pa.array(np.full(count, stream, dtype=np.int32))
    arrays = [own[f.name] if f.name in own else pa.nulls(count, f.type) for f in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
