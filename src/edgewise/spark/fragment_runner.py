"""Run a fragment over a micro-batch in the way that `choose` names: here, or as tasks of Spark.

What about a fragment was found once is kept here, with what a batch taught about it: times that
did not ascend are not divided again. Used by `execution`.
"""

from __future__ import annotations

import dataclasses
import logging
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from edgewise.engines.batch.job import Job
from edgewise.engines.batch.live_kernels import LiveKernels
from edgewise.engines.batch.outputs import FragmentOutput, merge_outputs
from edgewise.engines.batch.run import run_key_partition
from edgewise.engines.batch.select_rows import convert_stage_output, split_rows
from edgewise.plan.fragments import Fragment
from edgewise.spark import tasks
from edgewise.spark.app_plan import SparkPlan
from edgewise.spark.choose import (
    BatchTraits,
    InDriver,
    LogScan,
    Native,
    Shuffle,
    SparkConfig,
    StageScan,
    TimeSlices,
    choose,
)
from edgewise.spark.micro_batch import MicroBatch
from edgewise.spark.query_report import QueryReport
from edgewise.spark.tasks import TaskFiles
from edgewise.spark.time_slices import is_refused

logger = logging.getLogger(__name__)


class FragmentRunner:
    """The fragments of one app on one Spark session."""

    def __init__(
        self,
        spark: SparkSession,
        plan: SparkPlan,
        config: SparkConfig,
        files: TaskFiles,
        report: QueryReport,
    ) -> None:
        self.spark = spark
        self.plan = plan
        self.config = config
        self.files = files
        self._report = report
        self._in_files = all("://" not in location for location in files.logs.values())
        self._traits = dict(plan.traits)

    def find_driver_fragments(self, batch: MicroBatch) -> list[Fragment]:
        """Fragments that read the logs and will run in the driver."""
        traits = BatchTraits(batch.range.rows, self._in_files, from_stage=False)
        return [
            f
            for f in self.plan.fragments
            if isinstance(choose(self._traits[f.name], traits, self.config), InDriver)
        ]

    def run(
        self, job: Job, batch: MicroBatch, earlier: Any, kernels: LiveKernels | None
    ) -> FragmentOutput:
        """`earlier` has the rows of an earlier stage, None where the fragment reads the logs;
        `kernels` are those of the driver.
        """
        name, spark, files = job.fragment.name, self.spark, self.files
        rows = None if earlier is None else convert_stage_output(earlier, job)
        count = batch.range.rows if rows is None else rows.num_rows
        traits = BatchTraits(count, self._in_files, from_stage=rows is not None)
        execution = choose(self._traits[name], traits, self.config)
        if not isinstance(execution, InDriver):
            self._report.name_jobs(job.fragment, execution)
        match execution:
            case InDriver(partitions):
                table = batch.table if rows is None else rows
                parts = enumerate(split_rows(table, job, partitions))
                return merge_outputs(
                    run_key_partition(job, index, share, kernels) for index, share in parts
                )
            case TimeSlices(count):
                output = tasks.run_time_slices(spark, files, batch.range, job, count)
                if not is_refused(output):
                    return output
                logger.info("%s continues by one task: times do not ascend", name)
                self._traits[name] = dataclasses.replace(self._traits[name], sliceable=False)
                return self.run(job, batch, earlier, kernels)
            case LogScan(count):
                return tasks.run_log_scan(spark, files, batch.range, job, count)
            case StageScan(partitions):
                return tasks.run_stage_scan(spark, files, rows, job, partitions)
            case Native(projections):
                return tasks.run_native(self._get_frame(batch, rows), job, projections)
            case Shuffle(partitions):
                return tasks.run_shuffle(self._get_frame(batch, rows), job, partitions)

    def _get_frame(self, batch: MicroBatch, rows: Any) -> DataFrame:
        return batch.frame if rows is None else self.spark.createDataFrame(rows)
