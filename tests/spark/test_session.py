import re
import subprocess
import sys

import pytest

pytestmark = pytest.mark.spark


def test_python_workers_are_this_interpreter_and_know_the_package(spark):
    def who(batches):
        import pyarrow as pa

        import edgewise

        for _ in batches:
            yield pa.RecordBatch.from_pydict({"exe": [sys.executable], "at": [edgewise.__file__]})

    import edgewise

    [found] = spark.range(1).mapInArrow(who, "exe string, at string").collect()
    assert (found.exe, found.at) == (sys.executable, edgewise.__file__)


def test_a_checkpoint_file_has_no_checksum_file(spark, tmp_path):
    query = (
        spark.readStream.format("rate-micro-batch")
        .option("rowsPerBatch", 1)
        .load()
        .writeStream.format("noop")
        .option("checkpointLocation", str(tmp_path))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    files = {path.name for path in tmp_path.rglob("*") if path.is_file()}
    assert files == {"metadata", "0"}


def test_a_setting_that_spark_refuses_is_one_sentence():
    """In a process of its own: a session that runs takes no such setting any more."""
    code = (
        "from edgewise.spark.session import start_session\n"
        "start_session('local[1]', settings={'spark.network.timeout': '1s'})"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    last = done.stderr.strip().splitlines()[-1]
    assert re.search(r"SetupError: Spark does not start on local\[1\]: .*timeout", last)
