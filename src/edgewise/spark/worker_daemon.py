"""Start Spark's Python workers with everything loaded: Spark's own daemon, after our imports.

Spark forks a worker for each source, plan and task. Loading Arrow, pandas and this package takes a
worker a second; loaded once, before the forks, it takes none. Forking after imports is safe here:
the only threads that exist then are the allocator's, which handle it, and the linear algebra
library is kept from starting any. Spark starts it by name (`session`).
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
    "edgewise.spark.source",
    "edgewise.spark.tasks",
)


def main() -> None:
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    for name in PRELOADED:
        importlib.import_module(name)
    gc.freeze()  # else each worker would search all of this for garbage after each task
    importlib.import_module("pyspark.daemon").manager()


if __name__ == "__main__":
    main()
