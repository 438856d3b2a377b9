import sys

import pytest

from edgewise.engines.spark import session


@pytest.mark.spark
def test_python_workers_are_this_interpreter(tmp_path):
    spark = session.start("local[1]", scratch=tmp_path)
    try:
        found = spark.range(1).mapInArrow(_who, "exe string").collect()
    finally:
        spark.stop()
    assert found[0].exe == sys.executable


def _who(batches):
    import pyarrow as pa

    for _ in batches:
        yield pa.RecordBatch.from_pydict({"exe": [sys.executable]})
