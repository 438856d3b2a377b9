"""Read and write logs as a Spark data source: `spark.readStream.format("edgewise")`.

Two forms of reading:

- `.option("path", LOCATION)`: one log, its attributes under their own names, for people.
- `.option("logs", JSON {stream: LOCATION})`: the inputs of an app as one table, for the engine;
  attribute `a` of the i-th stream is the column `s<i>_a`.

A location is a directory, or kafka://host:port/topic: `log.locations` opens both. Both forms add
the columns `_offset` and `_clock`, the second also `_stream` (`engines.batch.columns`).

Spark keeps the offsets in its checkpoint. They carry the clock, so that a restart knows the app's
time without reading what came before:

    {"offsets": {"S": 1200}, "clock": 1700000000000}

Options of a stream: `from`, such an offset, where it starts; `to`, JSON {stream: offset}, where a
stream over what is available stops; `max_rows`, which bounds a micro-batch (admission control).
Several streams end at one capture time, so that no event is ahead of one captured before it.

Writing appends: `df.write.format("edgewise").option("path", DIR).mode("append").save()`. With
`producer` and `sequence` it is idempotent; a stream writes with its batch id as the sequence. All
rows of a write pass through the driver, which is the one writer of the log.
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

from edgewise.engines.batch.inputs import InputLogs, Offsets
from edgewise.engines.batch.outputs import fit_to_log
from edgewise.errors import SetupError
from edgewise.event.arrow import from_arrow
from edgewise.log.locations import open_reader, open_writer

PARTITION_ROWS_MIN = 50_000  # below this a second task costs more than it brings
PARTITION_ROWS_MAX = 2_000_000  # above this a retry repeats too much
TASKS = os.cpu_count() or 1  # option `tasks` says otherwise, for a cluster
WAIT_S = 0.1  # how long latestOffset waits for new rows: less polling, no added latency
ROWS_PER_BATCH_MAX = 1_000_000


@dataclass(frozen=True)
class LogSlice(InputPartition):
    """Offsets `start` up to and without `end` of one stream."""

    stream: str
    start: int
    end: int

    @property
    def value(self) -> tuple[str, int, int]:
        return (self.stream, self.start, self.end)


def _open_inputs(options: Mapping[str, str]) -> InputLogs:
    logs, path = options.get("logs"), options.get("path")
    if logs:
        return InputLogs(json.loads(logs))
    if not path:
        raise SetupError(
            "format 'edgewise' needs .option('path', LOCATION): a directory or kafka://host:port/topic"
        )
    return InputLogs({PurePath(path).name: path}, merged=False)


def _divide(start: Offsets, end: Offsets, tasks: int = TASKS) -> list[LogSlice]:
    """Divide a range into tasks of about equal rows, none too small to be worth a task."""
    total = sum(end[stream] - start[stream] for stream in end)
    rows = min(max(PARTITION_ROWS_MIN, -(-total // tasks)), PARTITION_ROWS_MAX)
    return [
        LogSlice(stream, at, min(at + rows, end[stream]))
        for stream in end
        for at in range(start[stream], end[stream], rows)
    ]


class LogSource(DataSource):
    """`format("edgewise")`."""

    @classmethod
    def name(cls) -> str:
        return "edgewise"

    def schema(self) -> StructType:
        inputs = _open_inputs(self.options)
        try:
            return from_arrow_schema(inputs.build_schema())
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
        self.inputs = _open_inputs(options)
        self.tasks = int(options.get("tasks") or TASKS)
        self.start: Offsets = json.loads(options.get("start") or "{}")
        self.end: Offsets = json.loads(options.get("end") or "{}")

    def partitions(self) -> Sequence[InputPartition]:
        start = self.inputs.earliest() | self.start
        return _divide(start, self.inputs.heads() | self.end, self.tasks)

    def read(self, partition: InputPartition) -> Iterator[Any]:
        assert isinstance(partition, LogSlice)
        yield from self.inputs.read_batches(*partition.value)


class LogStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Micro-batches over the logs; `latestOffset` decides how much one of them takes."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        self.inputs = _open_inputs(options)
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
        begin = self.inputs.fill_missing(start["offsets"])  # the app may read more than before
        heads = self.target or self._wait_for_rows(begin)
        rows = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        available = sum(heads[stream] - begin[stream] for stream in heads)
        if available == 0:
            return start
        if rows is None or available <= rows:
            return self._offset(heads)
        return self._offset(self.inputs.limit_end(begin, heads, rows))

    def reportLatestOffset(self) -> dict[str, Any]:
        return self._offset(self.inputs.heads())

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        return _divide(self.inputs.fill_missing(start["offsets"]), end["offsets"], self.tasks)

    def read(self, partition: InputPartition) -> Iterator[Any]:
        assert isinstance(partition, LogSlice)
        yield from self.inputs.read_batches(*partition.value)

    def stop(self) -> None:
        self.inputs.close()

    def _offset(self, offsets: Offsets) -> dict[str, Any]:
        return {"offsets": offsets, "clock": self.inputs.clock_at(offsets)}

    def _wait_for_rows(self, begin: Offsets) -> Offsets:
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
class StagedRows(WriterCommitMessage):
    """The rows of one write task as an Arrow stream, on their way to the driver."""

    partition: int
    ipc: bytes


class _LogAppender:
    """Tasks stage Arrow bytes, the commit appends them in partition order in one batch."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        self.path = str(options.get("path") or "")
        self.producer = options.get("producer") or ""
        self.sequence = int(options.get("sequence") or -1)
        if not self.path:
            raise SetupError(
                "writing format 'edgewise' needs .option('path', LOCATION): a directory or kafka://host:port/topic"
            )

    def stage(self, batches: Iterator[Any]) -> StagedRows:
        from pyspark import TaskContext

        context = TaskContext.get()
        sink = pa.BufferOutputStream()
        writer = None
        for batch in batches:
            writer = writer or pa.ipc.new_stream(sink, batch.schema)
            writer.write_batch(batch)
        if writer:
            writer.close()
        return StagedRows(context.partitionId() if context else 0, sink.getvalue().to_pybytes())

    def append(self, messages: Sequence[WriterCommitMessage | None], sequence: int) -> None:
        split_into_stages = sorted(
            (m for m in messages if isinstance(m, StagedRows)), key=lambda m: m.partition
        )
        tables = [pa.ipc.open_stream(m.ipc).read_all() for m in split_into_stages if m.ipc]
        if not sum(table.num_rows for table in tables):
            return
        reader = open_reader(self.path)
        schema = from_arrow(reader.schema)
        reader.close()
        writer = open_writer(self.path, schema)
        try:
            rows = fit_to_log(pa.concat_tables(tables), writer.schema)
            writer.append(rows, producer=self.producer, sequence=sequence)
        finally:
            writer.close()


class LogTableWriter(_LogAppender, DataSourceArrowWriter):
    """`df.write`: one append for the whole table."""

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        return self.stage(iterator)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        self.append(messages, self.sequence)


class LogStreamWriter(_LogAppender, DataSourceStreamArrowWriter):
    """`df.writeStream`: one append a batch, the batch id is the sequence."""

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        return self.stage(iterator)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        self.append(messages, batchId)
