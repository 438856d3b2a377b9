"""Run an app event by event in this process, from its input logs to its output logs.

The embedded engine gives the same rows and the same guarantee as Spark, without a JVM and with
milliseconds between an event and its rows; in exchange it has one process for all keys. Exactly
once is kept as on Spark:

    1. the range of a micro-batch is written to <checkpoint>/steps/<batch id>.json
    2. its rows are computed and appended with the batch id as sequence number
    3. every few seconds the state is saved (`engines.state.saver`)

After a crash the last save is loaded, the events up to the last range are fed without output, and
the last range is computed again; output logs that have its rows already know the sequence number
and take nothing twice. `edgewise run --engine embedded` uses it.
"""

from __future__ import annotations

import dataclasses
import json
import os
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow.compute as pc

from edgewise.engines.batch.app_start import AppStartFinder
from edgewise.engines.batch.catch_up import CatchUp
from edgewise.engines.batch.fault_rows import resolve_fault_offsets
from edgewise.engines.batch.inputs import InputLogs, Offsets
from edgewise.engines.batch.job import AppStart, BatchRange, Job
from edgewise.engines.batch.live_kernels import LiveKernels, fingerprint_plan
from edgewise.engines.batch.outputs import append_outputs
from edgewise.engines.batch.run import run_key_partition
from edgewise.engines.batch.select_rows import filter_rows
from edgewise.engines.embedded.fragments import split_for_one_process
from edgewise.engines.progress import Progress
from edgewise.engines.state.migrate import (
    KEY_PARTITION,
    StateLocation,
    locate_fragment,
    migrate_state,
    require_own_checkpoint,
)
from edgewise.engines.state.save_schedule import INTERVAL_S, SaveSchedule
from edgewise.engines.state.saver import SavePoint, StateSaver
from edgewise.engines.state.storage import LocalStorage
from edgewise.engines.state.store import StateStore
from edgewise.errors import StateError
from edgewise.event.arrow import AT
from edgewise.kernel.compile import Kernel
from edgewise.kernel.state.queue_parts import LaterEntries
from edgewise.log.api import LogWriter
from edgewise.log.files import sync_directory
from edgewise.plan.fragments import Fragment
from edgewise.plan.nodes import App
from edgewise.plan.rules.column_pruning import find_read_attributes
from edgewise.plan.rules.rewrite import rewrite

RANGES = "steps"  # directory of batch ranges; the name is part of the format
RANGES_KEPT = 4
STORES = "stores"  # directory of databases that are files
BATCH_ROWS_MAX = 20_000


