"""Run a stage over a streaming DataFrame: a stateful processor of Spark, one key per shard.

State is Spark's own: in its state store, under its checkpoint, committed with the batch. A shard
keeps in it

    plan      whose state it is: the layout of the kernel, the inputs, the shards there are
    head      version, events fed, watermark, numbers of the next change and the next pending chunk
    changes   number -> what changed in the kernel, as packed entries; compacted now and then
    pending   number -> rows that wait for the watermark, as Arrow; rows of tables for an event

The kernel itself is kept by the Python worker and found by the version that the state has: a task
that was repeated or moved finds another version and loads the kernel from the state. A batch
crosses into Python once per shard, in Arrow chunks, and writes what changed, not the whole state.

Events wait until the watermark passes them, so that they are fed in order whatever order they came
in; a timer wakes a shard that gets no rows when the watermark passes something it waits for.

A restart with another app carries the state of queries that stayed the same (`saved_plan`).
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
from edgewise.spark.operator.saved_plan import SavedStage, carry_entries, decode_stage
from edgewise.spark.operator.shard import Entries, Shard, decode_nulls, set_bad_aside
from edgewise.spark.operator.shard_state import (
    DATA,
    ENTRIES,
    HEAD,
    PART,
    decode_entries,
    decode_head,
    encode_entries,
    pack_rows,
    unpack_rows,
)
from edgewise.spark.operator.stage import NEVER, OperatorStage

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

# Kept by the worker process, found by operator, shard and version.
_kept: OrderedDict[tuple[str, int], tuple[int, Shard, list[Any]]] = OrderedDict()


class ShardProcessor(StatefulProcessor):
    """`operator` names this run of the query: kernels of another are not used."""

    def __init__(self, stage: OperatorStage, operator: str) -> None:
        self.stage = stage
        self.operator = operator
        self.own = SavedStage.of(stage)

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._handle = handle
        self._plan = handle.getValueState("plan", _BLOB)
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

    def handleInitialState(self, key: Any, initialState: Any, timerValues: Any) -> None:
        """What a batch over history left, and the rows of tables; maybe in several parts."""
        stored = self._head.get()
        head = _decode_head(stored[0]) if stored is not None else _Head()
        for part, data in zip(initialState[PART], initialState[DATA], strict=True):
            if part == HEAD:
                given = decode_head(data)
                # One before its last event: another of that time is not late.
                head.fed, head.watermark = given.fed, given.watermark - 1
                saved = SavedStage(given.layout, self.own.inputs, given.shards)
                self._plan.update((_encode(saved),))
            elif part == ENTRIES:
                self._changes.updateValue((head.next_change,), (data,))
                head.next_change += 1
                head.base_bytes += len(data)
            else:
                self._pending.updateValue((head.next_chunk,), (data,))
                head.pending.append((head.next_chunk, NEVER, NEVER))
                head.next_chunk += 1
        head.version += 1
        self._head.update((_encode(head),))

    def handleExpiredTimer(
        self,
        key: Any,
        timerValues: Any,
        expiredTimerInfo: Any,
    ) -> Iterator[Any]:
        empty = self.stage.input_schema.empty_table()
        watermark = timerValues.getCurrentWatermarkInMs()
        fired = expiredTimerInfo.getExpiryTimeInMs()
        yield from self._run(int(key[0]), empty, watermark, fired)

    def close(self) -> None:
        pass

    def _run(
        self, number: int, rows: Any, watermark: int, fired: int | None = None
    ) -> Iterator[Any]:
        stored = self._head.get()
        head = _decode_head(stored[0]) if stored is not None else _Head()
        shard, waiting = self._take(number, head)
        rows = self._set_aside(shard, rows, max(head.watermark, watermark))
        waiting = self._hold(rows, head, waiting)
        due, waiting = self._release(waiting, head, watermark)
        clock = watermark if watermark > _EMPTY_WATERMARK_MS else None
        shard.feed(due, lambda: self._load_entries(head), clock)
        self._save(number, shard, waiting, head)
        self._set_timer(shard, head, fired)
        if due.num_rows or rows.num_rows:
            shard.live.add_stats(due.num_rows, sum(w.num_rows for w in waiting))
        out = shard.live.take()
        if out.num_rows:
            import pandas as pd  # type: ignore[import-untyped]

            yield out.to_pandas(types_mapper=pd.ArrowDtype)

    def _take(self, number: int, head: _Head) -> tuple[Shard, list[Any]]:
        version, shard, waiting = _kept.pop((self.operator, number), (-1, None, []))
        if shard is not None and version == head.version and head.version:
            return shard, waiting
        saved = self._plan.get()
        if saved is None:
            self._plan.update((_encode(self.own),))
        elif (old := decode_stage(saved[0])) != self.own:
            self._migrate(old, head)
        shard = Shard(self.stage, self._load_entries(head), (head.fed, head.watermark))
        chunks = [self._read_chunk(chunk, low, head.watermark) for chunk, low, _ in head.pending]
        return shard, chunks

    def _migrate(self, old: SavedStage, head: _Head) -> None:
        """The state in the layout of this plan, in place of the one of the plan before."""
        entries = carry_entries(self.stage, old, self._load_entries(head), head.watermark)
        self._replace_changes(encode_entries(entries), head)
        self._plan.update((_encode(self.own),))

    def _load_entries(self, head: _Head) -> Entries:
        found: dict[bytes, bytes | None] = {}
        for change in range(head.first_change, head.next_change):
            for key, value in decode_entries(_blob(self._changes.getValue((change,)))):
                if value is None:
                    found.pop(key, None)
                else:
                    found[key] = value
        return list(found.items())

    def _read_chunk(self, number: int, low: int, watermark: int) -> Any:
        """The rows of a chunk that still wait; those that were fed stay in it until it goes."""
        rows = unpack_rows(_blob(self._pending.getValue((number,))))
        if low == NEVER:
            return decode_nulls(self.stage, rows.cast(self.stage.input_schema))
        waits: Any = pc.greater(rows.column(columns.TS), pa.scalar(watermark))
        return rows.filter(waits)

    def _set_aside(self, shard: Shard, rows: Any, watermark: int) -> Any:
        """Rows with a bad value and rows behind the watermark are told and left out.

        The watermark is of earlier batches: whoever is behind it now is late on every shard.
        """
        rows = set_bad_aside(shard.live, rows)
        if self.stage.staged:
            return rows
        late: Any = pc.less_equal(rows.column(columns.TS), pa.scalar(watermark))
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
        """Rows that the watermark has passed, in order; chunks that are empty now go.

        Rows of tables go with the first event.
        """
        due: list[Any] = []
        with_tables = any(NEVER < low <= watermark for _, low, _ in head.pending)
        kept: list[Any] = []
        chunks: list[tuple[int, int, int]] = []
        for rows, (number, low, high) in zip(waiting, head.pending, strict=True):
            if low > watermark or (low == NEVER and not with_tables):
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
                self._pending.updateValue((chunk,), (pack_rows(rows),))
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
        data = encode_entries(entries)
        many = head.next_change - head.first_change >= CHANGES_MAX
        if many or head.grown_bytes + len(data) > max(head.base_bytes, 1 << 16):
            changed = dict(self._load_entries(head)) | dict(entries)
            self._replace_changes(
                encode_entries((k, v) for k, v in changed.items() if v is not None), head
            )
            return
        head.grown_bytes += len(data)
        self._changes.updateValue((head.next_change,), (data,))
        head.next_change += 1

    def _replace_changes(self, data: bytes, head: _Head) -> None:
        for change in range(head.first_change, head.next_change):
            self._changes.removeKey((change,))
        head.first_change = head.next_change
        head.base_bytes, head.grown_bytes = len(data), 0
        self._changes.updateValue((head.next_change,), (data,))
        head.next_change += 1

    def _set_timer(self, shard: Shard, head: _Head, fired: int | None) -> None:
        """Wake this shard when the watermark passes the first thing that it waits for.

        A millisecond before it, as Spark may fire a timer only after its time. Spark deletes a
        timer once it was handled: the one that `fired` cannot be set again.
        """
        waits = [low for _, low, _ in head.pending if low != NEVER]
        due = shard.live.kernel.next_timer()
        if due is not None:
            waits.append(due)
        if waits:
            wake = max(0, min(waits) - 1)
            self._handle.registerTimer(wake + (wake == fired))


def _blob(stored: tuple[Any, ...] | None) -> bytes:
    if stored is None:
        raise StateError("the state of a shard is incomplete: restore the checkpoint of the query")
    data: bytes = stored[0]
    return data
