"""SiddhiQL on DataFrames gives the rows of the embedded engine, as a batch and as a stream."""

import random
from collections import Counter

import pytest
from pyspark.sql import functions as sf

from edgewise import spark as ew
from edgewise.errors import AppError, SetupError
from edgewise.event.event import Event, EventKind
from edgewise.lang.compiler import compile_app
from edgewise.node.commands.replay import replay
from edgewise.spark.operator.apply import PROVIDER, ROCKSDB

pytestmark = pytest.mark.spark

S = "define stream S (k string, v int, p double); "
APPS = {
    "filter": S + "from S[v > 4] select k, v * 2 as w insert into O;",
    "pattern": S + "from every a=S[v > 5] -> b=S[k == a.k and v < a.v] within 3 sec "
    "select a.k as k, a.v as first, b.v as second insert into O;",
    "absence": S + "from every a=S[v > 7] -> not S[k == a.k] for 1 sec "
    "select a.k as k insert into O;",
    "window": S + "from S#window.time(2 sec) select k, sum(v) as n, avg(p) as m group by k "
    "insert all events into O;",
    "one shard": S + "from S#window.length(5) select k, max(p) as m insert into O;",
}  # fmt: skip


def build_events(seed, count=80):
    dice = random.Random(seed)
    now, made = 1_000_000, []
    for _ in range(count):
        now += dice.choice([1, 10, 200, 700])
        data = (
            dice.choice("abc"),
            dice.choice([None, *range(10)]),
            dice.choice([None, *(x / 4 for x in range(40))]),
        )
        made.append(Event("S", now, data))
    return made


def build_frame(spark, events):
    rows = [(e.ts, *e.data) for e in events]
    frame = spark.createDataFrame(rows, "t long, k string, v int, p double")
    return frame.select(sf.timestamp_millis("t").alias("ts"), "k", "v", "p")


def expect(text, events):
    last = Event("", max(e.ts for e in events), (), EventKind.TICK)
    rows = replay(compile_app(text).app, [*events, last], "embedded")
    return Counter(repr(e.data) for e in rows)


def count_rows(rows):
    return Counter(repr(tuple(r)) for r in rows)


@pytest.fixture
def rocksdb(spark):
    """Spark's stateful processors need its RocksDB store; a few partitions are enough."""
    settings = {PROVIDER: ROCKSDB, "spark.sql.shuffle.partitions": "3"}
    for name, value in settings.items():
        spark.conf.set(name, value)
    yield spark
    for name in settings:
        spark.conf.unset(name)


@pytest.mark.parametrize("name", APPS)
def test_a_batch_in_any_order_gives_the_embedded_rows(spark, name):
    events = build_events(name)
    shuffled = random.Random(1).sample(events, len(events))
    frame = build_frame(spark, shuffled).repartition(3)
    found = ew.query(APPS[name], S=frame, time="ts", shards=3)
    assert count_rows(found.collect()) == expect(APPS[name], events)


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[] if n == "pattern" else pytest.mark.slow) for n in APPS]
)
def test_a_stream_cut_anywhere_gives_the_embedded_rows(rocksdb, tmp_path, name):
    events = build_events(name)
    dice = random.Random(name)
    ends = sorted(dice.sample(range(1, len(events)), 2))
    for start, end in zip([0, *ends], [*ends, len(events)], strict=True):
        frame = build_frame(rocksdb, dice.sample(events[start:end], end - start))
        frame.coalesce(1).write.mode("append").parquet(str(tmp_path / "in"))
    schema = build_frame(rocksdb, events).schema
    stream = rocksdb.readStream.schema(schema).option("maxFilesPerTrigger", 1)
    found = ew.query(APPS[name], S=stream.parquet(str(tmp_path / "in")), time="ts", shards=3)
    running = (
        found.writeStream.format("parquet")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start(str(tmp_path / "out"))
    )
    running.awaitTermination()
    rows = rocksdb.read.parquet(str(tmp_path / "out")).collect()
    assert count_rows(rows) == expect(APPS[name], events)


def test_several_results_come_by_name_and_tagged(spark):
    text = S + "from S[v > 4] select k insert into High; from S[v < 2] select k insert into Low;"
    out = ew.app(text, S=build_frame(spark, build_events(3)), time="ts")
    assert list(out) == ["High", "Low"]
    assert out.tagged.where("stream = 'Low'").count() == out["Low"].count() > 0
    with pytest.raises(KeyError, match="writes: High, Low"):
        out["None"]


def test_it_composes_with_transform(spark):
    frame = build_frame(spark, build_events(4))
    text = S + "from S[v > 4] select k insert into High;"
    composed = frame.transform(ew.siddhi(text, time="ts"))
    assert composed.count() == frame.where("v > 4").count()


def test_what_cannot_work_is_refused_at_the_call(spark):
    frame = build_frame(spark, build_events(5, 3))
    with pytest.raises(SetupError, match="pass S=frame"):
        ew.query(APPS["filter"], time="ts")
    with pytest.raises(SetupError, match="reads no stream 'T'"):
        ew.query(APPS["filter"], S=frame, T=frame, time="ts")
    with pytest.raises(SetupError, match="use app"):
        ew.query(S + "from S select k insert into A; from S select v insert into B;", S=frame)
    with pytest.raises(AppError, match="there is no"):
        ew.query(S + "from S#window.nothing(1) select k insert into A;", S=frame)
