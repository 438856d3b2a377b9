"""The log as a Spark data source: `spark.readStream.format("edgewise")`, read, and write.

Two forms of reading:

- `.option("path", PLACE)`: one log, its attributes under their own names, for people.
- `.option("logs", JSON {stream: PLACE})`: the inputs of an app merged into one table, for the
  engine; attribute `a` of the i-th stream is the column `s<i>_a`, `_stream` says which one a row
  is of.

A place is a directory, or kafka://host:port/topic: `log.places` opens both.

Both add where a row stands: `_offset` in its log, and `_clock`, the largest event time up to and
with it. Spark keeps the offsets in its checkpoint; they carry the clock, so that whoever restarts
from them knows the time without reading what came before:

    {"offsets": {"S": 1200}, "clock": 1700000000000}

The option `from` is such a place, for a stream that takes over there; `to` are the offsets at
which one that takes what is available ends.

`max_rows` bounds a micro-batch (admission control). Several streams are cut at one moment of
capture, so that no event is ahead of another that was captured before it.

Writing appends: `df.write.format("edgewise").option("path", DIR).mode("append").save()`. With
`producer` and `sequence` it is idempotent; a stream writes with its batch id as the sequence.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    DataSourceStreamArrowWriter,
    DataSourceStreamReader,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming.datasource import (
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from edgewise.engines.inputs import Inputs, Offsets
from edgewise.engines.results import fit
from edgewise.errors import SetupError
from edgewise.event.arrow import from_arrow
from edgewise.log.places import open_reader, open_writer

PARTITION_ROWS_MIN = 50_000  # below this a second task costs more than it brings
PARTITION_ROWS_MAX = 2_000_000  # above this a retry repeats too much
TASKS = os.cpu_count() or 1  # option `tasks` says otherwise, for a cluster
WAIT_S = 0.1  # how long latestOffset may wait for news: less polling, no added age
ROWS_PER_BATCH_MAX = 1_000_000


@dataclass(frozen=True)
class Slice(InputPartition):
    """Offsets `start` up to and without `end` of one stream."""

    stream: str
    start: int
    end: int

    @property
    def value(self) -> tuple[str, int, int]:
        return (self.stream, self.start, self.end)


def _inputs(options: Mapping[str, str]) -> Inputs:
    logs, path = options.get("logs"), options.get("path")
    if logs:
        return Inputs(json.loads(logs))
    if not path:
        raise SetupError("format 'edgewise' needs .option('path', PLACE_OF_A_LOG)")
    return Inputs({PurePath(path).name: path}, merged=False)


def _slices(start: Offsets, end: Offsets, tasks: int = TASKS) -> list[Slice]:
    """Tasks of about equal rows, none too small to be worth a task."""
    total = sum(end[stream] - start[stream] for stream in end)
    rows = min(max(PARTITION_ROWS_MIN, -(-total // tasks)), PARTITION_ROWS_MAX)
    return [
        Slice(stream, at, min(at + rows, end[stream]))
        for stream in end
        for at in range(start[stream], end[stream], rows)
    ]


class LogSource(DataSource):
    """`format("edgewise")`."""

    @classmethod
    def name(cls) -> str:
        return "edgewise"

    def schema(self) -> StructType:
        inputs = _inputs(self.options)
        try:
            return from_arrow_schema(inputs.schema())
        finally:
            inputs.close()

    def reader(self, schema: StructType) -> DataSourceReader:
        return LogBatchReader(self.options)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        return LogStreamReader(self.options)

    def writer(self, schema: StructType, overwrite: bool) -> LogTableWriter:
        _refuse_overwrite(overwrite)
        return LogTableWriter(self.options)

    def streamWriter(self, schema: StructType, overwrite: bool) -> LogStreamWriter:
        _refuse_overwrite(overwrite)
        return LogStreamWriter(self.options)


class LogBatchReader(DataSourceReader):
    """History: options `start` and `end` are JSON {stream: offset}; default is everything."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        self.inputs = _inputs(options)
        self.tasks = int(options.get("tasks") or TASKS)
        self.start: Offsets = json.loads(options.get("start") or "{}")
        self.end: Offsets = json.loads(options.get("end") or "{}")

    def partitions(self) -> Sequence[InputPartition]:
        start = self.inputs.earliest() | self.start
        return _slices(start, self.inputs.heads() | self.end, self.tasks)

    def read(self, partition: InputPartition) -> Iterator[Any]:
        assert isinstance(partition, Slice)
        yield from self.inputs.read(*partition.value)


class LogStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Micro-batches over the logs; `latestOffset` decides how much one of them takes."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        self.inputs = _inputs(options)
        self.rows_max = int(options.get("max_rows") or ROWS_PER_BATCH_MAX)
        self.tasks = int(options.get("tasks") or TASKS)
        self.target: Offsets = {}
        self.first: dict[str, Any] = json.loads(options.get("from") or "{}")
        self.last: Offsets = json.loads(options.get("to") or "{}")

    def initialOffset(self) -> dict[str, Any]:
        return self.first or self._offset(self.inputs.earliest())

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(self.rows_max)

    def prepareForTriggerAvailableNow(self) -> None:
        self.target = self.last or self.inputs.heads()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        begin: Offsets = start["offsets"]
        heads = self.target or self._news(begin)
        rows = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        available = sum(heads[stream] - begin[stream] for stream in heads)
        if available == 0:
            return start
        if rows is None or available <= rows:
            return self._offset(heads)
        return self._offset(self.inputs.cut(begin, heads, rows))

    def reportLatestOffset(self) -> dict[str, Any]:
        return self._offset(self.inputs.heads())

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        return _slices(start["offsets"], end["offsets"], self.tasks)

    def read(self, partition: InputPartition) -> Iterator[Any]:
        assert isinstance(partition, Slice)
        yield from self.inputs.read(*partition.value)

    def stop(self) -> None:
        self.inputs.close()

    def _offset(self, offsets: Offsets) -> dict[str, Any]:
        return {"offsets": offsets, "clock": self.inputs.clock(offsets)}

    def _news(self, begin: Offsets) -> Offsets:
        heads = self.inputs.heads()
        if heads == begin and len(begin) == 1:
            [(stream, offset)] = begin.items()
            self.inputs.reader(stream).wait(offset, WAIT_S)
            heads = self.inputs.heads()
        return heads


def _refuse_overwrite(overwrite: bool) -> None:
    if overwrite:
        raise SetupError("a log is append-only: use .mode('append')")


@dataclass
class Staged(WriterCommitMessage):
    """What one write task made: an Arrow stream, small enough to travel to the driver."""

    partition: int
    ipc: bytes


class _Append:
    """Tasks stage Arrow bytes, the commit appends them in partition order in one batch."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        self.path = str(options.get("path") or "")
        self.producer = options.get("producer") or ""
        self.sequence = int(options.get("sequence") or -1)
        if not self.path:
            raise SetupError("writing format 'edgewise' needs .option('path', PLACE_OF_A_LOG)")

    def stage(self, batches: Iterator[Any]) -> Staged:
        from pyspark import TaskContext

        context = TaskContext.get()
        sink = pa.BufferOutputStream()
        writer = None
        for batch in batches:
            writer = writer or pa.ipc.new_stream(sink, batch.schema)
            writer.write_batch(batch)
        if writer:
            writer.close()
        return Staged(context.partitionId() if context else 0, sink.getvalue().to_pybytes())

    def append(self, messages: Sequence[WriterCommitMessage | None], sequence: int) -> None:
        staged = sorted((m for m in messages if isinstance(m, Staged)), key=lambda m: m.partition)
        tables = [pa.ipc.open_stream(m.ipc).read_all() for m in staged if m.ipc]
        if not sum(table.num_rows for table in tables):
            return
        reader = open_reader(self.path)
        schema = from_arrow(reader.schema)
        reader.close()
        writer = open_writer(self.path, schema)
        try:
            rows = fit(pa.concat_tables(tables), writer.schema)
            writer.append(rows, producer=self.producer, sequence=sequence)
        finally:
            writer.close()


class LogTableWriter(_Append, DataSourceArrowWriter):
    """`df.write`: one append for the whole table."""

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        return self.stage(iterator)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        self.append(messages, self.sequence)


class LogStreamWriter(_Append, DataSourceStreamArrowWriter):
    """`df.writeStream`: one append a batch, the batch id is the sequence."""

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        return self.stage(iterator)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        self.append(messages, batchId)
