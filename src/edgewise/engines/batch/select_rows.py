"""Select the rows of a batch that one key partition of a fragment is fed, in whole Arrow tables.

Rows that no query can use are dropped first (`plan.rules.native_spark`). The others are split by
the hash of their key or, for a fragment without state, into equal ranges of offsets.

Used by both engines; Spark's tasks select from a batch that each of them reads itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from edgewise.engines.batch.arrow_exprs import filter_table, translate_condition
from edgewise.engines.batch.columns import CLOCK, OFFSET, ORDER, STREAM
from edgewise.engines.batch.inputs import InputLogs, Offsets
from edgewise.engines.batch.job import BatchRange, Job
from edgewise.engines.batch.partitioner import assign_rows
from edgewise.engines.batch.run import RUN_ROWS
from edgewise.event.arrow import AT, KIND, TS
from edgewise.event.event import EventKind
from edgewise.plan.rules.native_spark import build_prefilter

FILTER_ROWS_MIN = 4096  # with fewer, the Arrow filter takes longer than the kernel that drops them
SYSTEM = (TS, AT, KIND, OFFSET, CLOCK, STREAM)


def filter_rows(table: Any, job: Job) -> Any:
    """The rows of the fragment's inputs that some query may use, and the columns it reads."""
    streams = [job.streams.index(stream) for stream in job.fragment.inputs]
    columns = list(SYSTEM)
    for index, stream in zip(streams, job.fragment.inputs, strict=True):
        names = job.reads.get(stream, job.app.stream(stream).schema.names)
        columns += [f"s{index}_{name}" for name in names]
    narrow = table.select(columns)
    conditions = _build_conditions(job) if table.num_rows >= FILTER_ROWS_MIN else {}
    logged, read = {s.name for s in job.app.inputs}, set(job.fragment.inputs)
    only_own = bool(read) and (read >= logged or not read & logged)
    if only_own and not any(c is not None for c in conditions.values()):
        return narrow
    chosen = pc.scalar(False)
    for index in streams:
        own, condition = pc.field(STREAM) == index, conditions.get(index)
        chosen |= own if condition is None else own & condition
    return filter_table(narrow, chosen)


def _build_conditions(job: Job) -> dict[int, Any]:
    """By number of stream, what an event must meet so that a query can use it; None: all may."""
    found = {}
    for stream in job.fragment.inputs:
        index = job.streams.index(stream)
        # Where lateness is declared every event moves time and may be counted as late.
        ordered = job.app.stream(stream).lateness_ms is not None
        condition = None if ordered else build_prefilter(job.app, job.fragment, stream)
        found[index] = None if condition is None else translate_condition(condition, f"s{index}_")
    return found


def select_rows(table: Any, job: Job, partitions: int = 1, key_partition: int = 0) -> list[Any]:
    """The rows of a table that one key partition is fed, as record batches."""
    rows = filter_rows(table, job)
    assigned = assign_key_partitions(rows, job, partitions) if partitions > 1 else None
    return _take_partition(rows, assigned, key_partition)


def split_rows(table: Any, job: Job, partitions: int) -> Iterator[list[Any]]:
    """The rows of each key partition in turn, as record batches."""
    rows = filter_rows(table, job)
    assigned = assign_key_partitions(rows, job, partitions) if partitions > 1 else None
    for key_partition in range(partitions):
        yield _take_partition(rows, assigned, key_partition)


def _take_partition(table: Any, assigned: Any, key_partition: int) -> list[Any]:
    if assigned is not None:
        table = table.filter(pc.equal(assigned, pa.scalar(key_partition, pa.int32())))
    runs = (table.slice(at, RUN_ROWS) for at in range(0, table.num_rows, RUN_ROWS))
    return [run.combine_chunks().to_batches()[0] for run in runs]


def assign_key_partitions(table: Any, job: Job, partitions: int) -> Any:
    """The key partition of every row of a keyed fragment's inputs."""
    found = None
    for stream, key in job.fragment.keys:
        index = job.streams.index(stream)
        own = assign_rows([table.column(f"s{index}_{name}") for name in key], partitions)
        is_own = pc.equal(table.column(STREAM), pa.scalar(index, pa.int32())).combine_chunks()
        found = own if found is None else pc.if_else(is_own, own, found)
    return found


def convert_stage_output(rows: Any, job: Job) -> Any:
    """Convert the sorted rows of an earlier stage, with order columns, to input rows of `job`."""
    [stream] = job.fragment.inputs
    index, count = job.streams.index(stream), rows.num_rows
    names = [n for n in rows.column_names if n not in {*ORDER, TS, AT, KIND}]
    columns = {name: rows.column(name) for name in (TS, AT, OFFSET, CLOCK)}
    columns[KIND] = pa.repeat(pa.scalar(int(EventKind.CURRENT), pa.int8()), count)
    columns[STREAM] = pa.repeat(pa.scalar(index, pa.int32()), count)
    columns |= {f"s{index}_{name}": rows.column(name) for name in names}
    return pa.table(columns)


def divide_range(
    inputs: InputLogs, batch: BatchRange, shares: int, share: int
) -> tuple[Offsets, Offsets]:
    """Start and end of one of `shares` about equal ranges of a batch.

    All streams are divided at the same capture times, so that order by capture is kept.
    """

    def find_end(number: int) -> Offsets:
        if number in {0, shares}:
            return dict(batch.end if number else batch.start)
        rows = max(1, batch.rows * number // shares)
        return inputs.limit_end(dict(batch.start), dict(batch.end), rows)

    return find_end(share), find_end(share + 1)
