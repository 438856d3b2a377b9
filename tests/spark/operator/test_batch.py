"""Shards of a batch give the rows of the embedded engine, however the keys are spread."""

import random
import zlib
from collections import Counter

import pyarrow as pa
import pytest
from tests.conformance.random_apps import FAMILIES
from tests.support.random_batches import family_case

from edgewise.event.arrow import from_value, to_stored
from edgewise.event.event import Event, EventKind
from edgewise.lang.compiler import compile_app
from edgewise.node.commands.replay import replay
from edgewise.plan.rules.keys import split_into_fragments
from edgewise.plan.rules.rewrite import rewrite
from edgewise.spark.operator.batch import run_shards
from edgewise.spark.operator.stage import START, TICK, OperatorStage
from edgewise.spark.operator.static_tables import find_streams_read


def build_table(stage, events, shards):
    """Events in order as sorted input of a stage; every shard has a start and a final tick."""
    last = max((e.ts for e in events), default=0)
    read = find_streams_read(stage.app)
    first = min((e.ts for e in events if e.stream in read), default=last)
    rows = []
    for number, event in enumerate(events):
        if event.kind is EventKind.TICK:
            continue
        names = stage.fragment.inputs
        if event.stream not in names:
            continue
        index = names.index(event.stream)
        schema = stage.inputs[index]
        key = stage.fragment.key_of(event.stream)
        values = dict(zip(schema.names, event.data, strict=True))
        shard = zlib.crc32(repr([values[k] for k in key]).encode()) % shards if key else 0
        row = {"ew_shard": shard, "ew_stream": index, "ew_ts": event.ts, "ew_o0": number}
        row |= {
            f"s{index}_{j}": to_stored([values[a.name]], a.type)[0]
            for j, a in enumerate(schema.attributes)
        }
        rows.append(row)
    tick = {"ew_stream": TICK, "ew_ts": last, "ew_o0": len(events)}
    start = {"ew_stream": START, "ew_ts": first, "ew_o0": -1}
    rows += [mark | {"ew_shard": shard} for shard in range(shards) for mark in (start, tick)]
    rows.sort(key=lambda r: (r["ew_shard"], r["ew_ts"], r["ew_o0"]))
    for row in rows:
        row["ew_nulls"] = sum(
            1 << bit for bit, column in stage.nullable() if row.get(column) is None
        )
        for _, column in stage.nullable():
            if row.get(column) is None:
                kind = stage.input_schema.field(column).type
                row[column] = False if kind == pa.bool_() else 0
    names = stage.input_schema.names
    columns = [
        pa.array([row.get(n) for row in rows], stage.input_schema.field(n).type) for n in names
    ]
    return pa.Table.from_arrays(columns, schema=stage.input_schema)


def run_stage(stage, events, shards, chunk_rows):
    table = build_table(stage, events, shards)
    found = []
    for batch in run_shards(stage, table.to_batches(max_chunksize=chunk_rows)):
        for row in batch.to_pylist():
            index = next(i for i, s in enumerate(stage.outputs) if s.name == row["ew_stream"])
            attributes = stage.outputs[index].attributes
            data = tuple(
                from_value(row[f"o{index}_{j}"], a.type) for j, a in enumerate(attributes)
            )
            found.append((row["ew_stream"], row["ew_ts"], data))
    return found


@pytest.mark.parametrize("family", sorted(FAMILIES))
@pytest.mark.parametrize("seed", range(6))
def test_rows_equal_those_of_the_embedded_engine(family, seed):
    text, made, _ = family_case(family, seed)
    app = rewrite(compile_app(text).app)
    events = sorted((e for e in made if e.kind is not EventKind.TICK), key=lambda e: e.ts)
    last = Event("", max(e.ts for e in events), (), EventKind.TICK)
    expected = Counter(
        (e.stream, e.ts, repr(e.data)) for e in replay(app, [*events, last], "embedded")
    )
    dice = random.Random(seed)
    found = Counter()
    for fragment in split_into_fragments(app):
        stage = OperatorStage(app, fragment, order=1)
        shards = dice.choice([1, 3]) if fragment.keyed else 1
        rows = run_stage(stage, events, shards, dice.choice([1, 7, 1000]))
        found.update((s, ts, repr(data)) for s, ts, data in rows)
    assert found == expected


def test_a_poison_event_is_a_fault_row_and_the_others_go_on():
    app = compile_app(
        "define stream S (k string, v int); "
        "define function f[python] return int { return 10 // data[0] }; "
        "from S select k, f(v) as x insert into O;"
    ).app
    stage = OperatorStage(app, split_into_fragments(app)[0], order=1)
    events = [Event("S", n, ("a", n % 3)) for n in range(1, 7)]
    rows = run_stage(stage, events, 1, 2)
    assert [r[2] for r in rows if r[0] == "O"] == [("a", 10), ("a", 5), ("a", 10), ("a", 5)]
    assert [r[2][0] for r in rows if r[0] == "$faults"] == ["S", "S"]
