"""Runs an app on Spark: log in, kernels by key, log out. Stream and batch share `_process`.

A micro-batch is an ordinary DataFrame inside `foreachBatch`: native filters, then the key space is
cut into partitions, each fed in order to its kernel. A small batch is read and fed by the driver
without a Spark job, which takes most of its floor away; large ones go to tasks (`stages`). Results
are sorted into the one order of the app and appended to the output logs with the version of the
batch as sequence: a batch that is repeated after a crash finds its rows there already. That, and
state versioned alike, is exactly once.
"""

from __future__ import annotations

import functools
import json
import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from edgewise.engines import host, scan
from edgewise.engines.beginning import Beginning
from edgewise.engines.faults import in_own_logs
from edgewise.engines.host import Cut, Job, Pulse, run_part
from edgewise.engines.inputs import Inputs, demand_inputs
from edgewise.engines.kernel import compile_kernel
from edgewise.engines.parcel import Home
from edgewise.engines.progress import Progress
from edgewise.engines.results import FAULTS, Made, append, merged
from edgewise.engines.spark import stages
from edgewise.engines.spark.checkpoint import Checkpoint
from edgewise.engines.spark.ship import ship
from edgewise.engines.spark.stages import Scan
from edgewise.engines.stretches import refused
from edgewise.errors import SetupError
from edgewise.log.api import LogWriter, PartsWriter
from edgewise.plan.fragments import Fragment
from edgewise.plan.nodes import App, OnDemandQuery
from edgewise.plan.rules.chain import staged
from edgewise.plan.rules.native import projections
from edgewise.plan.rules.order import rewrite
from edgewise.plan.rules.projection import reads
from edgewise.plan.rules.stretch import batches_of

