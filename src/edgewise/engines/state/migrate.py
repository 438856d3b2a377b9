"""Migrate the state of a checkpoint when the app changes: from the old plan to the new one.

    <checkpoint>/plan.json        which plan the state belongs to: its generation, its layouts
    <checkpoint>/state/<n>/       the state of generation n, by fragment

The embedded engine asks for its state directory whenever it starts. Where the plan differs from
the one in plan.json, the state of the last version is copied into new files, then plan.json is
replaced in one step, then the old files are removed: a crash at any point leaves one of the two.
Spark does the same with its own record (`spark.plan_change`), by key partition.

A query that stayed the same may get other keys from its new neighbours, or lose them, or keep its
state in another shape. Such state cannot be copied; it is rebuilt from the log, which takes time
and needs the log to be there still.
"""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from edgewise.engines.state.storage import join_path
from edgewise.engines.state.store import FIX, StateStore
from edgewise.errors import SetupError, StateError
from edgewise.kernel.codegen.state_owners import PlanComparison, StateLayout, compare, defined
from edgewise.kernel.compile import Kernel, compile_kernel
from edgewise.log.files import sync_directory
from edgewise.plan.fragments import Fragment
from edgewise.plan.nodes import App

KEY_PARTITION = 0  # the engine that runs in one process has one
PLAN_FILE = "plan.json"
CHECKPOINT_FILES = {"embedded": PLAN_FILE, "spark": "app.json"}  # by which an engine is known
# A kernel with the state of the last version of a key partition, from the log; None where that
# cannot be had.
Rebuild = Callable[[Fragment, int], Kernel | None]


class SavedPlan(msgspec.Struct, frozen=True):
    """`id` tells the rows of this checkpoint from those of an earlier one; '' in old files."""

    generation: int
    layouts: dict[str, StateLayout]
    id: str = ""


@dataclass(frozen=True, slots=True)
class StateLocation:
    """Where the state of the running plan is, the producer name of its rows, and the difference
    to the plan before, if there is one.
    """

    state: Path
    producer: str
    change: PlanComparison | None = None


def migrate_state(
    app: App,
    fragments: Sequence[Fragment],
    checkpoint: Path,
    last: tuple[int, int] | None,
    rebuild: Rebuild,
) -> StateLocation:
    """`last` is the version that will be loaded first, and the app's time then."""
    layouts = {f.name: compile_kernel(app, f).layout for f in fragments}
    old = read_saved_plan(checkpoint)
    if old is None:
        old = SavedPlan(0, layouts, uuid.uuid4().hex)  # noqa: TID251
        _write(checkpoint, old)
    if old.layouts == layouts:
        return StateLocation(_locate_state(checkpoint, old.generation), _name_producer(old))
    new = SavedPlan(old.generation + 1, layouts, old.id)
    source, target = (_locate_state(checkpoint, p.generation) for p in (old, new))
    shutil.rmtree(target, ignore_errors=True)  # of a migration that was interrupted
    carry = StateCarrier(app, old.layouts, str(source), str(target), rebuild)
    for fragment in fragments:
        if last is not None and last[0] >= 0 and not fragment.stateless:
            carry.copy(fragment, KEY_PARTITION, *last)
    _write(checkpoint, new)
    shutil.rmtree(source, ignore_errors=True)
    change = compare(old.layouts.values(), layouts.values(), carry.rebuilt)
    return StateLocation(target, _name_producer(new), change)


@dataclass(frozen=True, slots=True)
class StateCarrier:
    """Copies states of the plan `layouts`, under `source`, to those of `app`, under `target`: both
    are paths or URIs with a directory per fragment.
    """

    app: App
    layouts: Mapping[str, StateLayout]  # of the old plan, by fragment
    source: str
    target: str
    rebuild: Rebuild
    rebuilt: set[str] = field(default_factory=set)  # owners whose state came from the log

    def copy(self, fragment: Fragment, key_partition: int, version: int, clock: int) -> None:
        """One key partition of a fragment of the new plan, from all old fragments that hold state
        of its owners: with the same keys, so in the same key partition.
        """
        kernel = compile_kernel(self.app, fragment)
        for name, layout in self.layouts.items():
            if layout.alike(kernel.layout) and set(layout.names) & set(kernel.layout.names):
                store = StateStore(join_path(self.source, name), key_partition)
                if store.versions():
                    kernel.carry(layout, store.load(version).items(), clock)
        lost = _find_lost(self.layouts, kernel.layout)
        if lost and (built := self.rebuild(fragment, key_partition)) is not None:
            kernel.carry(built.layout.only(lost), _list_states(built), clock)
            self.rebuilt.update(lost)
        store = StateStore(join_path(self.target, fragment.name), key_partition)
        store.start_from(version, dict(_list_states(kernel)))


def _name_producer(plan: SavedPlan) -> str:
    """By checkpoint: another one counts from 0 again, and the logs must not take that for this."""
    return f"embedded:{plan.id}" if plan.id else "embedded"


def require_own_checkpoint(checkpoint: Path, engine: str) -> None:
    """SetupError for a checkpoint of the other engine: this one would start from the beginning."""
    if (checkpoint / CHECKPOINT_FILES[engine]).exists():
        return
    for other in CHECKPOINT_FILES.keys() - {engine}:
        if (checkpoint / CHECKPOINT_FILES[other]).exists():
            raise SetupError(
                f"{checkpoint} was written by --engine {other}; with --engine {engine} all rows "
                f"would be appended a second time: use --engine {other}, another --data, or "
                "remove the checkpoint"
            )


def locate_fragment(state: Path, fragment: Fragment | str) -> str:
    """The directory of a fragment's state."""
    return str(state / (fragment if isinstance(fragment, str) else fragment.name))


def _find_lost(old: Mapping[str, StateLayout], new: StateLayout) -> set[str]:
    """Owners that are defined as before, but with other keys or another shape of their state."""
    carried = {i for was in old.values() if was.alike(new) for i in was.names}
    known = {defined(i) for was in old.values() for i in was.names}
    return {i for i in new.names if i not in carried and defined(i) in known}


def _list_states(kernel: Kernel) -> list[tuple[bytes, bytes]]:
    return [(key, state) for key, state in kernel.changed() if state is not None]


def _locate_state(checkpoint: Path, generation: int) -> Path:
    return checkpoint / "state" / str(generation)


def read_saved_plan(checkpoint: Path) -> SavedPlan | None:
    """The plan whose state the checkpoint holds; None where nothing ran on it yet."""
    path = checkpoint / PLAN_FILE
    if not path.exists():
        return None
    try:
        return msgspec.json.decode(path.read_bytes(), type=SavedPlan)
    except msgspec.DecodeError as why:
        raise StateError(f"{path} is torn ({why}); {FIX}") from why


def _write(checkpoint: Path, plan: SavedPlan) -> None:
    checkpoint.mkdir(parents=True, exist_ok=True)
    path = checkpoint / PLAN_FILE
    temporary = path.with_suffix(f".{os.getpid()}.tmp")
    with temporary.open("wb") as file:
        file.write(msgspec.json.encode(plan))
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
    sync_directory(checkpoint)
