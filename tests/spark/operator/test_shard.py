"""A shard keeps going: late rows and poison events become rows of their own."""

import pyarrow as pa
from tests.spark.operator.test_batch import build_table

from edgewise.event.event import Event
from edgewise.lang.compiler import compile_app
from edgewise.plan.rules.keys import split_into_fragments
from edgewise.spark.operator.shard import Shard, decode_nulls
from edgewise.spark.operator.stage import OperatorStage

TEXT = "define stream S (k string, v int); from S select k, sum(v) as n group by k insert into O;"


def build_stage(text=TEXT):
    app = compile_app(text).app
    return OperatorStage(app, split_into_fragments(app)[0], order=1)


def build_rows(stage, events):
    """As rows of one shard, without what begins and ends it."""
    return decode_nulls(stage, build_table(stage, events, 1)).slice(1, len(events))


def rows_of(table, stream):
    found = [r for r in table.to_pylist() if r["ew_stream"] == stream]
    return [[v for k, v in r.items() if k.startswith("o") and v is not None] for r in found]


def test_state_goes_on_in_another_shard_object():
    stage = build_stage()
    table = build_rows(stage, [Event("S", n, ("a", n)) for n in (1, 2, 3)])
    first = Shard(stage)
    first.feed(table.slice(0, 2), list)
    entries = first.live.kernel.changed()
    assert rows_of(first.live.take(), "O") == [["a", 1], ["a", 3]]
    second = Shard(stage, entries, (first.live.fed, first.live.watermark))
    second.feed(table.slice(2, 1), list)
    assert rows_of(second.live.take(), "O") == [["a", 6]]


def test_late_rows_are_told_with_their_event():
    stage = build_stage()
    shard = Shard(stage)
    shard.live.add_late(build_rows(stage, [Event("S", 5, ("a", None))]))
    assert rows_of(shard.live.take(), "$late") == [["S", 5, '{"k":"a","v":null}']]


def test_nulls_travel_as_bits():
    stage = build_stage()
    table = build_rows(stage, [Event("S", 1, ("a", None))])
    assert table.column("s0_1").to_pylist()[0] is None
    assert table.schema.field("s0_1").type == pa.int32()


def test_rows_set_aside_survive_a_poison_event():
    stage = build_stage(
        "define stream S (k string, v int); "
        "define function f[python] return int { return 10 // data[0] }; "
        "from S select k, f(v) as x insert into O;"
    )
    table = build_rows(stage, [Event("S", n, ("a", n)) for n in (0, 5)])
    shard = Shard(stage)
    shard.live.add_late(table.slice(0, 1))
    shard.feed(table.slice(0, 2), list, 9)
    out = shard.live.take()
    assert rows_of(out, "O") == [["a", 2]]
    assert len(rows_of(out, "$late")) == len(rows_of(out, "$faults")) == 1
