"""Tables, history and closing: what a batch and a stream can be given beside their events."""

import pytest
from tests.spark.operator.test_api import (
    APPS,
    S,
    build_events,
    build_frame,
    count_rows,
    expect,
    rocksdb,  # noqa: F401  a fixture
)

from edgewise import spark as ew
from edgewise.errors import SetupError

pytestmark = pytest.mark.spark

JOIN = S + (
    "define table P (k string, w int); "
    "from S join P on S.k == P.k select S.k as k, v, P.w as w insert into O;"
)


def stream_files(spark, directory, events, parts):
    """A stream of as many micro-batches as there are parts."""
    size = -(-len(events) // parts)
    for at in range(0, len(events), size):
        frame = build_frame(spark, events[at : at + size])
        frame.coalesce(1).write.mode("append").parquet(str(directory))
    reader = spark.readStream.schema(build_frame(spark, events).schema)
    return reader.option("maxFilesPerTrigger", 1).parquet(str(directory))


def run_stream(spark, frame, directory):
    running = (
        frame.writeStream.format("parquet")
        .option("checkpointLocation", str(directory / "checkpoint"))
        .trigger(availableNow=True)
        .start(str(directory / "out"))
    )
    running.awaitTermination()
    return spark.read.parquet(str(directory / "out")).collect(), running


def test_a_static_frame_stands_for_a_table(spark):
    prices = spark.createDataFrame([("a", 10), ("b", 20), ("z", 1)], "k string, w int")
    events = build_events(7)
    rows = ew.query(JOIN, S=build_frame(spark, events), P=prices, time="ts", shards=3).collect()
    known = {"a": 10, "b": 20}
    wanted = [(e.data[0], e.data[1], known[e.data[0]]) for e in events if e.data[0] in known]
    assert count_rows(rows) == count_rows(wanted)


def test_chained_queries_with_different_keys_are_stages(spark):
    text = S + (
        "from S#window.time(2 sec) select k, v, sum(v) as n group by k insert into M; "
        "from M#window.time(2 sec) select v, count() as c group by v insert into O;"
    )
    events = build_events(7)
    out = ew.app(text, S=build_frame(spark, events), time="ts", shards=2)
    assert "query2: 2 shards by v of M" in out.explain()
    assert count_rows(out["O"].collect()) + count_rows(out["M"].collect()) == expect(text, events)


def test_close_moves_time_on_until_everything_is_closed(spark):
    text = S + "from every a=S -> not S[k == a.k] for 1 min select a.k as k insert into O;"
    frame = build_frame(spark, build_events(7))
    assert ew.query(text, S=frame, time="ts").count() == 0
    assert sorted(r.k for r in ew.query(text, S=frame, time="ts", close=True).collect()) == [
        "a",
        "b",
        "c",
    ]


def test_a_stream_goes_on_from_history_and_counts_in_its_progress(rocksdb, tmp_path):  # noqa: F811
    events = build_events("pattern")
    before, after = events[:40], events[40:]
    history = build_frame(rocksdb, before)
    held = ew.state(APPS["pattern"], S=history, time="ts", shards=2)
    live = ew.query(
        APPS["pattern"],
        S=stream_files(rocksdb, tmp_path / "in", after, 1),
        time="ts",
        shards=2,
        initial=held,
    )
    rows, running = run_stream(rocksdb, live, tmp_path)
    assert count_rows(rows) == expect(APPS["pattern"], events) - expect(APPS["pattern"], before)
    counted = running.lastProgress.observedMetrics["edgewise query1"]
    assert (counted["faults"], counted["late"], counted["waiting"]) == (0, 0, 0)


@pytest.mark.slow
def test_a_stream_joins_a_static_frame(rocksdb, tmp_path):  # noqa: F811
    prices = rocksdb.createDataFrame([("a", 10), ("b", 20), ("z", 1)], "k string, w int")
    events = build_events(7)
    stream = stream_files(rocksdb, tmp_path / "in", events, 3)
    rows, _ = run_stream(
        rocksdb, ew.query(JOIN, S=stream, P=prices, time="ts", shards=2), tmp_path
    )
    assert len(rows) == sum(e.data[0] in "ab" for e in events)


def test_what_does_not_fit_together_is_refused_at_the_call(spark, tmp_path):
    events = build_events(5, 4)
    frame = build_frame(spark, events)
    stream = stream_files(spark, tmp_path / "in", events, 1)
    two = "define stream T (k string); from every a=S -> b=T select a.k as k insert into O;"
    with pytest.raises(SetupError, match="streams, or none"):
        ew.query(S + two, S=frame, T=stream, time="ts")
    with pytest.raises(SetupError, match="close=True is for batches"):
        ew.query(APPS["filter"], S=stream, time="ts", close=True)
    with pytest.raises(SetupError, match="P is a table and its frame is a stream"):
        ew.query(JOIN, S=frame, P=stream, time="ts")
    with pytest.raises(SetupError, match="RocksDB"):
        ew.query(APPS["pattern"], S=stream, time="ts")
    with pytest.raises(SetupError, match="history"):
        ew.state(APPS["pattern"], S=stream, time="ts")
    trigger = "define trigger T at every 1 sec; from T select triggered_time as t insert into O;"
    with pytest.raises(SetupError, match="add a query on an input"):
        ew.query(S + trigger, S=frame, time="ts")
