"""Run an app on Spark: input logs to kernels by key to output logs, as a stream or over history.

A micro-batch is an ordinary DataFrame inside `foreachBatch`. How each fragment runs over it is
decided by `choose` and done by `tasks`, or by the driver itself for a small batch, which saves
most of a micro-batch's fixed cost. Rows are sorted into the one order of the app and appended to
the output logs with the batch's version as sequence number; state is written by the same version.
A batch that is repeated after a crash starts from the state before it, and the output logs refuse
what they have: exactly once, for the price of one writer per output log.

The stages of a chain with several keys run one after another. Order columns (`outputs`) tie them
together: a row of a stage keeps the clock and offset of the event that caused it, so the next
stage sees its input in the order that a single kernel would have seen:

    log S    offset 7  key ip=a  ->  stage 1, key partition of a  ->  row of M (offset 7)
             offset 8  key ip=b  ->  stage 1, key partition of b  ->  row of M (offset 8)
    M, sorted by (clock, phase, offset, seq)  ->  stage 2, by city  ->  row of O (offset 7), ...

Used by `edgewise run` and `edgewise replay`.
"""

from __future__ import annotations

import dataclasses
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from edgewise.engines.batch.app_start import AppStartFinder
from edgewise.engines.batch.fault_rows import resolve_fault_offsets
from edgewise.engines.batch.inputs import InputLogs, require_inputs
from edgewise.engines.batch.job import AppStart, BatchRange, Job
from edgewise.engines.batch.outputs import append_outputs
from edgewise.engines.batch.run import answer_query
from edgewise.engines.progress import Progress
from edgewise.errors import SetupError
from edgewise.kernel.codegen.state_owners import PlanComparison
from edgewise.log.api import LogWriter
from edgewise.log.locations import anchor_location
from edgewise.plan.fragments import Fragment
from edgewise.plan.nodes import App, OnDemandQuery
from edgewise.spark.app_plan import SparkPlan, plan_app
from edgewise.spark.checkpoint import Checkpoint, CheckpointRecord
from edgewise.spark.choose import SparkConfig
from edgewise.spark.driver_state import DriverState
from edgewise.spark.fragment_runner import FragmentRunner
from edgewise.spark.micro_batch import MicroBatch, find_targets, read_range, read_stream
from edgewise.spark.plan_change import PlanChange
from edgewise.spark.query_report import QueryReport
from edgewise.spark.tasks import TaskFiles
from edgewise.spark.udf_shipping import ship_modules

CLOSE_WAIT_S = 5.0


