"""Read the input logs of a micro-batch: as a frame for Spark's tasks, as a table for the driver.

What several fragments need of a batch is read once. Used by `execution`.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from edgewise.engines.batch.inputs import InputLogs
from edgewise.engines.batch.job import BatchRange
from edgewise.engines.batch.outputs import FAULTS
from edgewise.log.api import EncodedBatchWriter, LogWriter
from edgewise.spark import tasks
from edgewise.spark.app_plan import SparkPlan
from edgewise.spark.task_results import EncodingTarget

SOURCE = "edgewise"  # the name of the logs as a data source of Spark


@dataclass
class MicroBatch:
    """One micro-batch while it runs."""

    range: BatchRange
    read_frame: Callable[[], DataFrame]
    inputs: InputLogs

    @functools.cached_property
    def table(self) -> Any:
        """All events, in the driver."""
        return self.inputs.read_table(self.range.start, self.range.end, self.range.clock_start)

    @functools.cached_property
    def frame(self) -> DataFrame:
        """All rows, on Spark."""
        frame = self.read_frame()
        return tasks.merge_inputs(frame, self.range) if len(self.range.start) > 1 else frame


def read_stream(
    spark: SparkSession,
    logs: Mapping[str, str],
    rows_max: int,
    first: Mapping[str, Any] | None,
    end: Mapping[str, int] | None,
) -> DataFrame:
    """The logs as a stream, from `first` (offsets and clock) on, to `end` if there is one."""
    reader = spark.readStream.format(SOURCE).option("logs", json.dumps(dict(logs)))
    reader = reader.option("max_rows", str(rows_max))
    if first is not None:
        reader = reader.option("from", json.dumps(dict(first)))
    if end is not None:
        reader = reader.option("to", json.dumps(dict(end)))
    return reader.load()


def read_range(spark: SparkSession, logs: Mapping[str, str], batch: BatchRange) -> DataFrame:
    """What lies between two offsets of each log."""
    reader = spark.read.format(SOURCE).option("logs", json.dumps(dict(logs)))
    reader = reader.option("start", json.dumps(dict(batch.start)))
    return reader.option("end", json.dumps(dict(batch.end))).load()


def find_targets(
    plan: SparkPlan, logs: Mapping[str, str], writers: Mapping[str, LogWriter]
) -> dict[str, EncodingTarget]:
    """Output logs whose rows nobody reads in the driver, so that tasks may encode them."""
    read = {*logs, *plan.between, FAULTS.name}
    return {
        stream: EncodingTarget(writer.schema, writer.rows_max)
        for stream, writer in writers.items()
        if isinstance(writer, EncodedBatchWriter) and stream not in read
    }
