"""Warm Spark up before anybody waits: first batches are several times slower than later ones.

The app runs over logs of its own streams with a few empty events, in a directory that is removed
afterwards. Then plans are compiled, Python workers are running, and the JVM has compiled the code.
It costs seconds at the start of a new app; after a restart waiting events do the same. Used by the
node.
"""

from __future__ import annotations

import dataclasses
import tempfile
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from edgewise.event.arrow import record_batch
from edgewise.log.segment_writer import SegmentWriter
from edgewise.plan.nodes import App, Stream
from edgewise.spark.choose import SparkConfig
from edgewise.spark.execution import SparkEngine

BATCHES = 4  # of one event each; later ones get hardly faster


def warm_up(spark: SparkSession, app: App, config: SparkConfig, scratch: Path) -> None:
    """Run the app over BATCHES empty events; `scratch` is where its directory is made."""
    scratch.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=scratch) as directory:
        root = Path(directory)
        for stream in app.inputs:
            writer = SegmentWriter.open(root / stream.name, stream.schema)
            writer.append(_build_empty_events(writer.schema, stream))
            writer.close()
        writers = {s.name: SegmentWriter.open(root / s.name, s.schema) for s in app.outputs}
        engine = SparkEngine.open(
            spark,
            app,
            logs={s.name: root / s.name for s in app.inputs},
            writers=writers,
            checkpoint=root / "checkpoint",
            config=dataclasses.replace(config, rows_max=1, trigger_ms=0, state=""),
        )
        engine.start_stream(available_now=True).awaitTermination()
        engine.close()
        for writer in writers.values():
            writer.close()


def _build_empty_events(schema: Any, stream: Stream) -> Any:
    """Events without values: every kernel takes them, no filter depends on them."""
    times = list(range(BATCHES))
    columns: list[list[Any]] = [[None] * BATCHES for _ in stream.schema.attributes]
    return record_batch(schema, times, times, [0] * BATCHES, columns)
