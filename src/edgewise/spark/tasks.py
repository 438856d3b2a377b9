"""Run one fragment over one batch as a Spark job, in one of the ways that `choose` names.

- `run_log_scan`, `run_time_slices`, `run_stage_scan`: every task reads Arrow from files itself and
  feeds its own rows to its kernel. Only results enter the JVM and leave it.
- `run_shuffle`: Spark reads the batch once, filters it natively and shuffles it by key.
- `run_native`: a fragment without state in Spark's own expressions; the only way for functions
  that only Spark has.

All give the same rows (`tests/spark/test_tasks.py`). Used by `execution`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as sf
from pyspark.sql.pandas.types import from_arrow_schema

from edgewise.engines.batch.columns import CLOCK, MERGE_ORDER, OFFSET, ORDER, PHASE, SEQ, STREAM
from edgewise.engines.batch.inputs import InputLogs
from edgewise.engines.batch.job import BatchRange, Job
from edgewise.engines.batch.outputs import ORDERED_FIELDS, FragmentOutput
from edgewise.engines.batch.partitioner import NULL, SEPARATOR
from edgewise.engines.batch.run import run_key_partition
from edgewise.engines.batch.select_rows import SYSTEM, divide_range, select_rows
from edgewise.event.arrow import ARROW_TYPES, AT, KIND, TS
from edgewise.event.event import EventKind
from edgewise.plan.fragments import Fragment
from edgewise.plan.nodes import Stream
from edgewise.plan.rules.native_spark import Projection
from edgewise.spark import native
from edgewise.spark.arrow_project import compile_projections, run_projections
from edgewise.spark.task_results import (
    EncodingTarget,
    TaskResult,
    decode_results,
    encode_output,
)
from edgewise.spark.time_slices import run_time_slice

KEY_PARTITION, TARGET = "_key_partition", "_target"
_BINARY = ("frames", "data")
_RESULT_SCHEMA = pa.schema(
    [pa.field(n, pa.binary() if n in _BINARY else pa.string()) for n in TaskResult._fields]
)


@dataclass(frozen=True, slots=True)
class TaskFiles:
    """Files that tasks share with the driver: input logs to read, `staging` for large results,
    and the logs for which tasks encode their rows.
    """

    logs: Mapping[str, str]
    staging: Path
    targets: Mapping[str, EncodingTarget] = field(default_factory=dict)

    def clear_staging(self) -> None:
        """Remove what tasks of an engine that was killed have left."""
        self.staging.mkdir(parents=True, exist_ok=True)
        for leftover in self.staging.iterdir():
            leftover.unlink()


def run_log_scan(
    spark: SparkSession, files: TaskFiles, batch: BatchRange, job: Job, tasks: int
) -> FragmentOutput:
    """A task is one key partition; of a fragment without state, one range of offsets."""
    projections = compile_projections(job)

    def run_task(task: int) -> FragmentOutput:
        with closing(InputLogs(files.logs)) as inputs:
            if not job.fragment.stateless:
                table = inputs.read_table(batch.start, batch.end, batch.clock_start)
                return run_key_partition(job, task, select_rows(table, job, tasks, task))
            start, end = divide_range(inputs, batch, tasks, task)
            if projections:
                return run_projections(inputs, start, end, projections)
            clock = max(batch.clock_start, inputs.clock_at(start))
            table = inputs.read_table(start, end, clock)
            return run_key_partition(job, task, select_rows(table, job))

    in_order = tasks == 1 or job.fragment.stateless
    return _run_tasks(spark, files, job, tasks, run_task, in_order=in_order)


def run_time_slices(
    spark: SparkSession, files: TaskFiles, batch: BatchRange, job: Job, tasks: int
) -> FragmentOutput:
    """A task is one slice of event time; the output may be a refusal (`time_slices`)."""

    def run_task(task: int) -> FragmentOutput:
        with closing(InputLogs(files.logs)) as inputs:
            return run_time_slice(inputs, batch, job, tasks, task)

    return _run_tasks(spark, files, job, tasks, run_task, in_order=True)


def run_stage_scan(
    spark: SparkSession, files: TaskFiles, rows: Any, job: Job, partitions: int
) -> FragmentOutput:
    """As a log scan, over the rows of an earlier stage, which are written to a file first."""
    path = files.staging / f"{job.version}-{job.fragment.inputs[0]}"
    with pa.OSFile(str(path), "wb") as target, pa.ipc.new_file(target, rows.schema) as writer:
        writer.write_table(rows)

    def run_task(task: int) -> FragmentOutput:
        table = pa.ipc.open_file(pa.memory_map(str(path))).read_all()
        return run_key_partition(job, task, select_rows(table, job, partitions, task))

    try:
        return _run_tasks(spark, files, job, partitions, run_task, in_order=partitions == 1)
    finally:
        path.unlink()


def _run_tasks(
    spark: SparkSession,
    files: TaskFiles,
    job: Job,
    tasks: int,
    run_task: Callable[[int], FragmentOutput],
    *,
    in_order: bool,
) -> FragmentOutput:
    """`in_order`: the rows of a task do not interleave with those of another.

    By an RDD, not a DataFrame: to plan a DataFrame takes Spark longer than such tasks run.
    """

    def run_partition(task: int, numbers: Iterable[int]) -> Iterator[TaskResult]:
        deque(numbers, 0)  # Spark does not reuse a worker that left input unread
        output = run_task(task)
        file = f"{files.staging}/{job.version}-{_get_attempt()}"
        if in_order:
            return encode_output(output.sort_and_strip(job.streams), file, files.targets)
        return encode_output(output, file)

    numbers = spark.sparkContext.parallelize(range(tasks), tasks)
    return decode_results(numbers.mapPartitionsWithIndex(run_partition).collect())


def merge_inputs(frame: DataFrame, batch: BatchRange) -> DataFrame:
    """Several inputs in order of capture, numbered and clocked as one (`InputLogs.read_table`)."""
    order = Window.orderBy(*MERGE_ORDER)
    so_far = order.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    clock = sf.greatest(sf.max(TS).over(so_far), sf.lit(batch.clock_start))
    number = sf.row_number().over(order) + sf.lit(sum(batch.start.values()) - 1)
    return frame.withColumns({CLOCK: clock, OFFSET: number.cast("long")})


def run_shuffle(frame: DataFrame, job: Job, partitions: int) -> FragmentOutput:
    """A task is one key partition, its rows sorted by offset."""
    fragment = job.fragment
    key_partition = build_key_partition_column(fragment, job.streams, partitions)
    rows = _filter_rows(frame, job).withColumn(KEY_PARTITION, key_partition)
    if not fragment.stateless:
        rows = rows.repartitionById(partitions, KEY_PARTITION)
        rows = rows.sortWithinPartitions(KEY_PARTITION, OFFSET)

    def run_partition(batches: Iterator[Any]) -> Iterator[Any]:
        output = run_key_partition(job, _get_task_context().partitionId(), batches)
        for result in encode_output(output):
            yield pa.RecordBatch.from_pylist([result._asdict()], schema=_RESULT_SCHEMA)

    results = rows.mapInArrow(run_partition, from_arrow_schema(_RESULT_SCHEMA)).toArrow()
    return decode_results(TaskResult(**row) for row in results.to_pylist())


def _get_task_context() -> Any:
    from pyspark import TaskContext

    return TaskContext.get()


def _get_attempt() -> int:
    """A number that no other attempt at a task has."""
    return int(_get_task_context().taskAttemptId())


def run_native(frame: DataFrame, job: Job, projections: Sequence[Projection]) -> FragmentOutput:
    """All queries of a fragment without state as one union of Spark's own projections."""
    streams = {s.name: s for s in job.outputs}
    targets = list(dict.fromkeys(p.target for p in projections))
    fields = [*ORDERED_FIELDS, pa.field(TARGET, pa.int32())]
    fields += [
        pa.field(f"o{i}_{a.name}", ARROW_TYPES[a.type])
        for i, target in enumerate(targets)
        for a in streams[target].schema.attributes
    ]
    schema = from_arrow_schema(pa.schema(fields))
    events = frame.where(sf.col(KIND) != int(EventKind.TICK))
    frames = []
    for seq, projection in enumerate(projections):
        target = targets.index(projection.target)
        columns = {name: sf.col(name) for name in (CLOCK, OFFSET, TS, AT)}
        columns |= {
            TARGET: sf.lit(target),
            PHASE: sf.lit(1),
            SEQ: sf.lit(seq),
            KIND: sf.lit(int(EventKind.CURRENT)),
        }
        index = job.streams.index(projection.source)
        condition, values = native.build_projection(job.app, projection, f"s{index}_")
        columns |= {f"o{target}_{name}": column for name, column in values.items()}
        selected = [
            columns.get(f.name, sf.lit(None)).cast(f.dataType).alias(f.name) for f in schema
        ]
        frames.append(events.where((sf.col(STREAM) == index) & condition).select(*selected))
    table = reduce(DataFrame.unionAll, frames).toArrow()
    return FragmentOutput(
        {t: [_select_target(table, i, streams[t])] for i, t in enumerate(targets)}
    )