class EmbeddedEngine:
    """One app, in this process, from its input logs to its output logs. Made by `open`."""

    def __init__(
        self,
        app: App,
        *,
        logs: Mapping[str, Path | str],
        writers: Mapping[str, LogWriter],
        checkpoint: Path,
        rows_max: int,
        save_interval_s: float,
    ) -> None:
        self.app = app = rewrite(app)
        self.rows_max = rows_max
        self.fragments = split_for_one_process(app)
        self.inputs = InputLogs({s.name: str(logs[s.name]) for s in app.inputs})
        self.writers = writers
        self.state = str(checkpoint / "state")
        self.progress = Progress()
        self.saver = StateSaver(LocalStorage(checkpoint), SaveSchedule(save_interval_s))
        self._checkpoint = checkpoint
        self._ranges = checkpoint / RANGES
        self._reads = {f.name: find_read_attributes(app, f) for f in self.fragments}
        self._fingerprint = fingerprint_plan(app, self.fragments)
        self._start_finder = AppStartFinder(app, self.fragments)
        self._catch_up = CatchUp(app, self.fragments, self.inputs, self._build_job, _select_all)
        self._kernels = LiveKernels(self._load_kernel, max(1, len(self.fragments)))
        self._location: StateLocation | None = None
        self._last: BatchRange
        self._running: BatchRange | None = None  # None between batches

    @property
    def location(self) -> StateLocation:
        assert self._location is not None
        return self._location

    @classmethod
    def open(
        cls,
        app: App,
        *,
        logs: Mapping[str, Path | str],
        writers: Mapping[str, LogWriter],
        checkpoint: Path,
        rows_max: int = BATCH_ROWS_MAX,
        skip_to: Mapping[str, int] | None = None,
        start_ms: int | None = None,
        save_interval_s: float = INTERVAL_S,
    ) -> EmbeddedEngine:
        """Open the checkpoint, migrate its state to this plan, compute the last batch again.

        `skip_to` skips all events before these offsets, and drops the state. A new checkpoint
        starts where event time has reached `start_ms`, without it at the logs' first events. State
        is saved every `save_interval_s` seconds, 0 for after each batch.
        """
        engine = cls(
            app,
            logs=logs,
            writers=writers,
            checkpoint=checkpoint,
            rows_max=rows_max,
            save_interval_s=save_interval_s,
        )
        require_own_checkpoint(checkpoint, "embedded")
        engine._open(None if skip_to is None else dict(skip_to), start_ms)
        return engine

    @classmethod
    def read_committed_offsets(cls, checkpoint: Path) -> Mapping[str, int]:
        """The offsets before which no event is needed again; empty without a checkpoint."""
        last = _read_last_range(checkpoint / RANGES)
        if last is None:
            return {}
        saved = StateSaver(LocalStorage(checkpoint)).load()
        return last.start if saved is None else saved.offsets

    def run_batch(self, timeout_s: float) -> int:
        """Wait for new events, run them as one micro-batch, return how many rows it had."""
        start = dict(self._last.end)
        self._wait(start, timeout_s)
        end = self.inputs.limit_end(start, self.inputs.heads(), self.rows_max)
        if end == start:
            return 0
        clock = max(self._last.clock, self.inputs.clock_at(end))
        batch = BatchRange(self._last.batch_id + 1, start, end, self._last.clock, clock)
        self._write_range(batch)
        self._run(batch)
        return batch.rows

    def close(self) -> None:
        """Save the state, so that the next start feeds nothing again."""
        if self.saver.rows and self._running is None:
            self._save()
        self.saver.close()
        self.inputs.close()

    def _save(self) -> None:
        last = self._last
        self._check_sole(_read_last_range(self._ranges))
        stateful = [f for f in self.fragments if not f.stateless]

        def collect() -> list[tuple[StateStore, LaterEntries]]:
            jobs = [self._build_job(fragment, last) for fragment in stateful]
            return [
                (self._store(job.fragment), self._kernels.collect_changes(job, KEY_PARTITION))
                for job in jobs
            ]

        self.saver.save(SavePoint(last.batch_id, dict(last.end), last.clock), collect)

    def _store(self, fragment: Fragment) -> StateStore:
        return StateStore(self._locate(fragment), KEY_PARTITION)

    def _locate(self, fragment: Fragment) -> str:
        """Where its state is; '' while that of the plan before is being migrated."""
        return "" if self._location is None else locate_fragment(self._location.state, fragment)

    def _open(self, skip_to: Offsets | None, start_ms: int | None) -> None:
        self._ranges.mkdir(parents=True, exist_ok=True)
        for leftover in self._ranges.glob("*.tmp"):
            leftover.unlink(missing_ok=True)
        written = _read_last_range(self._ranges)
        saved = self._load_save_point(written, start_ms)
        version = None if saved is None else (saved.version, saved.clock)

        def rebuild(fragment: Fragment, key_partition: int) -> Kernel | None:
            assert saved is not None
            return self._catch_up.rebuild(fragment, key_partition, saved.offsets)

        self._location = migrate_state(
            self.app, self.fragments, self._checkpoint, version, rebuild
        )
        if written is None or skip_to is None:
            self._last = self._repeat(written)
        else:
            self._last = self._skip(written, skip_to)
        self.progress.offsets = dict(self._last.end)

    def _load_save_point(
        self, written: BatchRange | None, start_ms: int | None
    ) -> SavePoint | None:
        """A checkpoint from before there were save points has the state of every batch."""
        saved = self.saver.load()
        if saved is not None:
            return saved
        if written is None:
            inputs = self.inputs
            first = inputs.earliest() if start_ms is None else inputs.find_offsets_at(start_ms)
            self.saver.mark_saved(SavePoint(-1, first, inputs.clock_at(first)))
            return None
        saved = SavePoint(written.batch_id - 1, dict(written.start), written.clock_start)
        self.saver.mark_saved(saved)
        return saved

    def _wait(self, offsets: Mapping[str, int], timeout_s: float) -> None:
        if self.inputs.heads() == offsets:
            share = timeout_s / len(offsets)
            for stream, offset in offsets.items():
                if self.inputs.reader(stream).wait(offset, share):
                    return

    def _run(self, batch: BatchRange) -> None:
        began = time.monotonic()
        self._running, faulty = batch, False
        table = self.inputs.read_table(batch.start, batch.end, batch.clock_start)
        read = time.monotonic()
        app_start = self._start_finder.find(batch, self.inputs, table)
        at = pc.max(table.column(AT)).as_py()
        at = at or self.inputs.last_capture_time(batch.start, batch.end)
        outputs: dict[str, list[Any]] = {}
        for fragment in self.fragments:
            job = self._build_job(fragment, batch, app_start, at)
            rows = filter_rows(table, job).to_batches()
            output = run_key_partition(job, KEY_PARTITION, rows, self._kernels)
            self.progress.record_fragment(fragment.name, output)
            faulty = faulty or "faults" in output.counts
            for stream, emitted in output.iterate_sorted():
                outputs.setdefault(stream, []).append(emitted)
        ran = time.monotonic()
        resolve_fault_offsets(outputs, self.inputs)
        count = append_outputs(self.writers, outputs, self.location.producer, batch.batch_id)
        phases = {"read": read - began, "run": ran - read, "append": time.monotonic() - ran}
        self.progress.record_batch(batch, count, phases, table.num_rows)
        self.saver.record_rows(batch.rows)
        self._last, self._running = batch, None
        if faulty or self.saver.is_due():  # a further fault then starts again from here
            self._save()

    def _build_job(
        self,
        fragment: Fragment,
        batch: BatchRange,
        app_start: AppStart | None = None,
        at: int = 0,
    ) -> Job:
        return Job(
            app=self.app,
            fragment=fragment,
            version=batch.batch_id,
            clock=batch.clock,
            saves=False,
            state_root=self._locate(fragment),
            streams=tuple(self.inputs.paths),
            fingerprint=self._fingerprint,
            reads=self._reads[fragment.name],
            app_start=app_start,
            at=at,
            store_writer="" if self._location is None else self._location.producer,
            store_directory=str(self._checkpoint / STORES),
        )

    def _load_kernel(self, job: Job, key_partition: int, *, guarded: bool = False) -> Kernel:
        self.saver.wait()  # what is being saved now is the base of the next changes
        saved, running = self.saver.saved, self._running
        assert saved is not None
        assert running is not None
        until = running.start
        kernel, rows = self._catch_up.load(job, key_partition, saved, until, guarded=guarded)
        self.saver.stats.replayed_rows = max(self.saver.stats.replayed_rows, rows)
        return kernel

    def _repeat(self, written: BatchRange | None) -> BatchRange:
        """Compute the last batch again: it may have been interrupted anywhere."""
        if written is None:
            assert self.saver.saved is not None
            first = self.inputs.fill_missing(dict(self.saver.saved.offsets))
            clock = self.inputs.clock_at(first)
            return BatchRange(-1, first, first, clock, clock)
        start, end = (self.inputs.fill_missing(dict(o)) for o in (written.start, written.end))
        last = dataclasses.replace(written, start=start, end=end)
        if self.saver.saved is None or self.saver.saved.version < last.batch_id:
            self._run(last)
        return last

    def _skip(self, written: BatchRange, heads: Offsets) -> BatchRange:
        """An empty batch from an empty state; batch ids go on, the output logs know them."""
        for fragment in self.fragments:
            self._store(fragment).start_from(written.batch_id, {})
        clock = max(written.clock, self.inputs.clock_at(heads))
        self.saver.mark_saved(SavePoint(written.batch_id, heads, clock))
        batch = BatchRange(written.batch_id + 1, heads, heads, clock, clock)
        self._write_range(batch)
        self._run(batch)
        return batch

    def _check_sole(self, written: BatchRange | None) -> None:
        """Of two engines on one checkpoint, the one that is behind saves nothing."""
        if written is not None and written.batch_id > self._last.batch_id:
            raise StateError(f"{self._ranges} was written by another engine; stop one of them")

    def _write_range(self, batch: BatchRange) -> None:
        """A range is written once: of two engines on one checkpoint the second one stops."""
        path = self._ranges / f"{batch.batch_id}.json"
        temporary = path.with_suffix(f".{os.getpid()}.tmp")
        with temporary.open("w") as file:
            json.dump(dataclasses.asdict(batch), file)
            file.flush()
            os.fsync(file.fileno())
        try:
            path.hardlink_to(temporary)
        except FileExistsError:
            raise StateError(
                f"{path} was written by another engine on this data directory; stop one of them"
            ) from None
        finally:
            temporary.unlink()
        sync_directory(self._ranges)
        (self._ranges / f"{batch.batch_id - RANGES_KEPT}.json").unlink(missing_ok=True)


def _select_all(table: Any, job: Job, key_partition: int) -> Iterable[Any]:  # noqa: ARG001
    """The one key partition has all keys."""
    batches: list[Any] = filter_rows(table, job).to_batches()
    return batches


def _read_last_range(ranges: Path) -> BatchRange | None:
    """The last batch that was begun."""
    numbers = sorted(int(p.stem) for p in ranges.glob("*.json"))
    if not numbers:
        return None
    return BatchRange(**json.loads((ranges / f"{numbers[-1]}.json").read_text()))
