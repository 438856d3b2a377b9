"""One fragment over one batch as a Spark job, for batches that are too large for the driver.

Three plans, all with the same rows:

- `scanned`: every task reads the batch from the logs itself, as Arrow, and feeds what is its own
  to its kernel. Nothing but results crosses into the JVM and back. For few partitions, on logs
  that are files here: so many times is a batch read.
- `shuffled`: Spark reads the batch once, filters it natively and shuffles it by key.
- `expressed`: a fragment without state in Spark's own expressions; also for functions that only
  Spark has.
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

from edgewise.engines import keyspace, scan
from edgewise.engines.host import Cut, Job, run_part
from edgewise.engines.inputs import CLOCK, MERGE_ORDER, OFFSET, STREAM, Inputs
from edgewise.engines.parcel import Home, Parcel, pack, unpack
from edgewise.engines.project import columnar, projected
from edgewise.engines.results import ORDER, PHASE, PLACED, SEQ, Made
from edgewise.engines.spark import native
from edgewise.engines.stretches import run_stretch
from edgewise.event.arrow import ARROW_TYPES, AT, KIND, TS
from edgewise.event.event import Kind
from edgewise.plan.fragments import Fragment
from edgewise.plan.nodes import Stream
from edgewise.plan.rules.native import Projection

PART, OUT = "_part", "_out"
_BINARY = ("parts", "data")
_PARCEL = pa.schema(
    [pa.field(n, pa.binary() if n in _BINARY else pa.string()) for n in Parcel._fields]
)
SCANS_MAX = 8  # tasks that each read a whole batch; with more partitions Spark shuffles it


@dataclass(frozen=True, slots=True)
class Scan:
    """Logs that tasks read themselves, `staging`: a directory where large results wait, `homes`:
    logs for which they make them ready.
    """

    logs: Mapping[str, str]
    staging: Path
    homes: Mapping[str, Home] = field(default_factory=dict)

    def clear(self) -> None:
        """What tasks of an engine that was killed have left."""
        self.staging.mkdir(parents=True, exist_ok=True)
        for rest in self.staging.iterdir():
            rest.unlink()


def scanned(spark: SparkSession, source: Scan, cut: Cut, job: Job, parts: int) -> Made:
    """A task is one partition of the key space; without state, one stretch of the batch."""
    queries = columnar(job)

    def make(part: int) -> Made:
        with closing(Inputs(source.logs)) as inputs:
            if not job.fragment.stateless:
                whole = inputs.table(cut.start, cut.end, cut.clock_start)
                return run_part(job, part, scan.fed(whole, job, parts, part))
            start, end = scan.stretch(inputs, cut, parts, part)
            if queries:
                return projected(inputs, start, end, queries)
            clock = max(cut.clock_start, inputs.clock(start))
            return run_part(job, part, scan.fed(inputs.table(start, end, clock), job))

    alone = parts == 1 or job.fragment.stateless
    return _in_tasks(spark, source, job, parts, make, in_order=alone)


def stretched(spark: SparkSession, source: Scan, cut: Cut, job: Job, parts: int) -> Made:
    """A task is one stretch of event time; check the answer for a refusal (`stretches`)."""

    def make(part: int) -> Made:
        with closing(Inputs(source.logs)) as inputs:
            return run_stretch(inputs, cut, job, parts, part)

    return _in_tasks(spark, source, job, parts, make, in_order=True)


def handed(spark: SparkSession, source: Scan, rows: Any, job: Job, parts: int) -> Made:
    """The same over rows that a stage before has made; they wait in a file."""
    file = source.staging / f"{job.version}-{job.fragment.inputs[0]}"
    with pa.OSFile(str(file), "wb") as target, pa.ipc.new_file(target, rows.schema) as writer:
        writer.write_table(rows)

    def make(part: int) -> Made:
        table = pa.ipc.open_file(pa.memory_map(str(file))).read_all()
        return run_part(job, part, scan.fed(table, job, parts, part))

    try:
        return _in_tasks(spark, source, job, parts, make, in_order=parts == 1)
    finally:
        file.unlink()


def _in_tasks(
    spark: SparkSession,
    source: Scan,
    job: Job,
    parts: int,
    make: Callable[[int], Made],
    *,
    in_order: bool,
) -> Made:
    """`in_order`: no part has rows that belong between those of another.

    An RDD, not a DataFrame: to plan one takes Spark longer than such tasks.
    """

    def body(part: int, numbers: Iterable[int]) -> Iterator[Parcel]:
        deque(numbers, 0)  # a worker that has not read its input to the end is not used again
        made = make(part)
        file = f"{source.staging}/{job.version}-{_attempt()}"
        if in_order:
            return pack(made.settled(job.streams), file, source.homes)
        return pack(made, file)

    tasks = spark.sparkContext.parallelize(range(parts), parts)
    return unpack(tasks.mapPartitionsWithIndex(body).collect())


def merged(frame: DataFrame, cut: Cut) -> DataFrame:
    """Several inputs in order of capture, numbered and clocked as one."""
    order = Window.orderBy(*MERGE_ORDER)
    so_far = order.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    clock = sf.greatest(sf.max(TS).over(so_far), sf.lit(cut.clock_start))
    place = sf.row_number().over(order) + sf.lit(sum(cut.start.values()) - 1)
    return frame.withColumns({CLOCK: clock, OFFSET: place.cast("long")})


def shuffled(frame: DataFrame, job: Job, parts: int) -> Made:
    """A task is one partition of the key space, fed in order."""
    fragment = job.fragment
    wanted = _wanted(frame, job).withColumn(PART, part_column(fragment, job.streams, parts))
    if not fragment.stateless:
        wanted = wanted.repartitionById(parts, PART).sortWithinPartitions(PART, OFFSET)

    def body(batches: Iterator[Any]) -> Iterator[Any]:
        part = _context().partitionId()
        for parcel in pack(run_part(job, part, batches)):
            yield pa.RecordBatch.from_pylist([parcel._asdict()], schema=_PARCEL)

    packed = wanted.mapInArrow(body, from_arrow_schema(_PARCEL)).toArrow()
    return unpack(Parcel(**row) for row in packed.to_pylist())


def _context() -> Any:
    from pyspark import TaskContext

    return TaskContext.get()


def _attempt() -> int:
    """A number that no other attempt at a task has."""
    return int(_context().taskAttemptId())


def expressed(frame: DataFrame, job: Job, projections: Sequence[Projection]) -> Made:
    """A fragment without state, whole, in Spark's own expressions."""
    streams = {s.name: s for s in job.outputs}
    targets = list(dict.fromkeys(p.target for p in projections))
    fields = [*PLACED, pa.field(OUT, pa.int32())]
    fields += [
        pa.field(f"o{i}_{a.name}", ARROW_TYPES[a.type])
        for i, target in enumerate(targets)
        for a in streams[target].schema.attributes
    ]
    alive = frame.where(sf.col(KIND) != int(Kind.MARK))
    parts = []
    for seq, projection in enumerate(projections):
        target = targets.index(projection.target)
        fixed = {
            OUT: sf.lit(target),
            PHASE: sf.lit(1),
            SEQ: sf.lit(seq),
            KIND: sf.lit(int(Kind.CURRENT)),
        }
        kept = {name: sf.col(name) for name in (CLOCK, OFFSET, TS, AT)}
        index = job.streams.index(projection.source)
        condition, values = native.projection(job.app, projection, f"s{index}_")
        own = {f"o{target}_{n}": c for n, c in values.items()}
        made = kept | fixed | own
        columns = [
            made.get(f.name, sf.lit(None)).cast(f.dataType).alias(f.name)
            for f in from_arrow_schema(pa.schema(fields))
        ]
        parts.append(alive.where((sf.col(STREAM) == index) & condition).select(*columns))
    table = reduce(DataFrame.unionAll, parts).toArrow()
    return Made({t: [_own(table, i, streams[t])] for i, t in enumerate(targets)})


def _own(table: Any, index: int, stream: Stream) -> Any:
    """The rows of one output stream, with their places."""
    mine = table.filter(pc.equal(table.column(OUT), pa.scalar(index)))
    names = stream.schema.names
    system = [*ORDER, TS, AT, KIND]
    return mine.select([*system, *(f"o{index}_{n}" for n in names)]).rename_columns(
        [*system, *names]
    )


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
