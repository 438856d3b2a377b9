"""Pack the state of a shard as rows of a frame, and read them back as what a stream begins with.

    ew_shard   the shard
    ew_part    what `ew_data` holds: a head, a part of the state, rows of tables
    ew_data    bytes

A batch over history ends with such a frame; Spark hands it to a stream as its initial state.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from edgewise.kernel.codegen.state_owners import StateLayout
from edgewise.spark.operator.shard import ShardKernel

PART, DATA = "ew_part", "ew_data"
HEAD, ENTRIES, TABLE_ROWS = 0, 1, 2  # what a row holds
ENTRIES_PER_ROW = 10_000  # keys of one row; a row is what Spark moves at once
_FIELDS: list[Any] = [
    pa.field("ew_shard", pa.int32()),
    pa.field(PART, pa.int32()),
    pa.field(DATA, pa.binary()),
]
STATE_SCHEMA = pa.schema(_FIELDS)

Entry = tuple[bytes, bytes | None]

_encode = msgspec.msgpack.encode


class StateHead(msgspec.Struct, array_like=True):
    """How far a shard is: events fed, its time, the plan whose state it is, the shards there are.

    The layout is empty for a stage without anything to keep.
    """

    fed: int
    watermark: int
    layout: StateLayout
    shards: list[int]


decode_head = msgspec.msgpack.Decoder(StateHead).decode
decode_entries = msgspec.msgpack.Decoder(list[tuple[bytes, bytes | None]]).decode


def encode_entries(entries: Iterable[Entry]) -> bytes:
    return _encode(list(entries))


def build_head(live: ShardKernel) -> StateHead:
    return StateHead(live.fed, live.watermark, live.kernel.layout, list(live.stage.shards))


def pack_state(shard: int, live: ShardKernel) -> Iterator[Any]:
    """The whole state of a kernel that was never saved, as record batches."""
    yield _pack(shard, HEAD, _encode(build_head(live)))
    entries = iter(live.kernel.changed())
    while chunk := list(islice(entries, ENTRIES_PER_ROW)):
        yield _pack(shard, ENTRIES, encode_entries(chunk))


def pack_rows(rows: Any) -> bytes:
    """Rows as an Arrow stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    return bytes(sink.getvalue())


def unpack_rows(data: bytes) -> Any:
    with pa.ipc.open_stream(data) as reader:
        return reader.read_all()


def pack_table_rows(batches: Iterable[Any]) -> Iterator[Any]:
    """For `mapInArrow`: rows of tables, packed by shard."""
    for batch in batches:
        table = pa.Table.from_batches([batch])
        shards: Any = table.column("ew_shard")
        for shard in shards.unique():
            mine = table.filter(pc.equal(shards, shard))
            yield _pack(shard.as_py(), TABLE_ROWS, pack_rows(mine))


def _pack(shard: int, part: int, data: bytes) -> Any:
    columns: list[Any] = [
        pa.array([shard], pa.int32()),
        pa.array([part], pa.int32()),
        pa.array([data]),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=STATE_SCHEMA)