def _select_target(table: Any, index: int, stream: Stream) -> Any:
    """The rows of one output stream, with their order columns."""
    own = table.filter(pc.equal(table.column(TARGET), pa.scalar(index)))
    names = stream.schema.names
    system = [*ORDER, TS, AT, KIND]
    return own.select([*system, *(f"o{index}_{n}" for n in names)]).rename_columns(
        [*system, *names]
    )


def _filter_rows(frame: DataFrame, job: Job) -> DataFrame:
    """The rows of the fragment's inputs that some query may use, and the columns it reads."""
    chosen = sf.lit(False)
    columns = list(SYSTEM)
    for stream in job.fragment.inputs:
        index = job.streams.index(stream)
        own = sf.col(STREAM) == index
        # Where lateness is declared every event moves time and may be counted as late.
        ordered = job.app.stream(stream).lateness_ms is not None
        condition = (
            None
            if ordered
            else native.build_condition(job.app, job.fragment, stream, f"s{index}_")
        )
        chosen |= own if condition is None else own & condition
        names = job.reads.get(stream, job.app.stream(stream).schema.names)
        columns += [f"s{index}_{name}" for name in names]
    is_event = sf.col(KIND) != int(EventKind.TICK)
    return frame.where(is_event & chosen).select(*(sf.col(f"`{name}`") for name in columns))


def build_key_partition_column(fragment: Fragment, streams: Sequence[str], partitions: int) -> Any:
    """`partitioner.assign_key` in Spark's expressions."""
    found = sf.lit(0)
    for stream, key in fragment.keys:
        index = streams.index(stream)
        texts = [
            sf.coalesce(sf.col(f"`s{index}_{name}`").cast("string"), sf.lit(NULL)) for name in key
        ]
        hashed = sf.crc32(sf.concat_ws(SEPARATOR, *texts).cast("binary"))
        own = sf.pmod(hashed, sf.lit(partitions)).cast("int")
        found = sf.when(sf.col(STREAM) == index, own).otherwise(found)
    return found