class SparkEngine:
    """One app on one Spark session. Made by `open`."""

    def __init__(
        self,
        spark: SparkSession,
        plan: SparkPlan,
        *,
        config: SparkConfig,
        inputs: InputLogs,
        writers: Mapping[str, LogWriter],
        checkpoint: Checkpoint,
        record: CheckpointRecord,
        start: int | None = None,
    ) -> None:
        self.spark = spark
        self.plan = plan
        self.config = config
        self.inputs = inputs
        self.logs = inputs.paths
        self.writers = writers
        self.checkpoint = checkpoint
        self.record = record
        self.start = start
        self.change: PlanComparison | None = None  # to the plan that the state belonged to
        self.stores: dict[str, Any] = {}  # of a `Job`; empty: tables stay in memory
        self.producer = f"spark:{record.id}"  # another checkpoint counts its batches from 0 again
        self.progress = Progress(partitions=config.partitions)
        self._files = TaskFiles(
            self.logs, checkpoint.staging, find_targets(plan, self.logs, writers)
        )
        self._report = QueryReport(spark, plan.app.name)
        self._runner = FragmentRunner(spark, plan, config, self._files, self._report)
        self._start_finder = AppStartFinder(plan.app, plan.fragments)
        self._lock = threading.Lock()  # a batch or an on-demand query, one at a time
        self._version = checkpoint.find_last_version(record)
        self._last: BatchRange | None = None
        self.state = None if plan.between else self._open_state()
        self._revisions = dict.fromkeys((f.name for f in plan.fragments), 0)

    @classmethod
    def open(
        cls,
        spark: SparkSession,
        app: App,
        *,
        logs: Mapping[str, Path | str],
        writers: Mapping[str, LogWriter],
        checkpoint: Path,
        config: SparkConfig | None = None,
        taps: tuple[str, ...] = (),
        start: int | None = None,
    ) -> SparkEngine:
        """Open or create the checkpoint; with another number of partitions state moves first.

        `logs` are the input logs, `writers` the output logs; `taps` and `start` go to the kernels
        (`Job`).
        """
        config = config or SparkConfig()
        config.validate()
        require_inputs(app)
        ship_modules(app)
        plan = plan_app(app, taps)
        opened = Checkpoint(checkpoint.absolute(), anchor_location(config.state))
        schemas = {s.name: s.schema.names for s in plan.app.streams}
        # Executors have other working directories.
        places = {s.name: anchor_location(str(logs[s.name])) for s in plan.app.inputs}
        inputs = InputLogs(places)
        change = PlanChange(plan, inputs, opened)
        record = opened.open(config.partitions, plan.fragments, schemas, change.migrate)
        engine = cls(
            spark,
            plan,
            config=config,
            inputs=inputs,
            writers=writers,
            checkpoint=opened,
            record=record,
            start=start,
        )
        engine.change = change.found
        engine._files.clear_staging()
        engine.progress.offsets = inputs.fill_missing(opened.read_committed_offsets())
        return engine

    def _open_state(self) -> DriverState:
        return DriverState(
            self.plan,
            self.inputs,
            self._describe_range,
            partitions=self.config.partitions,
            state=self.checkpoint.state,
            save_interval_s=self.config.save_interval_s,
        )

    def start_from(self, offsets: Mapping[str, int]) -> None:
        """Where a new checkpoint starts; without it at the earliest offsets of the logs."""
        if self.record.offsets or self.checkpoint.spark.exists():
            raise SetupError(f"{self.checkpoint.path} has begun, it continues where it stopped")
        self._update_record(offsets=dict(offsets), clock=self.inputs.clock_at(dict(offsets)))

    def start_stream(
        self, *, available_now: bool = False, end: Mapping[str, int] | None = None
    ) -> StreamingQuery:
        """The running query; with `available_now` it stops at `end`, or at the logs' heads."""
        self._finish_pending()
        self.checkpoint.remove_unstarted_stream()
        record = self.record
        first = {"offsets": record.offsets, "clock": record.clock} if record.offsets else None
        frame = read_stream(self.spark, self.logs, self.config.rows_max, first, end)
        # As a URI: without a scheme Spark would take the default file system of its cluster.
        writer = frame.writeStream.foreachBatch(self._on_batch).option(
            "checkpointLocation", self.checkpoint.spark.as_uri()
        )
        if available_now:
            writer = writer.trigger(availableNow=True)
        elif self.config.trigger_ms:
            writer = writer.trigger(processingTime=f"{self.config.trigger_ms} milliseconds")
        self._report.detach()
        return self._report.attach(writer.queryName(self._name_query()).start())

    def _name_query(self) -> str:
        """The app's name, unless another query of this session has it."""
        taken = {query.name for query in self.spark.streams.active}
        name = self.plan.app.name
        return f"{name}-{self.record.id[:8]}" if name in taken else name

    def run_stream(self, end: Mapping[str, int] | None = None) -> str:
        """Run a stream to `end` or the logs' heads; Spark's message if it fails, else ''."""
        try:
            self.start_stream(available_now=True, end=end).awaitTermination()
        except StreamingQueryException as failure:
            return str(failure)
        return ""

    def run_history(self, end: Mapping[str, int] | None = None) -> None:
        """Run batches from where the last one ended to `end` or the logs' heads.

        A stream may continue afterwards, from the same checkpoint.
        """
        if self.checkpoint.spark.exists():
            raise SetupError(
                f"{self.checkpoint.path} belongs to a stream; a batch needs one of its own"
            )
        self._finish_pending()
        inputs = self.inputs
        begin = self.record.offsets or inputs.earliest()
        until = inputs.heads() | dict(end or {})
        clock = inputs.clock_at(begin) if self.record.clock is None else self.record.clock
        while True:
            stop = inputs.limit_end(begin, until, self.config.history_rows_max)
            after = max(clock, inputs.clock_at(stop))
            pending = BatchRange(self.record.batches, begin, stop, clock, after)
            self._update_record(pending=pending)
            self._finish_pending()
            if stop == until:
                return
            begin, clock = stop, after

    def ask(self, query: OnDemandQuery) -> list[tuple[Any, ...]]:
        """Run an on-demand query on what the app holds after the last batch."""
        store = query.store or (query.output.target if query.output else "")
        fragment = next((f for f in self.plan.fragments if f.holds(store)), None)
        if fragment is None:
            raise SetupError(f"the app '{self.plan.app.name}' holds no '{store}'")
        with self._lock:
            job = self._build_job(fragment, self._version + 1, 0)
            if self.state is None:
                rows = answer_query(job, query)
            else:
                self.state.flush(self._find_next())
                rows = answer_query(
                    dataclasses.replace(job, saves=False), query, self.state.kernels
                )
            self._revisions[fragment.name] += query.output is not None
        return rows

    def close(self) -> None:
        """Save the state that is in memory, so that the next start feeds nothing again.

        A batch that does not end in time is left to the next start.
        """
        if self._lock.acquire(timeout=CLOSE_WAIT_S):
            with ExitStack() as stack:
                stack.callback(self._lock.release)
                if self.state is not None and self._last is not None:
                    self.state.save(self._last)
        self.inputs.close()

    def _find_next(self) -> BatchRange:
        """An empty batch after the last one."""
        last = self._last
        if last is None and self._version >= self.record.batches:
            batch_id = self._version - self.record.batches
            last = self.checkpoint.read_batch_range(self.record, batch_id, self.inputs)
        if last is None:
            begin = self.record.offsets or self.inputs.earliest()
            clock = self.record.clock or self.inputs.clock_at(begin)
            return BatchRange(self._version + 1, begin, begin, clock, clock)
        return BatchRange(last.batch_id + 1, last.end, last.end, last.clock, last.clock)

    def _finish_pending(self) -> None:
        """Run the batch over history that was written down, maybe a second time."""
        pending = self.record.pending
        if pending is None:
            return
        self.run_batch(lambda: read_range(self.spark, self.logs, pending), pending)
        done = pending.batch_id + 1
        self._update_record(pending=None, batches=done, offsets=pending.end, clock=pending.clock)

    def _update_record(self, **changes: Any) -> None:
        self.record = msgspec.structs.replace(self.record, **changes)
        self.checkpoint.write(self.record)

    def _on_batch(self, frame: DataFrame, batch_id: int) -> None:
        batch = self.checkpoint.read_batch_range(self.record, batch_id, self.inputs)
        self.run_batch(lambda: frame, batch)
        self._report.count_rows(batch.rows)

    def run_batch(self, read_frame: Callable[[], DataFrame], range_: BatchRange) -> None:
        """Run all fragments over one batch and append what they emit."""
        began = time.monotonic()
        batch = MicroBatch(range_, read_frame, self.inputs)
        with self._lock:
            if self.state is not None and not self.state.begin(range_):
                self._version, self._last = range_.batch_id, range_
                return
            in_driver = self._find_driver_fragments(batch)
            events, app_start = self._inspect_batch(batch)
            at = self.inputs.last_capture_time(range_.start, range_.end)
            read = time.monotonic()
            outputs: dict[str, list[Any]] = {}
            stage_rows: dict[str, Any] = {}
            faulty = False  # a further fault then starts again from here
            for fragment in self.plan.fragments:
                job = self._build_job(
                    fragment,
                    range_.batch_id,
                    range_.clock,
                    at=at,
                    app_start=app_start,
                    saves=self.state is None or fragment not in in_driver,
                )
                earlier = next((stage_rows[n] for n in fragment.inputs if n in stage_rows), None)
                kernels = None if self.state is None else self.state.kernels
                output = self._runner.run(job, batch, earlier, kernels)
                self.progress.record_fragment(fragment.name, output)
                faulty = faulty or "faults" in output.counts
                emitted = {s.name for s in job.outputs}
                for stream in self.plan.between:
                    if stream in emitted:
                        schema = self.plan.app.stream(stream).schema
                        stage_rows[stream] = output.sort_stream(stream, schema)
                for stream, rows in (*output.iterate_sorted(), *output.encoded.items()):
                    outputs.setdefault(stream, []).append(rows)
            ran = time.monotonic()
            resolve_fault_offsets(outputs, self.inputs)
            rows_out = append_outputs(self.writers, outputs, self.producer, range_.batch_id)
            self._version, self._last = range_.batch_id, range_
            if self.state is not None:
                self.state.finish(range_, in_driver, now=faulty)
        phases = {"read": read - began, "run": ran - read, "append": time.monotonic() - ran}
        self.progress.record_batch(range_, rows_out, phases, events)

    def _inspect_batch(self, batch: MicroBatch) -> tuple[int, AppStart | None]:
        """How many events it has, and the app's first event while that may be among them.

        Of a large batch the driver reads only the first rows; idle ticks count as events there.
        """
        if batch.range.rows > self.config.small_batch_rows:
            return batch.range.rows, self._start_finder.find(batch.range, self.inputs)
        table = batch.table
        return table.num_rows, self._start_finder.find(batch.range, self.inputs, table)

    def _find_driver_fragments(self, batch: MicroBatch) -> list[Fragment]:
        """Fragments that will run in the driver; for the others its state is written to files."""
        found = self._runner.find_driver_fragments(batch)
        elsewhere = [f for f in self.plan.fragments if f not in found]
        if self.state is not None and not all(f.stateless for f in elsewhere):
            self.state.flush(batch.range)
        return found

    def _describe_range(
        self, fragment: Fragment, batch: BatchRange, app_start: AppStart | None = None
    ) -> Job:
        return self._build_job(
            fragment, batch.batch_id, batch.clock, app_start=app_start, saves=False
        )

    def _build_job(self, fragment: Fragment, version: int, clock: int, **more: Any) -> Job:
        return Job(
            app=self.plan.app,
            fragment=fragment,
            version=version,
            clock=clock,
            state_root=self.checkpoint.locate_state(self.record, fragment.name),
            streams=(*self.logs, *self.plan.between),
            fingerprint=self.plan.fingerprint,
            taps=self.plan.taps,
            start=self.start,
            reads=self.plan.reads[fragment.name],
            revision=self._revisions[fragment.name],
            **(self.stores | more),
        )
