"""One fragment over one batch as Spark plans: native where equal, tasks by key otherwise.

Used for batches that are too large for the driver. What comes back is the fragment's rows,
unsorted, as an Arrow table of `host.out_schema`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from typing import Any

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as sf
from pyspark.sql.pandas.types import from_arrow_schema

from edgewise.engines import host, keyspace
from edgewise.engines.host import Cut, Job, run_part
from edgewise.engines.inputs import CLOCK, MERGE_ORDER, OFFSET, STREAM
from edgewise.engines.spark import native
from edgewise.engines.spark.native import Projection
from edgewise.event.arrow import AT, KIND, TS
from edgewise.event.event import Kind
from edgewise.plan.fragments import Fragment


def merged(frame: DataFrame, cut: Cut) -> DataFrame:
    """Several inputs in order of capture, numbered and clocked as one."""
    order = Window.orderBy(*MERGE_ORDER)
    so_far = order.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    clock = sf.greatest(sf.max(TS).over(so_far), sf.lit(cut.clock_start))
    place = sf.row_number().over(order) + sf.lit(sum(cut.start.values()) - 1)
    return frame.withColumns({CLOCK: clock, OFFSET: place.cast("long")})


def in_tasks(frame: DataFrame, job: Job, parts: int) -> DataFrame:
    """A task is one partition of the key space, fed in order."""
    fragment = job.fragment
    wanted = _wanted(frame, job).withColumn(host.PART, part_column(fragment, job.streams, parts))
    if not fragment.stateless:
        order = [host.PART, OFFSET]
        wanted = wanted.repartitionById(parts, host.PART).sortWithinPartitions(*order)
    schema = from_arrow_schema(host.out_schema(job))
    return wanted.mapInArrow(_map_partitions(job), schema)


def projected(frame: DataFrame, job: Job, projections: Sequence[Projection]) -> DataFrame:
    """A fragment without state, whole, in Spark's own expressions."""
    targets = [s.name for s in job.outputs]
    alive = frame.where(sf.col(KIND) != int(Kind.MARK))
    parts = []
    for seq, projection in enumerate(projections):
        target = targets.index(projection.target)
        fixed = {
            host.OUT: sf.lit(target),
            host.PHASE: sf.lit(1),
            host.SEQ: sf.lit(seq),
            KIND: sf.lit(int(Kind.CURRENT)),
        }
        kept = {name: sf.col(name) for name in (CLOCK, OFFSET, TS, AT)}
        own = {f"o{target}_{n}": c for n, c in projection.columns.items()}
        made = kept | fixed | own
        columns = [
            made.get(f.name, sf.lit(None)).cast(f.dataType).alias(f.name)
            for f in from_arrow_schema(host.out_schema(job))
        ]
        place = sf.col(STREAM) == job.streams.index(projection.source)
        parts.append(alive.where(place & projection.condition).select(*columns))
    return reduce(DataFrame.unionAll, parts)


def _wanted(frame: DataFrame, job: Job) -> DataFrame:
    """Rows of the fragment's inputs that some query may want."""
    chosen = sf.lit(False)
    columns = [TS, AT, KIND, OFFSET, CLOCK, STREAM]
    for stream in job.fragment.inputs:
        index = job.streams.index(stream)
        own = sf.col(STREAM) == index
        ordered = job.app.stream(stream).lateness_ms is not None  # what is late is counted
        matters = None if ordered else native.wanted(job.app, job.fragment, stream, f"s{index}_")
        chosen |= own if matters is None else own & matters
        names = job.reads.get(stream, job.app.stream(stream).schema.names)
        columns += [f"s{index}_{name}" for name in names]
    alive = sf.col(KIND) != int(Kind.MARK)
    return frame.where(alive & chosen).select(*(sf.col(f"`{name}`") for name in columns))


def part_column(fragment: Fragment, streams: Sequence[str], parts: int) -> Any:
    """`keyspace.part_of` in Spark's expressions."""
    part = sf.lit(0)
    for stream, key in fragment.keys:
        place = streams.index(stream)
        texts = [
            sf.coalesce(sf.col(f"`s{place}_{name}`").cast("string"), sf.lit(keyspace.NULL))
            for name in key
        ]
        hashed = sf.crc32(sf.concat_ws(keyspace.SEPARATOR, *texts).cast("binary"))
        own = sf.pmod(hashed, sf.lit(parts)).cast("int")
        part = sf.when(sf.col(STREAM) == place, own).otherwise(part)
    return part


def _map_partitions(job: Job) -> Any:
    """The function for `mapInArrow`: a task is one partition of the key space."""

    def body(batches: Iterator[Any]) -> Iterator[Any]:
        from pyspark import TaskContext

        context = TaskContext.get()
        part = context.partitionId() if context else 0
        yield from run_part(job, part, batches).to_batches()

    return body
