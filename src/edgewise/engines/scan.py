"""Which rows of a batch a partition of a fragment is fed, found in whole Arrow tables.

What no query wants is left out first (`plan.rules.native.prefix`); the others are spread over the
partitions of the key space or, where there is no state, cut where they stand.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from edgewise.engines.asks import asked
from edgewise.engines.host import Job
from edgewise.engines.inputs import CLOCK, OFFSET, STREAM
from edgewise.engines.keyspace import parts_of
from edgewise.event.arrow import AT, KIND, TS
from edgewise.event.event import Kind
from edgewise.plan.rules.native import prefix

SYSTEM = (TS, AT, KIND, OFFSET, CLOCK, STREAM)


def wanted(table: Any, job: Job) -> Any:
    """Rows of the fragment's inputs that some query may want, and the columns it reads."""
    columns, chosen, all_of_them = list(SYSTEM), None, True
    for stream in job.fragment.inputs:
        index = job.streams.index(stream)
        names = job.reads.get(stream, job.app.stream(stream).schema.names)
        columns += [f"s{index}_{name}" for name in names]
        own = pc.field(STREAM) == index
        ordered = job.app.stream(stream).lateness_ms is not None  # what is late is counted
        asks = None if ordered else prefix(job.app, job.fragment, stream)
        matters = None if asks is None else asked(asks, f"s{index}_")
        all_of_them &= matters is None
        mine = own if matters is None else own & matters
        chosen = mine if chosen is None else chosen | mine
    if all_of_them and len(job.fragment.inputs) == len(job.streams):
        return table.select(columns)
    return table.select(columns).filter(pc.scalar(False) if chosen is None else chosen)


def spread(table: Any, job: Job, parts: int) -> Iterator[Any]:
    """The rows of every partition, as record batches."""
    if parts == 1:
        yield table.to_batches()
        return
    place = places(table, job, parts)
    for part in range(parts):
        yield share(table, place, part)


def share(table: Any, place: Any, part: int) -> list[Any]:
    batches: list[Any] = table.filter(pc.equal(place, pa.scalar(part, pa.int32()))).to_batches()
    return batches


def places(table: Any, job: Job, parts: int) -> Any:
    """The partition of every row of a keyed fragment's inputs."""
    found = None
    for stream, key in job.fragment.keys:
        index = job.streams.index(stream)
        own = parts_of([table.column(f"s{index}_{name}") for name in key], parts)
        mine = pc.equal(table.column(STREAM), pa.scalar(index, pa.int32())).combine_chunks()
        found = own if found is None else pc.if_else(mine, own, found)
    return found


def stretch(table: Any, parts: int, part: int) -> list[Any]:
    """An equal stretch of the rows, no chunk cut."""
    ends = [_whole(table, table.num_rows * p // parts) for p in (part, part + 1)]
    batches: list[Any] = table.slice(ends[0], ends[1] - ends[0]).to_batches()
    return batches


def _whole(table: Any, end: int) -> int:
    """`end`, moved on where it would cut a chunk."""
    kinds = table.column(KIND)
    while 0 < end < table.num_rows and kinds[end - 1].as_py() == Kind.MORE:
        end += 1
    return end