SMALL_BATCH_ROWS = 50_000  # up to here the driver is faster than a shuffle and its tasks
PARTITIONS_MAX = 1024

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SparkConfig:
    partitions: int = 2
    rows_max: int = 1_000_000  # per micro-batch
    history_rows_max: int = 4_000_000  # at once, of a batch over history
    small_batch_rows: int = SMALL_BATCH_ROWS
    trigger_ms: int = 0  # 0: the next batch starts when the last one is done
    state: str = ""  # where kernel state lives, a path or URI; '': in the checkpoint

    def validate(self) -> None:
        if not 1 <= self.partitions <= PARTITIONS_MAX:
            raise SetupError(f"partitions must be 1 to {PARTITIONS_MAX}, not {self.partitions}")


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
        demand_inputs(app)
        ship(app)
        self.spark = spark
        self.app = app = rewrite(app)
        self.fragments = staged(app)
        read = dict.fromkeys(n for f in self.fragments for n in f.inputs)
        self._between = tuple(n for n in read if n not in {s.name for s in app.inputs})
        self._reads = {f.name: reads(app, f) for f in self.fragments}
        self.logs = {s.name: str(logs[s.name]) for s in app.inputs}
        self.inputs = Inputs(self.logs)
        self._beginning = Beginning(app, self.fragments)
        self._scans = all("://" not in place for place in self.logs.values())
        self.writers = writers
        self.taps = taps
        self.start = start
        self.config = config or SparkConfig()
        self.config.validate()
        self.checkpoint = Checkpoint(checkpoint, self.config.state)
        self._scan = Scan(self.logs, checkpoint / "staging", self._homes())
        self._scan.clear()
        schemas = {s.name: s.schema.names for s in app.streams}
        self.began = self.checkpoint.begin(self.config.partitions, self.fragments, schemas)
        self.producer = f"spark:{self.began.id}"  # another checkpoint starts its own sequence
        reached = self.inputs.known(self.checkpoint.reached())
        self.progress = Progress(partitions=self.config.partitions, offsets=reached)
        self._turn = threading.Lock()  # a batch or a question, one at a time
        self._version = self.checkpoint.committed(self.began)
        self._revisions = dict.fromkeys((f.name for f in self.fragments), 0)
        self._projections = {
            f.name: projections(app, f) for f in self.fragments if f.stateless and not taps
        }
        self._only_native = {
            f.name
            for f in self.fragments
            if self._projections.get(f.name) and not _compiles(app, f)
        }

        self._stretches = {
            f.name
            for f in self.fragments
            if not taps and 1 < self.config.partitions <= stages.SCANS_MAX and batches_of(app, f)
        }

    def _homes(self) -> dict[str, Home]:
        """Logs that nobody here looks at again before they are written."""
        seen = {*self.logs, *self._between, FAULTS.name}
        return {
            stream: Home(writer.schema, writer.rows_max)
            for stream, writer in self.writers.items()
            if isinstance(writer, PartsWriter) and stream not in seen
        }

    def begin_at(self, offsets: Mapping[str, int]) -> None:
        """Where a checkpoint that has seen nothing begins; else at what the logs still have."""
        if self.began.offsets or self.checkpoint.spark.exists():
            raise SetupError(
                f"{self.checkpoint.path} has begun already, it goes on where it stopped"
            )
        self._settle(offsets=dict(offsets), clock=self.inputs.clock(dict(offsets)))

    def stream(
        self, *, available_now: bool = False, end: Mapping[str, int] | None = None
    ) -> StreamingQuery:
        """The running query; with `available_now` it ends at `end`, or what is in the logs now."""
        self._finish()
        self.checkpoint.forget_unborn()
        reader = (
            self.spark.readStream.format("edgewise")
            .option("logs", json.dumps(self.logs))
            .option("max_rows", str(self.config.rows_max))
        )
        if self.began.offsets:
            place = {"offsets": self.began.offsets, "clock": self.began.clock}
            reader = reader.option("from", json.dumps(place))
        if end is not None:
            reader = reader.option("to", json.dumps(dict(end)))
        writer = (
            reader.load()
            .writeStream.foreachBatch(self._on_batch)
            .option("checkpointLocation", str(self.checkpoint.spark))
        )
        if available_now:
            writer = writer.trigger(availableNow=True)
        elif self.config.trigger_ms:
            writer = writer.trigger(processingTime=f"{self.config.trigger_ms} milliseconds")
        return writer.start()

    def run(self, end: Mapping[str, int] | None = None) -> str:
        """As a stream, to `end`; what Spark says where the query fails, else ''."""
        try:
            self.stream(available_now=True, end=end).awaitTermination()
        except StreamingQueryException as failure:
            return str(failure)
        return ""

    def batch(self, end: Mapping[str, int] | None = None) -> None:
        """History: from where the last batch ended to `end`, or what is in the logs now.

        Long history is taken in parts. A stream may go on afterwards, from the same checkpoint.
        """
        if self.checkpoint.spark.exists():
            raise SetupError(
                f"{self.checkpoint.path} belongs to a stream; a batch needs one of its own"
            )
        self._finish()
        inputs = self.inputs
        begin = self.began.offsets or inputs.earliest()
        until = inputs.heads() | dict(end or {})
        clock = inputs.clock(begin) if self.began.clock is None else self.began.clock
        while True:
            some = inputs.cut(begin, until, self.config.history_rows_max)
            after = max(clock, inputs.clock(some))
            self._settle(doing=Cut(self.began.batches, begin, some, clock, after))
            self._finish()
            if some == until:
                return
            begin, clock = some, after

    def close(self) -> None:
        self.inputs.close()

    def _finish(self) -> None:
        """A batch over history that was written down is done, maybe again, as it was written."""
        cut = self.began.doing
        if cut is None:
            return

        def frame() -> DataFrame:
            reader = self.spark.read.format("edgewise").option("logs", json.dumps(self.logs))
            reader = reader.option("start", json.dumps(dict(cut.start)))
            return reader.option("end", json.dumps(dict(cut.end))).load()

        self._process(frame, cut)
        self._settle(doing=None, batches=cut.batch_id + 1, offsets=cut.end, clock=cut.clock)

    def _settle(self, **changes: Any) -> None:
        self.began = msgspec.structs.replace(self.began, **changes)
        self.checkpoint.write(self.began)

    def _on_batch(self, frame: DataFrame, batch_id: int) -> None:
        self._process(lambda: frame, self.checkpoint.cut(self.began, batch_id, self.inputs))

    def _process(self, frame: Callable[[], DataFrame], cut: Cut) -> None:
        began = time.monotonic()
        with self._turn:
            run, events, pulse = self._runner(frame, cut)
            at = self.inputs.captured(cut.start, cut.end)
            read = time.monotonic()
            out: dict[str, list[Any]] = {}
            between: dict[str, Any] = {}
            for fragment in self.fragments:
                job = self._job(fragment, cut.batch_id, cut.clock, at=at, pulse=pulse)
                before = next((between[n] for n in fragment.inputs if n in between), None)
                made = run(job) if before is None else self._go_on(job, before)
                self.progress.tell(fragment.name, made)
                for stream in self._between:
                    if stream in {s.name for s in job.outputs}:
                        between[stream] = made.placed(stream, self.app.stream(stream).schema)
                for stream, rows in (*made.ordered(), *made.parts.items()):
                    out.setdefault(stream, []).append(rows)
            ran = time.monotonic()
            in_own_logs(out, self.inputs)
            rows_out = append(self.writers, out, self.producer, cut.batch_id)
            self._version = cut.batch_id
        phases = {"read": read - began, "run": ran - read, "append": time.monotonic() - ran}
        self.progress.batch(cut, rows_out, phases, events)

    def ask(self, query: OnDemandQuery) -> list[tuple[Any, ...]]:
        """An on-demand query against what the app holds after the last batch."""
        store = query.store or (query.output.target if query.output else "")
        fragment = next((f for f in self.fragments if f.holds(store)), None)
        if fragment is None:
            raise SetupError(f"the app '{self.app.name}' holds no '{store}'")
        with self._turn:
            rows = host.ask(self._job(fragment, self._version + 1, 0), query)
            self._revisions[fragment.name] += query.output is not None
        return rows

    def _job(self, fragment: Fragment, version: int, clock: int, **more: Any) -> Job:
        return Job(
            app=self.app,
            fragment=fragment,
            version=version,
            clock=clock,
            state_root=self.checkpoint.root(self.began, fragment.name),
            streams=(*self.logs, *self._between),
            taps=self.taps,
            start=self.start,
            reads=self._reads[fragment.name],
            revision=self._revisions[fragment.name],
            **more,
        )

    def _runner(
        self, frame: Callable[[], DataFrame], cut: Cut
    ) -> tuple[Callable[[Job], Made], int, Pulse | None]:
        """And how many events it will run, and with which the app begins.

        In large batches the few marks are not told apart from events. Small ones run in the
        driver, but for what only Spark's expressions can say.
        """
        by_tasks = self._by_tasks(frame, cut)
        if cut.rows > self.config.small_batch_rows:
            return by_tasks, cut.rows, self._beginning.of(cut, self.inputs)
        table = self.inputs.table(cut.start, cut.end, cut.clock_start)

        def run(job: Job) -> Made:
            by_spark = job.fragment.name in self._only_native
            return by_tasks(job) if by_spark else self._in_driver(table, job)

        return run, table.num_rows, self._beginning.of(cut, self.inputs, table)

    def _in_driver(self, table: Any, job: Job) -> Made:
        shares = scan.spread(scan.wanted(table, job), job, self._parts(job.fragment))
        return merged(run_part(job, part, rows) for part, rows in enumerate(shares))

    def _go_on(self, job: Job, before: Any) -> Made:
        """A further stage, over the rows of the one before."""
        rows, parts = scan.handed_on(before, job), self._parts(job.fragment)
        if job.fragment.name in self._only_native:
            native = self._projections[job.fragment.name]
            return stages.expressed(self.spark.createDataFrame(rows), job, native)
        if rows.num_rows <= self.config.small_batch_rows:
            return self._in_driver(rows, job)
        if self._scans and parts <= stages.SCANS_MAX:
            return stages.handed(self.spark, self._scan, rows, job, parts)
        return stages.shuffled(self.spark.createDataFrame(rows), job, parts)

    def _by_tasks(self, frame: Callable[[], DataFrame], cut: Cut) -> Callable[[Job], Made]:
        @functools.cache
        def shared() -> DataFrame:
            return stages.merged(frame(), cut) if len(cut.start) > 1 else frame()

        def run(job: Job) -> Made:
            fragment, parts = job.fragment, self._parts(job.fragment)
            scans = self._scans and parts <= stages.SCANS_MAX
            if scans and fragment.name in self._stretches:
                made = stages.stretched(self.spark, self._scan, cut, job, self.config.partitions)
                if not refused(made):
                    return made
                self._stretches.discard(fragment.name)
                logger.info("%s goes on by one task: times do not ascend", fragment.name)
            if scans and fragment.name not in self._only_native:
                tasks = self.config.partitions if fragment.stateless else parts
                return stages.scanned(self.spark, self._scan, cut, job, tasks)
            if native := self._projections.get(fragment.name):
                return stages.expressed(shared(), job, native)
            return stages.shuffled(shared(), job, parts)

        return run

    def _parts(self, fragment: Fragment) -> int:
        return self.config.partitions if fragment.keyed else 1


def _compiles(app: App, fragment: Fragment) -> bool:
    """Whether there is a kernel too; a function may be a Spark expression alone."""
    try:
        compile_kernel(app, fragment)
    except SetupError:
        return False
    return True
