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
