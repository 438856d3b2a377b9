"""A changed app keeps the state of queries that stayed, and refuses the others by name."""

import pytest
from tests.spark.operator.test_batch import build_table

from edgewise.errors import StateError
from edgewise.event.event import Event
from edgewise.lang.compiler import compile_app
from edgewise.spark.operator.saved_plan import SavedStage, carry_entries
from edgewise.spark.operator.shard import Shard, decode_nulls
from edgewise.spark.operator.stage import OperatorStage
from edgewise.spark.operator.static_tables import split_with_tables

HEAD = "define stream S (k string, v int); "
ONE = "@info(name='one') from S#window.length({}) select k, sum(v) as n insert into O; "
TWO = "@info(name='two') from S#window.length({}) select k, max(v) as m insert into P; "


def build_stage(text, shards=(0,)):
    app = compile_app(HEAD + text).app
    return OperatorStage(app, split_with_tables(app, ())[0], order=1, shards=shards)


def feed(stage, entries, numbers):
    table = build_table(stage, [Event("S", n, ("a", n)) for n in numbers], 1)
    shard = Shard(stage, entries)
    shard.feed(decode_nulls(stage, table), list)
    found = [r for r in shard.live.take().to_pylist() if r["ew_stream"] == "O"]
    return shard, [r["o0_1"] for r in found]


def test_a_query_that_stayed_keeps_its_state_beside_new_ones():
    old, new = build_stage(ONE.format(9)), build_stage(ONE.format(9) + TWO.format(2))
    shard, _ = feed(old, (), [1, 2])
    entries = carry_entries(new, SavedStage.of(old), shard.live.kernel.changed(), 2)
    assert feed(new, entries, [3])[1] == [6]


def test_what_changed_is_named():
    old = SavedStage.of(build_stage(ONE.format(9) + TWO.format(2)))
    with pytest.raises(StateError, match=r"query two \(line 1\) changed"):
        carry_entries(build_stage(ONE.format(9) + TWO.format(3)), old, (), 0)
    with pytest.raises(StateError, match="has 1 shards and the query 2"):
        carry_entries(build_stage(ONE.format(9), (0, 1)), old, (), 0)
    app = compile_app("define stream S (k string, v long); " + ONE.format(9)).app
    other = OperatorStage(app, split_with_tables(app, ())[0], order=1)
    with pytest.raises(StateError, match="stream S has other attributes"):
        carry_entries(other, old, (), 0)
