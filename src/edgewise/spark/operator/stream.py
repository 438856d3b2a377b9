"""Run a stage over a streaming DataFrame: a stateful processor of Spark, one key per shard.

State is Spark's own: in its state store, under its checkpoint, committed with the batch. A shard
keeps in it

    head      version, events fed, watermark, numbers of the next change and the next pending chunk
    changes   number -> what changed in the kernel, as packed entries; compacted now and then
    pending   number -> rows that wait for the watermark, as Arrow

The kernel itself is kept by the Python worker and found by the version that the state has: a task
that was repeated or moved finds another version and loads the kernel from the state. A batch
crosses into Python once per shard, in Arrow chunks, and writes what changed, not the whole state.

Events wait until the watermark passes them, so that they are fed in order whatever order they came
in; a timer wakes a shard that gets no rows when the watermark passes something it waits for.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import BinaryType, LongType, StructField, StructType

from edgewise.errors import StateError
from edgewise.spark.operator import stage as columns
from edgewise.spark.operator.shard import NEVER, Entries, Shard, decode_nulls, set_bad_aside
from edgewise.spark.operator.stage import OperatorStage

SHARDS_KEPT = 256  # kernels that a Python worker keeps between batches
CHANGES_MAX = 64  # of a shard before they are compacted into one
_HEAD = StructType([StructField("head", BinaryType())])
_NUMBER = StructType([StructField("number", LongType())])
_BLOB = StructType([StructField("data", BinaryType())])
_EMPTY_WATERMARK_MS = 0  # what Spark says before the first batch is done

_encode = msgspec.msgpack.encode


class _Head(msgspec.Struct, array_like=True):
    """Where a shard is. `pending` are (number, smallest, largest event time) of waiting chunks."""

    version: int = 0
    fed: int = 0
    watermark: int = NEVER
    next_change: int = 0
    first_change: int = 0
    base_bytes: int = 0
    grown_bytes: int = 0
    next_chunk: int = 0
    pending: list[tuple[int, int, int]] = []


_decode_head = msgspec.msgpack.Decoder(_Head).decode
_decode_entries = msgspec.msgpack.Decoder(list[tuple[bytes, bytes | None]]).decode

# Kept by the worker process, found by operator, shard and version.
_kept: OrderedDict[tuple[str, int], tuple[int, Shard, list[Any]]] = OrderedDict()


class ShardProcessor(StatefulProcessor):
    """`operator` names this run of the query: kernels of another are not used."""

    def __init__(self, stage: OperatorStage, operator: str) -> None:
        self.stage = stage
        self.operator = operator

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._handle = handle
        self._head = handle.getValueState("head", _HEAD)
        self._changes = handle.getMapState("changes", _NUMBER, _BLOB)
        self._pending = handle.getMapState("pending", _NUMBER, _BLOB)

    def handleInputRows(
        self,
        key: Any,
        rows: Iterator[Any],
        timerValues: Any,
    ) -> Iterator[Any]:
        schema = self.stage.input_schema
        tables = [pa.Table.from_pandas(r, schema, preserve_index=False) for r in rows]
        table = pa.concat_tables(tables) if tables else schema.empty_table()
        watermark = timerValues.getCurrentWatermarkInMs()
        yield from self._run(int(key[0]), decode_nulls(self.stage, table), watermark)

    def handleExpiredTimer(
        self,
        key: Any,
        timerValues: Any,
        expiredTimerInfo: Any,
    ) -> Iterator[Any]:
        empty = self.stage.input_schema.empty_table()
        yield from self._run(int(key[0]), empty, timerValues.getCurrentWatermarkInMs())

    def close(self) -> None:
        pass

    def _run(self, number: int, rows: Any, watermark: int) -> Iterator[Any]:
        stored = self._head.get()
        head = _decode_head(stored[0]) if stored is not None else _Head()
        shard, waiting = self._take(number, head)
        rows = self._set_aside(shard, rows, head)
        waiting = self._hold(rows, head, waiting)
        due, waiting = self._release(waiting, head, watermark)
        clock = watermark if watermark > _EMPTY_WATERMARK_MS else None
        shard.feed(due, lambda: self._load_entries(head), clock)
        out = shard.live.take()
        self._save(number, shard, waiting, head)
        self._set_timer(shard, head)
        if out.num_rows:
            import pandas as pd  # type: ignore[import-untyped]

            yield out.to_pandas(types_mapper=pd.ArrowDtype)

    def _take(self, number: int, head: _Head) -> tuple[Shard, list[Any]]:
        version, shard, waiting = _kept.pop((self.operator, number), (-1, None, []))
        if shard is not None and version == head.version and head.version:
            return shard, waiting
        shard = Shard(self.stage, self._load_entries(head), (head.fed, head.watermark))
        return shard, [self._read_chunk(chunk, head.watermark) for chunk, _, _ in head.pending]

    def _load_entries(self, head: _Head) -> Entries:
        found: dict[bytes, bytes | None] = {}
        for change in range(head.first_change, head.next_change):
            for key, value in _decode_entries(_blob(self._changes.getValue((change,)))):
                if value is None:
                    found.pop(key, None)
                else:
                    found[key] = value
        return list(found.items())

    def _read_chunk(self, number: int, watermark: int) -> Any:
        """The rows of a chunk that still wait; those that were fed stay in it until it goes."""
        with pa.ipc.open_stream(_blob(self._pending.getValue((number,)))) as reader:
            rows = reader.read_all()
        waits: Any = pc.greater(rows.column(columns.TS), pa.scalar(watermark))
        return rows.filter(waits)

    def _set_aside(self, shard: Shard, rows: Any, head: _Head) -> Any:
        """Rows with a bad value and rows behind the watermark are told and left out."""
        rows = set_bad_aside(shard.live, rows)
        late: Any = pc.less_equal(rows.column(columns.TS), pa.scalar(head.watermark))
        if pc.any(late).as_py():
            shard.live.add_late(rows.filter(late))
            rows = rows.filter(pc.invert(late))
        return rows

    def _hold(self, rows: Any, head: _Head, waiting: list[Any]) -> list[Any]:
        """New rows wait with the others; written once, as one chunk."""
        if not rows.num_rows:
            return waiting
        span = pc.min_max(rows.column(columns.TS))
        head.pending.append((head.next_chunk, span["min"].as_py(), span["max"].as_py()))
        head.next_chunk += 1
        return [*waiting, rows]

    def _release(self, waiting: list[Any], head: _Head, watermark: int) -> tuple[Any, list[Any]]:
        """Rows that the watermark has passed, in order; chunks that are empty now go."""
        due: list[Any] = []
        kept: list[Any] = []
        chunks: list[tuple[int, int, int]] = []
        for rows, (number, low, high) in zip(waiting, head.pending, strict=True):
            if low > watermark:
                kept.append(rows)
                chunks.append((number, low, high))
                continue
            passed: Any = pc.less_equal(rows.column(columns.TS), pa.scalar(watermark))
            due.append(rows.filter(passed))
            if high <= watermark:
                self._pending.removeKey((number,))
                continue
            rest = rows.filter(pc.invert(passed))
            kept.append(rest)
            chunks.append((number, pc.min(rest.column(columns.TS)).as_py(), high))
        head.pending = chunks
        if not due:
            return self.stage.input_schema.empty_table(), kept
        return pa.concat_tables(due).sort_by(self.stage.sort_keys()), kept

    def _save(self, number: int, shard: Shard, waiting: list[Any], head: _Head) -> None:
        for rows, (chunk, _, _) in zip(waiting, head.pending, strict=True):
            if not self._pending.containsKey((chunk,)):
                self._pending.updateValue((chunk,), (_to_ipc(rows),))
        entries = list(shard.live.kernel.changed())
        if entries:
            self._write_changes(entries, head)
        head.version += 1
        head.fed, head.watermark = shard.live.fed, shard.live.watermark
        self._head.update((_encode(head),))
        _kept[self.operator, number] = (head.version, shard, waiting)
        while len(_kept) > SHARDS_KEPT:
            _kept.popitem(last=False)

    def _write_changes(self, entries: Entries, head: _Head) -> None:
        """As one further change, or all together where they have doubled since the last time."""
        data = _encode(entries)
        many = head.next_change - head.first_change >= CHANGES_MAX
        if many or head.grown_bytes + len(data) > max(head.base_bytes, 1 << 16):
            changed = dict(self._load_entries(head)) | dict(entries)
            data = _encode([(k, v) for k, v in changed.items() if v is not None])
            for change in range(head.first_change, head.next_change):
                self._changes.removeKey((change,))
            head.first_change = head.next_change
            head.base_bytes, head.grown_bytes = len(data), 0
        else:
            head.grown_bytes += len(data)
        self._changes.updateValue((head.next_change,), (data,))
        head.next_change += 1

    def _set_timer(self, shard: Shard, head: _Head) -> None:
        """Wake this shard when the watermark passes the first thing that it waits for."""
        waits = [low for _, low, _ in head.pending]
        due = shard.live.kernel.next_timer()
        if due is not None:
            waits.append(due)
        if waits:
            self._handle.registerTimer(max(0, min(waits) - 1))


def _blob(stored: tuple[Any, ...] | None) -> bytes:
    if stored is None:
        raise StateError("the state of a shard is incomplete: restore the checkpoint of the query")
    data: bytes = stored[0]
    return data


def _to_ipc(rows: Any) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    return bytes(sink.getvalue())
