"""The operator works through a Connect server: nothing private is behind it."""

import os
import subprocess
import sys

import pytest
from tests.test_tidy import ROOT

from edgewise.spark.operator.apply import PROVIDER, ROCKSDB

pytestmark = [pytest.mark.spark, pytest.mark.slow]

# A process of its own: one process has either a classic session or a Connect client.
SCRIPT = """
import sys
from pyspark.sql import SparkSession, functions as sf
from edgewise import spark as ew

directory, provider, store = sys.argv[1:]
builder = SparkSession.builder.remote("local[2]").config(provider, store)
spark = builder.config("spark.sql.shuffle.partitions", "2").getOrCreate()
text = (
    "define stream S (k string, v int); "
    "from every a=S[v > 5] -> b=S[k == a.k and v < a.v] within 3 sec "
    "select a.k as k, a.v as first, b.v as second insert into O;"
)
rows = [(1000 + i * 300, "ab"[i % 2], (i * 7) % 10) for i in range(40)]
frame = spark.createDataFrame(rows, "t long, k string, v int")
frame = frame.select(sf.timestamp_millis("t").alias("ts"), "k", "v")
batch = sorted(map(tuple, ew.query(text, S=frame, time="ts", shards=2).collect()))
frame.coalesce(1).write.parquet(directory + "/in")
stream = spark.readStream.schema(frame.schema).parquet(directory + "/in")
live = ew.query(text, S=stream, time="ts", shards=2).writeStream.format("parquet")
live = live.option("checkpointLocation", directory + "/checkpoint").trigger(availableNow=True)
live.start(directory + "/out").awaitTermination()
found = sorted(map(tuple, spark.read.parquet(directory + "/out").collect()))
assert found == batch and batch, (found, batch)
print(type(spark).__module__, len(found))
spark.stop()
"""


def test_batch_and_stream_give_the_same_rows_through_connect(tmp_path):
    pytest.importorskip("grpc", reason="pip install 'pyspark[connect]'")
    environment = os.environ | {
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": str(ROOT / "src"),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path), PROVIDER, ROCKSDB],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.split() == ["pyspark.sql.connect.session", "15"]
