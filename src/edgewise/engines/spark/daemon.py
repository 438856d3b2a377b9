"""Python workers that start at once: Spark's own daemon, with what every worker needs loaded.

A worker is forked for each source, plan and task. Loading Arrow, pandas and this package takes it
a second; done once, before the forks, it takes none. The libraries' threads that exist by then
(the allocator's) know how to be forked; those of the linear algebra library are not started.
"""

from __future__ import annotations

import gc
import importlib
import os

PRELOADED = (
    "pyarrow.compute",
    "pyspark.worker",
    "pyspark.sql.worker.create_data_source",
    "pyspark.sql.worker.plan_data_source_read",
    "pyspark.sql.streaming.python_streaming_source_runner",
    "edgewise.engines.spark.source",
    "edgewise.engines.spark.stages",
)


def main() -> None:
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    for name in PRELOADED:
        importlib.import_module(name)
    gc.freeze()  # a worker looks through all it has for garbage after each task
    importlib.import_module("pyspark.daemon").manager()


if __name__ == "__main__":
    main()
