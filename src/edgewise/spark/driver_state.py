"""Keep the state of kernels that run in the driver, and save it when it pays.

Small batches run in the driver, whose kernels stay in memory; their state is saved every few
seconds (`engines.state.saver`), not with each batch. Tasks run anywhere, so they need the state of
the version before theirs in files, and write their own:

    batch      7 driver   8 driver   9 tasks              10 driver
    in files   5          5          8 (saved first), 9   9
    memory     7          8          -                    10

A plan with stages saves with every batch: what a later stage is fed is nowhere but in the batch.
Used by `execution`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from edgewise.engines.batch.catch_up import CatchUp
from edgewise.engines.batch.inputs import InputLogs
from edgewise.engines.batch.job import AppStart, BatchRange, Job
from edgewise.engines.batch.live_kernels import LiveKernels
from edgewise.engines.batch.select_rows import split_rows
from edgewise.engines.state.save_schedule import SaveSchedule
from edgewise.engines.state.saver import SavePoint, StateSaver
from edgewise.engines.state.storage import open_storage
from edgewise.engines.state.store import StateStore
from edgewise.kernel.compile import Kernel
from edgewise.kernel.state.queue_parts import LaterEntries
from edgewise.plan.fragments import Fragment
from edgewise.spark.app_plan import SparkPlan

BuildJob = Callable[[Fragment, BatchRange, AppStart | None], Job]


class DriverState:
    """The kernels of the driver and how far their state is saved."""

    def __init__(
        self,
        plan: SparkPlan,
        inputs: InputLogs,
        build_job: BuildJob,
        *,
        partitions: int,
        state: str,
        save_interval_s: float,
    ) -> None:
        self.saver = StateSaver(open_storage(state), SaveSchedule(save_interval_s))
        self._stateful = [f for f in plan.fragments if not f.stateless]
        self._partitions = partitions
        self._build_job = build_job
        self._catch_up = CatchUp(plan.app, plan.fragments, inputs, build_job, self._select)
        limit = max(1, len(plan.fragments) * partitions)
        self.kernels = LiveKernels(self._load, limit)
        self._running: BatchRange | None = None

    def begin(self, batch: BatchRange) -> bool:
        """Whether the batch has still to run: one whose state is saved was appended before."""
        self._running = batch
        saved = self.saver.saved or self.saver.load()
        if saved is None:
            before = SavePoint(batch.batch_id - 1, dict(batch.start), batch.clock_start)
            self.saver.mark_saved(before)
            return True
        return saved.version < batch.batch_id

    def flush(self, batch: BatchRange) -> None:
        """Write the state before `batch` to files, for tasks or for an on-demand query."""
        self._running = batch
        self.saver.wait()
        saved = self.saver.saved
        if saved is None or saved.version >= batch.batch_id - 1:
            return
        before = BatchRange(
            batch.batch_id - 1, batch.start, batch.start, batch.clock_start, batch.clock_start
        )
        for fragment in self._stateful:
            for index in range(self._count(fragment)):
                kernel = self.kernels.take(self._build_job(fragment, batch, None), index)
                self.kernels.keep(self._build_job(fragment, before, None), index, kernel)
        self._save(before, self._stateful)
        self.saver.wait()

    def finish(self, batch: BatchRange, in_driver: Sequence[Fragment], *, now: bool) -> None:
        """After the rows of a batch were appended. `in_driver` ran here, others saved themselves.

        `now` saves without waiting for the interval.
        """
        self.saver.record_rows(batch.rows)
        stateful = [f for f in in_driver if not f.stateless]
        if len(stateful) < len(self._stateful) or now or self.saver.is_due():
            self._save(batch, stateful)

    def save(self, batch: BatchRange) -> None:
        """Save what the driver has after `batch`, for an orderly stop."""
        if self.saver.rows:
            self._save(batch, self._stateful)
        self.saver.close()

    def _save(self, batch: BatchRange, fragments: Sequence[Fragment]) -> None:
        def collect() -> list[tuple[StateStore, LaterEntries]]:
            found = []
            for fragment in fragments:
                job = self._build_job(fragment, batch, None)
                for index in range(self._count(fragment)):
                    entries = self.kernels.collect_changes(job, index)
                    found.append((StateStore(job.state_root, index), entries))
            return found

        self.saver.save(SavePoint(batch.batch_id, dict(batch.end), batch.clock), collect)

    def _load(self, job: Job, key_partition: int, *, guarded: bool = False) -> Kernel:
        self.saver.wait()  # what is being saved now is the base of the next changes
        saved, running = self.saver.saved, self._running
        assert saved is not None
        assert running is not None
        until = running.start
        kernel, rows = self._catch_up.load(job, key_partition, saved, until, guarded=guarded)
        self.saver.stats.replayed_rows = max(self.saver.stats.replayed_rows, rows)
        return kernel

    def _select(self, table: Any, job: Job, key_partition: int) -> Iterable[Any]:
        shares: list[Iterable[Any]] = list(split_rows(table, job, self._count(job.fragment)))
        return shares[key_partition]

    def _count(self, fragment: Fragment) -> int:
        return self._partitions if fragment.keyed else 1
