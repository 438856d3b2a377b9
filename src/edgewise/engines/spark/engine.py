"""Runs an app on Spark: the log in, kernels by key, the log out. Stream and batch share `Batch`.

A micro-batch is an ordinary DataFrame inside `foreachBatch`: native filters, then the key space is
cut into partitions, each fed in order to its kernel. Small batches go to the driver without a
shuffle, which halves their floor; large ones go to tasks. Results are sorted into the one order of
the app and appended to the output logs with the batch id as sequence: a batch that is repeated
after a crash finds its rows there already. That, and state versioned by batch id, is exactly once.
"""

from __future__ import annotations

import dataclasses
import json
import shutil
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as sf
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming.query import StreamingQuery

from edgewise.engines import host
from edgewise.engines.host import (
    Counts,
    Cut,
    Job,
    add_counts,
    by_stream,
    counted,
    fit,
    run_part,
)
from edgewise.engines.inputs import CLOCK, MERGE_ORDER, OFFSET, STREAM, Inputs
from edgewise.engines.spark import native
from edgewise.engines.spark.native import Projection
from edgewise.engines.spark.ship import ship
from edgewise.errors import SetupError
from edgewise.event.arrow import AT, KIND, TS
from edgewise.event.event import Kind
from edgewise.log.api import LogWriter
from edgewise.plan.fragments import Fragment
from edgewise.plan.nodes import App
from edgewise.plan.rules.keys import split
from edgewise.plan.rules.order import rewrite
from edgewise.plan.rules.projection import reads

SMALL_BATCH_ROWS = 50_000  # up to here the driver is faster than a shuffle and its tasks
PARTITIONS_MAX = 1024


@dataclass(frozen=True, slots=True)
class SparkConfig:
    partitions: int = 2
    rows_max: int = 1_000_000  # per micro-batch
    small_batch_rows: int = SMALL_BATCH_ROWS
    trigger_ms: int = 0  # 0: the next batch starts when the last one is done

    def validate(self) -> None:
        if not 1 <= self.partitions <= PARTITIONS_MAX:
            raise SetupError(f"partitions must be 1 to {PARTITIONS_MAX}, not {self.partitions}")


@dataclass(slots=True)
class Progress:
    """What people watch."""

    batches: int = 0
    rows_in: int = 0
    rows_out: int = 0
    clock: int = 0
    offsets: dict[str, int] = field(default_factory=dict)
    counts: Counts = field(default_factory=dict)


