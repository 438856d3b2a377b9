"""A stream's state is Spark's: it survives a restart, and late rows are told."""

import pytest
from pyspark.sql import functions as sf
from tests.spark.operator.test_api import rocksdb  # noqa: F401  a fixture

from edgewise import spark as ew

pytestmark = [pytest.mark.spark, pytest.mark.slow]

TEXT = "define stream S (k string, v int); from S select k, sum(v) as n group by k insert into O;"


def run(spark, tmp_path, rows, lateness="0 seconds"):
    """One start of the query per call, over what is new."""
    frame = spark.createDataFrame(rows, "t long, k string, v int")
    frame = frame.select(sf.timestamp_millis("t").alias("ts"), "k", "v")
    frame.coalesce(1).write.mode("append").parquet(str(tmp_path / "in"))
    stream = spark.readStream.schema(frame.schema).parquet(str(tmp_path / "in"))
    out = ew.app(TEXT, S=stream, time="ts", lateness=lateness, shards=2)
    running = (
        out.tagged.writeStream.format("parquet")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start(str(tmp_path / "out"))
    )
    running.awaitTermination()
    found = spark.read.parquet(str(tmp_path / "out")).collect()
    return sorted((r.stream, r.row) for r in found)


def test_state_and_waiting_rows_survive_a_restart(rocksdb, tmp_path):  # noqa: F811
    assert run(rocksdb, tmp_path, [(1000, "a", 1), (9000, "b", 5)], "2 seconds") == [
        ("O", '{"k":"a","n":1}')
    ]
    found = run(rocksdb, tmp_path, [(8500, "a", 2), (20000, "c", 7)], "2 seconds")
    assert found == [
        ("O", '{"k":"a","n":1}'),
        ("O", '{"k":"a","n":3}'),
        ("O", '{"k":"b","n":5}'),
    ]
    late = run(rocksdb, tmp_path, [(3000, "a", 100)], "2 seconds")
    assert [row for row in late if row not in found] == [
        ("$late", '{"stream":"S","ts":3000,"event":"{\\"k\\":\\"a\\",\\"v\\":100}"}')
    ]
