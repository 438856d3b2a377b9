"""The input logs of an app as one table: what every engine that reads logs sees.

Attribute `a` of the i-th stream is the column `s<i>_a`; `_stream` says which stream a row is of.
A row also says where it stands: `_offset` in its log, and `_clock`, the largest event time up to
and with it. The order of an app with several inputs is
the order of capture (MERGE_ORDER): whoever merges them numbers the rows anew and lets the clock
run over all of them. With a single log and `merged=False` attributes keep their own names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from edgewise.errors import SetupError
from edgewise.event.arrow import AT, KIND, SYSTEM_COUNT, TS
from edgewise.event.event import Kind
from edgewise.log.api import LogBatch, LogReader
from edgewise.log.places import open_reader
from edgewise.plan.nodes import App

OFFSET, CLOCK, STREAM = "_offset", "_clock", "_stream"
MERGE_ORDER = (AT, STREAM, OFFSET)

Offsets = dict[str, int]


def demand_inputs(app: App) -> None:
    """An engine on logs has its time from them."""
    if not app.inputs:
        raise SetupError(
            f"the app '{app.name}' reads no stream: time comes with events, for triggers too; "
            "define a stream that no query writes"
        )


class Inputs:
    """The logs behind one source, wherever they live (`log.places`), opened where they are used:
    driver, planner or task.
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

    def known(self, offsets: Offsets) -> Offsets:
        """Offsets written down by another plan: a stream it did not read begins at its first."""
        if set(offsets) == set(self.paths):
            return offsets
        return {s: offsets.get(s, first) for s, first in self.earliest().items()}

    def heads(self) -> Offsets:
        return {stream: self.reader(stream).head().offset for stream in self.paths}

    def clock(self, offsets: Offsets) -> int:
        return max(self.reader(stream).clock(offset) for stream, offset in offsets.items())

    def captured(self, start: Mapping[str, int], end: Mapping[str, int]) -> int:
        """When the last row between two places was captured, be it a mark; 0 where none is."""
        last = [self._captured(s, at - 1, at) for s, at in end.items() if at > start[s]]
        return max((int(at[-1]) for at in last), default=0)

    def cut(self, begin: Offsets, heads: Offsets, rows: int) -> Offsets:
        """About `rows` rows further, at least one, all streams up to one moment of capture."""
        if len(begin) == 1:
            return {s: self._whole(s, begin[s] + rows, heads[s]) for s in begin}
        seen = {s: self._captured(s, begin[s], min(heads[s], begin[s] + rows)) for s in begin}
        merged = np.sort(np.concatenate(list(seen.values())))
        if not len(merged):
            return begin
        # Where the look at a stream ended early, later moments are not known for all.
        known = [int(at[-1]) - 1 for s, at in seen.items() if begin[s] + len(at) < heads[s]]
        moment = min([int(merged[min(rows, len(merged)) - 1]), *known])
        moment = max(moment, int(merged[0]))
        return {
            s: begin[s] + int(np.searchsorted(at, moment, side="right")) for s, at in seen.items()
        }

    def _whole(self, stream: str, end: int, head: int) -> int:
        """`end`, moved on where it would cut a chunk."""
        while end < head:
            [batch] = self.reader(stream).read(end - 1, end, [KIND])
            if batch.rows.column(KIND)[0].as_py() != Kind.MORE:
                return end
            end += 1
        return head

    def _captured(self, stream: str, start: int, end: int) -> Any:
        """Capture times, never falling: a row counts as captured with the latest before it."""
        parts = [np.empty(0, dtype=np.int64)]
        batches = self.reader(stream).read(start, end, [AT])
        parts += [batch.rows.column(AT).to_numpy(zero_copy_only=False) for batch in batches]
        return np.maximum.accumulate(np.concatenate(parts))

    def schema(self) -> Any:
        """The Arrow schema of the rows that `read` gives."""
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

    def read(self, stream: str, start: int, end: int) -> Iterator[Any]:
        """Record batches of `schema`, columns of other streams null."""
        schema = self.schema()
        index = list(self.paths).index(stream)
        prefix = f"s{index}_" if self.merged else ""
        for batch in self.reader(stream).read(start, end):
            yield _stand(batch, schema, prefix, index)

    def table(self, start: Mapping[str, int], end: Mapping[str, int], clock: int) -> Any:
        """Everything between two places as one table in order, marks left out.

        `clock` is the app's time at `start`.
        """
        if len(self.paths) == 1:
            [(stream, first)] = start.items()
            table = self._whole_table(stream, first, end[stream])
        else:
            batches = [b for s, at in start.items() for b in self.read(s, at, end[s])]
            table = pa.Table.from_batches(batches, schema=self.schema())
            table = _merge(table, sum(start.values()), clock)
        alive = pc.not_equal(table.column(KIND), pa.scalar(int(Kind.MARK), pa.int8()))
        return table if pc.all(alive).as_py() else table.filter(alive)

    def _whole_table(self, stream: str, start: int, end: int) -> Any:
        """The one log: its places are numbered and clocked at once."""
        batches = list(self.reader(stream).read(start, end))
        schema = self.schema()
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
    """Several inputs in order of capture, numbered and clocked as one."""
    table = table.sort_by([(name, "ascending") for name in MERGE_ORDER])
    ts = table.column(TS).to_numpy()
    clocks = np.maximum.accumulate(np.maximum(ts, clock))
    place = np.arange(first, first + len(ts), dtype=np.int64)
    for name, values in ((CLOCK, clocks), (OFFSET, place)):
        index = table.schema.get_field_index(name)
        table = table.set_column(index, name, pa.array(values, pa.int64()))
    return table


def _stand(batch: LogBatch, schema: Any, prefix: str, stream: int) -> Any:
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
