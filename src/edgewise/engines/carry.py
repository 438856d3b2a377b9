"""Kept state when the app changes: a checkpoint of one plan becomes that of the next.

    <checkpoint>/plan.json        which plan the state belongs to: its number, its layouts
    <checkpoint>/state/<n>/       the state under plan n, by fragment

An engine asks for its state directory whenever it starts. Where the plan is another than the one
written down, the states of the last version are carried into new files, then the plan is replaced
in one step, then the old files go: a crash at any point leaves one of the two.

A query that stayed the same may get other keys from its new neighbours, or lose them, or keep its
state in another shape. That cannot be carried; it is built again from the log.
"""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from edgewise.engines.kernel.compile import Compiled, compile_kernel
from edgewise.engines.kernel.layout import Change, Layout, compare, defined
from edgewise.engines.state import FIX, StateStore
from edgewise.errors import SetupError, StateError
from edgewise.log.files import sync_directory
from edgewise.plan.fragments import Fragment
from edgewise.plan.nodes import App

PART = 0
PLAN = "plan.json"
MARKS = {"embedded": PLAN, "spark": "app.json"}  # by engine, a file that its checkpoints have
# The state of a fragment as of the last version, from history; None where that is too long.
Rebuild = Callable[[Fragment], Compiled | None]


class Plan(msgspec.Struct, frozen=True):
    """`id` tells the rows of this checkpoint from those of one before it; '' in old ones."""

    generation: int
    layouts: dict[str, Layout]
    id: str = ""


@dataclass(frozen=True, slots=True)
class Home:
    """Where the state of the running plan is, as whom it writes, and what became of the plan
    before, if it changed.
    """

    state: Path
    producer: str
    change: Change | None = None


def settle(
    app: App,
    fragments: Sequence[Fragment],
    checkpoint: Path,
    last: tuple[int, int] | None,
    rebuild: Rebuild,
) -> Home:
    """`last` is the version that will be asked for first, and the app's time then."""
    layouts = {f.name: compile_kernel(app, f).layout for f in fragments}
    old = _read(checkpoint)
    if old is None:
        old = Plan(0, layouts, uuid.uuid4().hex)  # noqa: TID251
        _write(checkpoint, old)
    if old.layouts == layouts:
        return Home(_state(checkpoint, old.generation), _producer(old))
    new = Plan(old.generation + 1, layouts, old.id)
    source, target = _state(checkpoint, old.generation), _state(checkpoint, new.generation)
    shutil.rmtree(target, ignore_errors=True)  # of a change that was cut off
    again: set[str] = set()
    for fragment in fragments:
        if last is None or last[0] < 0 or fragment.stateless:
            continue
        version, clock = last
        kernel = compile_kernel(app, fragment)
        _carry(kernel, source, old.layouts, last)
        lost = _lost(old.layouts, layouts[fragment.name])
        if lost and (built := rebuild(fragment)) is not None:
            kernel.carry(built.layout.only(lost), _states(built), clock)
            again |= lost
        StateStore(state_root(target, fragment), PART).start_from(version, dict(_states(kernel)))
    _write(checkpoint, new)
    shutil.rmtree(source, ignore_errors=True)
    change = compare(old.layouts.values(), layouts.values(), again)
    return Home(target, _producer(new), change)


def _producer(plan: Plan) -> str:
    """Another checkpoint starts its own sequence of numbers: it must not be taken for this one."""
    return f"embedded:{plan.id}" if plan.id else "embedded"


def demand_own(checkpoint: Path, engine: str) -> None:
    """An engine does not go on where another stopped: it would begin anew in the same place."""
    if (checkpoint / MARKS[engine]).exists():
        return
    for other in MARKS.keys() - {engine}:
        if (checkpoint / MARKS[other]).exists():
            raise SetupError(
                f"{checkpoint} is of --engine {other}; with {engine} all rows would come a second "
                f"time: go on with --engine {other}, take another --data, or remove it"
            )


def state_root(state: Path, fragment: Fragment | str) -> str:
    """Where the state of a fragment is; the engine that runs in one process has one part."""
    return str(state / (fragment if isinstance(fragment, str) else fragment.name))


def _lost(old: Mapping[str, Layout], new: Layout) -> set[str]:
    """Owners that stayed the same in another house, or in another shape."""
    carried = {i for was in old.values() if was.alike(new) for i in was.names}
    known = {defined(i) for was in old.values() for i in was.names}
    return {i for i in new.names if i not in carried and defined(i) in known}


def _states(kernel: Compiled) -> list[tuple[bytes, bytes]]:
    return [(key, state) for key, state in kernel.changed() if state is not None]


def _carry(
    kernel: Compiled, source: Path, layouts: Mapping[str, Layout], last: tuple[int, int]
) -> None:
    """From all that hold something of it."""
    version, clock = last
    for name, layout in layouts.items():
        if not layout.alike(kernel.layout) or not set(layout.names) & set(kernel.layout.names):
            continue
        store = StateStore(state_root(source, name), PART)
        if store.versions():
            kernel.carry(layout, store.load(version).items(), clock)


def _state(checkpoint: Path, generation: int) -> Path:
    return checkpoint / "state" / str(generation)


def _read(checkpoint: Path) -> Plan | None:
    path = checkpoint / PLAN
    if not path.exists():
        return None
    try:
        return msgspec.json.decode(path.read_bytes(), type=Plan)
    except msgspec.DecodeError as why:
        raise StateError(f"{path} is torn ({why}); {FIX}") from why


def _write(checkpoint: Path, plan: Plan) -> None:
    checkpoint.mkdir(parents=True, exist_ok=True)
    path = checkpoint / PLAN
    temporary = path.with_suffix(f".{os.getpid()}.tmp")
    with temporary.open("wb") as file:
        file.write(msgspec.json.encode(plan))
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
    sync_directory(checkpoint)
