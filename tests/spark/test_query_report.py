"""What Spark shows of an app: its name, its queries, and how many rows a batch had."""

import pytest

from edgewise.event.event import Event
from edgewise.lang import compile_app
from edgewise.log.segment_writer import SegmentWriter
from edgewise.node.commands.replay import load_logs
from edgewise.node.data_dir import DataDirectory
from edgewise.plan.fragments import Fragment
from edgewise.spark.choose import Shuffle, SparkConfig
from edgewise.spark.execution import SparkEngine
from edgewise.spark.query_report import describe_job

APP = """
@app:name('shop')
define stream S (k string, v int);
@info(name='totals') from S select k, sum(v) as n group by k insert into O;
@info(name='spans') from S#window.length(2) select count() as n insert into P;
"""
ROWS = 30


def test_a_job_is_described_by_the_queries_it_runs():
    fragment = Fragment("f", ("a", "b", "c", "d", "e"))
    assert describe_job("shop", fragment, Shuffle(4)) == (
        "shop: a, b, c and 2 more (shuffle, 4 tasks)"
    )


@pytest.mark.spark
@pytest.mark.parametrize(("small", "partitions"), [(1000, 2), (0, 2), (0, 9)])
def test_spark_tells_the_rows_of_a_batch_however_it_ran(spark, tmp_path, small, partitions):
    """In the driver, by tasks that read the log, and by several shuffles of one frame."""
    app, directory = compile_app(APP).app, DataDirectory(tmp_path)
    load_logs(app, [Event("S", n, (f"k{n % 3}", n)) for n in range(ROWS)], directory)
    writers = {
        s.name: SegmentWriter.open(directory.log_directory(s.name), s.schema) for s in app.outputs
    }
    engine = SparkEngine.open(
        spark,
        app,
        logs={"S": directory.log_directory("S")},
        writers=writers,
        checkpoint=directory.checkpoint("shop"),
        config=SparkConfig(partitions=partitions, small_batch_rows=small),
    )
    query = engine.start_stream(available_now=True)
    query.awaitTermination()
    engine.close()
    for writer in writers.values():
        writer.close()
    assert query.name == "shop"
    assert [p.numInputRows for p in query.recentProgress if p.numInputRows] == [ROWS]