class SparkApp:
    """One app on one Spark session. `logs` are the input logs, `writers` the output logs.

    `taps` and `start` are passed on to the kernels (`host.Job`).
    """

    def __init__(
        self,
        spark: SparkSession,
        app: App,
        *,
        logs: Mapping[str, Path | str],
        writers: Mapping[str, LogWriter],
        checkpoint: Path,
        config: SparkConfig | None = None,
        taps: tuple[str, ...] = (),
        start: int | None = None,
    ) -> None:
        ship(app)
        self.spark = spark
        self.app = app = rewrite(app)
        self.fragments = split(app)
        self._reads = {f.name: reads(app, f) for f in self.fragments}
        self.logs = {s.name: str(logs[s.name]) for s in app.inputs}
        self.writers = writers
        self.taps = taps
        self.start = start
        self.checkpoint = checkpoint
        began = _begin(checkpoint, config or SparkConfig())
        self.config = dataclasses.replace(config or SparkConfig(), partitions=began["partitions"])
        self.producer = f"spark:{began['id']}"  # another checkpoint starts its own sequence
        self.progress = Progress()
        prefixes = {name: f"s{i}_" for i, name in enumerate(self.logs)}
        self._projections = {
            f.name: native.projections(app, f, prefixes)
            for f in self.fragments
            if f.stateless and not taps
        }

    def stream(self, *, available_now: bool = False) -> StreamingQuery:
        """The running query; with `available_now` it ends at what is in the logs now."""
        _forget_unborn(self.checkpoint / "spark")
        frame = (
            self.spark.readStream.format("edgewise")
            .option("logs", json.dumps(self.logs))
            .option("max_rows", str(self.config.rows_max))
            .load()
        )
        writer = frame.writeStream.foreachBatch(self._on_batch).option(
            "checkpointLocation", str(self.checkpoint / "spark")
        )
        if available_now:
            writer = writer.trigger(availableNow=True)
        elif self.config.trigger_ms:
            writer = writer.trigger(processingTime=f"{self.config.trigger_ms} milliseconds")
        return writer.start()

    def batch(self) -> None:
        """All of history at once."""
        inputs = Inputs(self.logs)
        start, end = inputs.earliest(), inputs.heads()
        cut = Cut(0, start, end, inputs.clock(start), inputs.clock(end))
        inputs.close()
        frame = (
            self.spark.read.format("edgewise")
            .option("logs", json.dumps(self.logs))
            .option("end", json.dumps(end))
            .load()
        )
        self._process(frame, cut)

    def _on_batch(self, frame: DataFrame, batch_id: int) -> None:
        self._process(frame, read_cut(self.checkpoint / "spark", batch_id, self.logs))

    def _process(self, frame: DataFrame, cut: Cut) -> None:
        out: list[tuple[str, Any]] = []
        frame = _merged(frame, cut) if len(cut.start) > 1 else frame
        for fragment in self.fragments:
            job = Job(
                app=self.app,
                fragment=fragment,
                version=cut.batch_id,
                clock=cut.clock,
                state_root=str(self.checkpoint / "state" / fragment.name),
                streams=tuple(self.logs),
                taps=self.taps,
                start=self.start,
                reads=self._reads[fragment.name],
            )
            table = self._run(frame, job, cut.rows)
            out += [(s.name, t) for s, t in by_stream(job, table)]
            add_counts(self.progress.counts, counted(job, table))
        for stream, rows in out:
            writer = self.writers[stream]
            writer.append(fit(rows, writer.schema), producer=self.producer, sequence=cut.batch_id)
        self.progress.batches += 1
        self.progress.rows_in += cut.rows
        self.progress.rows_out += sum(rows.num_rows for _, rows in out)
        self.progress.clock = cut.clock
        self.progress.offsets = dict(cut.end)

    def _run(self, frame: DataFrame, job: Job, rows: int) -> Any:
        """The fragment's rows of one batch, unsorted, as an Arrow table."""
        fragment = job.fragment
        if projected := self._projections.get(fragment.name):
            return self._project(frame, job, projected).toArrow()
        parts = self.config.partitions if fragment.keyed else 1
        wanted = self._wanted(frame, fragment).withColumn(host.PART, self._part(fragment, parts))
        order = [host.PART, OFFSET]
        if rows <= self.config.small_batch_rows:
            table = wanted.toArrow().sort_by([(name, "ascending") for name in order])
            by_part = table.column(host.PART)
            tables = [
                run_part(job, part, table.filter(pc.equal(by_part, pa.scalar(part))).to_batches())
                for part in range(parts)
            ]
            return pa.concat_tables(tables)
        if not fragment.stateless:
            wanted = wanted.repartitionById(parts, host.PART).sortWithinPartitions(*order)
        schema = from_arrow_schema(host.out_schema(job))
        return wanted.mapInArrow(_map_partitions(job), schema).toArrow()

    def _project(self, frame: DataFrame, job: Job, projected: list[Projection]) -> DataFrame:
        """A fragment without state, whole, in Spark's own expressions."""
        targets = [s.name for s in job.outputs]
        alive = frame.where(sf.col(KIND) != int(Kind.MARK))
        parts = []
        for seq, projection in enumerate(projected):
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
            place = sf.col(STREAM) == list(self.logs).index(projection.source)
            parts.append(alive.where(place & projection.condition).select(*columns))
        return reduce(DataFrame.unionAll, parts)

    def _wanted(self, frame: DataFrame, fragment: Fragment) -> DataFrame:
        """Rows of the fragment's inputs that some query may want."""
        chosen = sf.lit(False)
        columns = [TS, AT, OFFSET, CLOCK, STREAM]
        for stream in fragment.inputs:
            prefix = f"s{list(self.logs).index(stream)}_"
            own = sf.col(STREAM) == list(self.logs).index(stream)
            ordered = self.app.stream(stream).lateness_ms is not None  # what is late is counted
            matters = None if ordered else native.wanted(self.app, fragment, stream, prefix)
            chosen |= own if matters is None else own & matters
            columns += [prefix + name for name in self._reads[fragment.name][stream]]
        alive = sf.col(KIND) != int(Kind.MARK)
        return frame.where(alive & chosen).select(*(sf.col(f"`{name}`") for name in columns))

    def _part(self, fragment: Fragment, parts: int) -> Any:
        if not fragment.keyed:
            return sf.lit(0)
        part = sf.lit(0)
        for stream, key in fragment.keys:
            place = list(self.logs).index(stream)
            names = [f"`s{place}_{name}`" for name in key]
            hashed = sf.pmod(sf.xxhash64(*names), sf.lit(parts)).cast("int")
            part = sf.when(sf.col(STREAM) == place, hashed).otherwise(part)
        return part


