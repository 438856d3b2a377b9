"""Carry the state of a checkpoint over to an app that changed, by key partition.

The record of a checkpoint says which plan its state belongs to. Where the app that opens it has
another one, queries that stayed the same keep their state: it is copied to the next generation,
then the record is replaced in one step, then the old files go. State that cannot be copied, since
its keys changed, is rebuilt from the logs where they are short enough. Used by `execution`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import msgspec

from edgewise.engines.batch.catch_up import CatchUp
from edgewise.engines.batch.inputs import InputLogs
from edgewise.engines.batch.job import AppStart, BatchRange, Job
from edgewise.engines.batch.select_rows import split_rows
from edgewise.engines.state.migrate import StateCarrier
from edgewise.engines.state.saver import SavePoint
from edgewise.engines.state.storage import join_path, open_storage
from edgewise.kernel.codegen.state_owners import PlanComparison, compare
from edgewise.kernel.compile import Kernel, compile_kernel
from edgewise.plan.fragments import Fragment
from edgewise.spark.app_plan import SparkPlan
from edgewise.spark.checkpoint import Checkpoint, CheckpointRecord


@dataclass
class PlanChange:
    """`found` is the difference, once `migrate` has met one."""

    plan: SparkPlan
    inputs: InputLogs
    checkpoint: Checkpoint
    found: PlanComparison | None = None

    def migrate(self, record: CheckpointRecord) -> CheckpointRecord:
        """The record for this plan, its state copied where the record was of another one."""
        plan = self.plan
        layouts = {f.name: compile_kernel(plan.app, f).layout for f in self._list_kernels()}
        if record.layouts == layouts:
            return record
        if not record.layouts:  # new, or written before plans were recorded
            return self._write(msgspec.structs.replace(record, layouts=layouts))
        moved = msgspec.structs.replace(record, layouts=layouts, generation=record.generation + 1)
        source, target = (
            join_path(self.checkpoint.state, str(r.generation)) for r in (record, moved)
        )
        open_storage(target).clear()  # of a migration that was interrupted
        saved = self.checkpoint.find_saved(record)

        def rebuild(fragment: Fragment, key_partition: int) -> Kernel | None:
            return self._rebuild(fragment, key_partition, saved, record.partitions)

        carry = StateCarrier(plan.app, record.layouts, source, target, rebuild)
        for fragment in self._list_kernels() if saved.version >= 0 else ():
            if not fragment.stateless:
                for key_partition in range(record.partitions if fragment.keyed else 1):
                    carry.copy(fragment, key_partition, saved.version, saved.clock)
        self.found = compare(record.layouts.values(), layouts.values(), carry.rebuilt)
        return self._write(moved)

    def _write(self, record: CheckpointRecord) -> CheckpointRecord:
        self.checkpoint.write(record)
        return record

    def _list_kernels(self) -> Iterable[Fragment]:
        """Fragments that may have state: some of the others have no kernel."""
        return [f for f in self.plan.fragments if self.plan.traits[f.name].has_kernel]

    def _rebuild(
        self, fragment: Fragment, key_partition: int, saved: SavePoint, partitions: int
    ) -> Kernel | None:
        plan = self.plan

        def build_job(part: Fragment, batch: BatchRange, app_start: AppStart | None) -> Job:
            return Job(
                app=plan.app,
                fragment=part,
                version=batch.batch_id,
                clock=batch.clock,
                state_root="",
                streams=(*self.inputs.paths, *plan.between),
                fingerprint=plan.fingerprint,
                reads=plan.reads[part.name],
                app_start=app_start,
                saves=False,
            )

        def select(table: Any, job: Job, index: int) -> Iterable[Any]:
            count = partitions if job.fragment.keyed else 1
            shares: list[Iterable[Any]] = list(split_rows(table, job, count))
            return shares[index]

        catch_up = CatchUp(plan.app, plan.fragments, self.inputs, build_job, select)
        return catch_up.rebuild(fragment, key_partition, saved.offsets)
