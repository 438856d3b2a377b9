"""Which rows of a batch a partition of a fragment is fed, found in whole Arrow tables.

What no query wants is left out first (`plan.rules.native.prefix`); the others are spread over the
partitions of the key space or, where there is no state, cut where they stand.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from edgewise.engines.asks import asked, kept_rows
from edgewise.engines.host import RUN_ROWS, Cut, Job
from edgewise.engines.inputs import CLOCK, OFFSET, STREAM, Inputs, Offsets
from edgewise.engines.keyspace import parts_of
from edgewise.engines.results import ORDER
from edgewise.event.arrow import AT, KIND, TS
from edgewise.event.event import Kind
from edgewise.plan.rules.native import prefix

ASKED_ROWS_MIN = 4096  # with fewer, asking takes longer than the kernel that drops them
SYSTEM = (TS, AT, KIND, OFFSET, CLOCK, STREAM)


def wanted(table: Any, job: Job) -> Any:
    """Rows of the fragment's inputs that some query may want, and the columns it reads."""
    streams = [job.streams.index(stream) for stream in job.fragment.inputs]
    columns = list(SYSTEM)
    for index, stream in zip(streams, job.fragment.inputs, strict=True):
        names = job.reads.get(stream, job.app.stream(stream).schema.names)
        columns += [f"s{index}_{name}" for name in names]
    mine = table.select(columns)
    matters = _matters(job) if table.num_rows >= ASKED_ROWS_MIN else {}
    logged, read = {s.name for s in job.app.inputs}, set(job.fragment.inputs)
    only_own = bool(read) and (read >= logged or not read & logged)
    if only_own and not any(m is not None for m in matters.values()):
        return mine
    chosen = pc.scalar(False)
    for index in streams:
        own, asks = pc.field(STREAM) == index, matters.get(index)
        chosen |= own if asks is None else own & asks
    return kept_rows(mine, chosen)


def _matters(job: Job) -> dict[int, Any]:
    """By number of stream: what an event must be to matter to any query; None: it may be any."""
    found = {}
    for stream in job.fragment.inputs:
        index = job.streams.index(stream)
        ordered = job.app.stream(stream).lateness_ms is not None  # what is late is counted
        asks = None if ordered else prefix(job.app, job.fragment, stream)
        found[index] = None if asks is None else asked(asks, f"s{index}_")
    return found


def fed(table: Any, job: Job, parts: int = 1, part: int = 0) -> list[Any]:
    """What of a table one partition is fed, as record batches."""
    return share(wanted(table, job), job, parts, part)


def spread(table: Any, job: Job, parts: int) -> Iterator[list[Any]]:
    """The rows of every partition, as record batches."""
    place = places(table, job, parts) if parts > 1 else None
    for part in range(parts):
        yield _placed(table, place, part)


def share(table: Any, job: Job, parts: int, part: int) -> list[Any]:
    """The rows of one partition, as record batches."""
    return _placed(table, places(table, job, parts) if parts > 1 else None, part)


def _placed(table: Any, place: Any, part: int) -> list[Any]:
    if place is not None:
        table = table.filter(pc.equal(place, pa.scalar(part, pa.int32())))
    runs = (table.slice(at, RUN_ROWS) for at in range(0, table.num_rows, RUN_ROWS))
    return [run.combine_chunks().to_batches()[0] for run in runs]


def places(table: Any, job: Job, parts: int) -> Any:
    """The partition of every row of a keyed fragment's inputs."""
    found = None
    for stream, key in job.fragment.keys:
        index = job.streams.index(stream)
        own = parts_of([table.column(f"s{index}_{name}") for name in key], parts)
        mine = pc.equal(table.column(STREAM), pa.scalar(index, pa.int32())).combine_chunks()
        found = own if found is None else pc.if_else(mine, own, found)
    return found


def handed_on(rows: Any, job: Job) -> Any:
    """Rows that a stage before has made, in order and with their places, as input."""
    [stream] = job.fragment.inputs
    index, count = job.streams.index(stream), rows.num_rows
    names = [n for n in rows.column_names if n not in {*ORDER, TS, AT, KIND}]
    columns = {name: rows.column(name) for name in (TS, AT, OFFSET, CLOCK)}
    columns[KIND] = pa.repeat(pa.scalar(int(Kind.CURRENT), pa.int8()), count)
    columns[STREAM] = pa.repeat(pa.scalar(index, pa.int32()), count)
    columns |= {f"s{index}_{name}": rows.column(name) for name in names}
    return pa.table(columns)


def stretch(inputs: Inputs, cut: Cut, parts: int, part: int) -> tuple[Offsets, Offsets]:
    """Where an equal stretch of a batch begins and ends, at one moment of capture each."""

    def until(number: int) -> Offsets:
        if number in {0, parts}:
            return dict(cut.end if number else cut.start)
        rows = max(1, cut.rows * number // parts)
        return inputs.cut(dict(cut.start), dict(cut.end), rows)

    return until(part), until(part + 1)
