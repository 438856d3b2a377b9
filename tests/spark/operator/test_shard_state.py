"""The state of a shard survives as rows of a frame."""

import pyarrow as pa
from tests.spark.operator.test_batch import build_table
from tests.spark.operator.test_shard import build_stage, rows_of

from edgewise.event.event import Event
from edgewise.spark.operator.shard import Shard, decode_nulls
from edgewise.spark.operator.shard_state import (
    DATA,
    ENTRIES,
    HEAD,
    PART,
    decode_entries,
    decode_head,
    pack_state,
    pack_table_rows,
    unpack_rows,
)


def test_a_kernel_goes_on_from_packed_state():
    stage = build_stage()
    events = [Event("S", n, ("a", n)) for n in (1, 2, 3)]
    table = decode_nulls(stage, build_table(stage, events, 1)).slice(1)  # without the start
    first = Shard(stage)
    first.feed(table.slice(0, 2))
    first.live.take()
    packed = pa.Table.from_batches(pack_state(0, first.live)).to_pylist()
    head = decode_head(next(r[DATA] for r in packed if r[PART] == HEAD))
    entries = [e for r in packed if r[PART] == ENTRIES for e in decode_entries(r[DATA])]
    assert (head.fed, head.watermark, head.shards) == (2, 2, [0])
    second = Shard(stage, entries, (head.fed, head.watermark))
    second.feed(table.slice(2, 1))
    assert rows_of(second.live.take(), "O") == [["a", 6]]


def test_rows_of_tables_are_packed_by_shard():
    rows = pa.record_batch({"ew_shard": pa.array([0, 1, 0], pa.int32()), "v": [1, 2, 3]})
    packed = pa.Table.from_batches(pack_table_rows([rows])).to_pylist()
    found = {r["ew_shard"]: unpack_rows(r[DATA]).column("v").to_pylist() for r in packed}
    assert found == {0: [1, 3], 1: [2]}
