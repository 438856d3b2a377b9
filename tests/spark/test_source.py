"""The log through Spark's own doors: read, readStream, write, writeStream."""

import json

import pytest
from pyspark.errors import PySparkException
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from edgewise.engines.batch.inputs import InputLogs
from edgewise.event import arrow
from edgewise.event.schema import Schema
from edgewise.log.segment_reader import SegmentReader
from edgewise.log.segment_writer import SegmentWriter
from edgewise.spark.source import PARTITION_ROWS_MIN, LogStreamReader, _divide

SCHEMA = Schema.of("S", k="string", v="int")


def fill(path, times, *, schema=SCHEMA, batch=3):
    writer = SegmentWriter.open(path, schema)
    for at in range(0, len(times), batch):
        part = times[at : at + batch]
        columns = [[f"k{t % 3}" for t in part], list(part)][: len(schema.attributes)]
        rows = arrow.record_batch(writer.schema, part, part, [0] * len(part), columns)
        writer.append(rows)
    writer.close()
    return path


@pytest.mark.spark
def test_a_log_is_a_table_with_its_offsets_and_clock(spark, tmp_path):
    log = fill(tmp_path / "S", [5, 3, 9, 8, 12])
    rows = spark.read.format("edgewise").option("path", str(log)).load().orderBy("_offset")
    found = [(r._offset, r._ts, r._clock, r.k, r.v) for r in rows.collect()]
    assert found == [
        (0, 5, 5, "k2", 5),
        (1, 3, 5, "k0", 3),
        (2, 9, 9, "k0", 9),
        (3, 8, 9, "k2", 8),
        (4, 12, 12, "k0", 12),
    ]


@pytest.mark.spark
def test_a_stream_takes_at_most_max_rows_and_loses_nothing(spark, tmp_path):
    log = fill(tmp_path / "S", list(range(100)))
    seen = []
    query = (
        spark.readStream.format("edgewise")
        .option("path", str(log))
        .option("max_rows", "30")
        .load()
        .writeStream.foreachBatch(lambda df, _: seen.append([r.v for r in df.collect()]))
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    assert [len(batch) for batch in seen] == [30, 30, 30, 10]
    assert sorted(v for batch in seen for v in batch) == list(range(100))


@pytest.mark.spark
def test_a_table_is_appended_to_a_log_once_however_often_it_is_written(spark, tmp_path):
    log = fill(tmp_path / "S", [1])
    table = spark.createDataFrame([(7, "a", 1), (8, "b", 2)], "_ts long, k string, v int")
    for _ in range(2):
        writer = table.coalesce(1).write.format("edgewise").option("path", str(log))
        writer.option("producer", "me").option("sequence", "0").mode("append").save()
    reader = SegmentReader.open(log)
    values = [
        v for b in reader.read(0, reader.head().offset) for v in b.rows.column("v").to_pylist()
    ]
    reader.close()
    assert values == [1, 1, 2]


@pytest.mark.spark
def test_a_stream_is_written_with_its_batch_id(spark, tmp_path):
    source = fill(tmp_path / "S", list(range(10)))
    target = fill(tmp_path / "T", [0], schema=SCHEMA)

    def copy():
        query = (
            spark.readStream.format("edgewise")
            .option("path", str(source))
            .option("max_rows", "4")
            .load()
            .select("_ts", "k", "v")
            .writeStream.format("edgewise")
            .option("path", str(target))
            .option("producer", "copy")
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()

    copy()
    copy()
    reader = SegmentReader.open(target)
    assert reader.head().offset == 11
    reader.close()


@pytest.mark.spark
def test_a_missing_option_is_named(spark):
    with pytest.raises(PySparkException, match=r"needs \.option"):
        spark.read.format("edgewise").load()


def stream_reader(paths, rows):
    return LogStreamReader({"logs": json.dumps(paths), "max_rows": str(rows)})


def test_several_streams_end_at_one_capture_time(tmp_path):
    a = fill(tmp_path / "A", [0, 10, 20, 30, 40, 50])
    b = fill(tmp_path / "B", [5, 6, 7, 8, 45])
    reader = stream_reader({"A": str(a), "B": str(b)}, 4)
    offset = reader.initialOffset()
    cuts = []
    while True:
        following = reader.latestOffset(offset, reader.getDefaultReadLimit())
        if following == offset:
            break
        cuts.append(following)
        offset = following
    reader.stop()
    assert cuts[-1]["offsets"] == {"A": 6, "B": 5}
    clocks = {"A": [0, 10, 20, 30, 40, 50], "B": [5, 6, 7, 8, 45]}
    for cut in cuts:
        done = [clocks[s][i] for s, end in cut["offsets"].items() for i in range(end)]
        left = [t for s, end in cut["offsets"].items() for t in clocks[s][end:]]
        assert not left or max(done) < min(left)
        assert cut["clock"] == max(done)


def test_a_request_for_everything_ignores_the_limit(tmp_path):
    reader = stream_reader({"A": str(fill(tmp_path / "A", list(range(9))))}, 2)
    start = reader.initialOffset()
    assert reader.latestOffset(start, ReadAllAvailable())["offsets"] == {"A": 9}
    assert reader.latestOffset(start, ReadMaxRows(2))["offsets"] == {"A": 2}
    reader.stop()


def test_slices_cover_all_rows_once_and_are_large_enough():
    size = PARTITION_ROWS_MIN
    assert [(s.start, s.end) for s in _divide({"A": 3, "B": 0}, {"A": 9, "B": 0}, 8)] == [(3, 9)]
    slices = _divide({"A": 3, "B": 0}, {"A": 3 + 3 * size, "B": 0}, 2)
    assert [(s.start, s.end) for s in slices] == [
        (3, 3 + 3 * size // 2),
        (3 + 3 * size // 2, 3 + 3 * size),
    ]


def test_merged_inputs_have_null_for_attributes_of_other_streams(tmp_path):
    paths = {"A": str(fill(tmp_path / "A", [1])), "B": str(fill(tmp_path / "B", [2]))}
    inputs = InputLogs(paths)
    [batch] = inputs.read_batches("B", 0, 1)
    inputs.close()
    [row] = batch.to_pylist()
    assert (row["_stream"], row["s0_v"], row["s1_v"]) == (1, None, 2)
