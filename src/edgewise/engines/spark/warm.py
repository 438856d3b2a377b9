"""First batches are several times slower than warm ones: make them before anybody waits.

The app runs over a log of its own shape with a few empty events, in a directory that is gone
afterwards. Plans are compiled, Python workers are up, and the JVM has seen the code.
"""

from __future__ import annotations

import dataclasses
import tempfile
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from edgewise.engines.spark.engine import SparkApp, SparkConfig
from edgewise.event.arrow import record_batch
from edgewise.log.segment import SegmentWriter
from edgewise.plan.nodes import App, Stream

BATCHES = 4


def warm_up(spark: SparkSession, app: App, config: SparkConfig, scratch: Path) -> None:
    scratch.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=scratch) as directory:
        root = Path(directory)
        for stream in app.inputs:
            writer = SegmentWriter.open(root / stream.name, stream.schema)
            writer.append(_empty(writer.schema, stream))
            writer.close()
        writers = {s.name: SegmentWriter.open(root / s.name, s.schema) for s in app.outputs}
        job = SparkApp(
            spark,
            app,
            logs={s.name: root / s.name for s in app.inputs},
            writers=writers,
            checkpoint=root / "checkpoint",
            config=dataclasses.replace(config, rows_max=1, trigger_ms=0, state=""),
        )
        job.stream(available_now=True).awaitTermination()
        job.close()
        for writer in writers.values():
            writer.close()


def _empty(schema: Any, stream: Stream) -> Any:
    """Events without values: every kernel takes them, no filter depends on them."""
    moments = list(range(BATCHES))
    columns: list[list[Any]] = [[None] * BATCHES for _ in stream.schema.attributes]
    return record_batch(schema, moments, moments, [0] * BATCHES, columns)