def read_cut(checkpoint: Path, batch_id: int, streams: Mapping[str, str]) -> Cut:
    """From Spark's own write-ahead file, which is there before a batch runs."""
    end = _offset_file(checkpoint, batch_id)
    if batch_id:
        begin = _offset_file(checkpoint, batch_id - 1)
    else:
        inputs = Inputs(streams)
        earliest = inputs.earliest()
        begin = {"offsets": earliest, "clock": inputs.clock(earliest)}
        inputs.close()
    return Cut(batch_id, begin["offsets"], end["offsets"], begin["clock"], end["clock"])


def _merged(frame: DataFrame, cut: Cut) -> DataFrame:
    """Several inputs in order of capture, numbered and clocked as one."""
    order = Window.orderBy(*MERGE_ORDER)
    so_far = order.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    clock = sf.greatest(sf.max(TS).over(so_far), sf.lit(cut.clock_start))
    place = sf.row_number().over(order) + sf.lit(sum(cut.start.values()) - 1)
    return frame.withColumns({CLOCK: clock, OFFSET: place.cast("long")})


def _offset_file(checkpoint: Path, batch_id: int) -> dict[str, Any]:
    """Line 1 is the version, line 2 metadata, then one line per source: ours is the only one."""
    lines = (checkpoint / "offsets" / str(batch_id)).read_text().splitlines()
    offset: dict[str, Any] = json.loads(lines[2])
    return offset


def _map_partitions(job: Job) -> Any:
    """The function for `mapInArrow`: a task is one partition of the key space."""

    def body(batches: Iterator[Any]) -> Iterator[Any]:
        from pyspark import TaskContext

        context = TaskContext.get()
        part = context.partitionId() if context else 0
        yield from run_part(job, part, batches).to_batches()

    return body


def _forget_unborn(checkpoint: Path) -> None:
    """A query killed while it wrote down its first batch leaves half a file, and Spark refuses to
    start from it. No batch was begun, so nothing depends on what is there.
    """
    offsets = checkpoint / "offsets"
    if offsets.exists() and not any(path.name.isdigit() for path in offsets.iterdir()):
        shutil.rmtree(checkpoint)


def _begin(checkpoint: Path, config: SparkConfig) -> dict[str, Any]:
    """The number of partitions is part of the state: a checkpoint keeps the one it began with."""
    config.validate()
    file = checkpoint / "app.json"
    if not file.exists():
        checkpoint.mkdir(parents=True, exist_ok=True)
        began = {"id": uuid.uuid4().hex, "partitions": config.partitions}  # noqa: TID251
        temporary = file.with_suffix(".tmp")
        temporary.write_text(json.dumps(began))
        temporary.replace(file)
    settled: dict[str, Any] = json.loads(file.read_text())
    return settled
