"""Inspect kernel state from outside: sizes, keys, versions, oldest events. Changes nothing.

    <state>/<generation>/<fragment>/<key partition>/    the layout that both engines write

A running app may remove files while they are read; then the next version is there, and reading is
tried again. Used by `edgewise state` and by the node, which reports the size of the state.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from edgewise.engines.state.storage import Storage
from edgewise.engines.state.store import StateStore
from edgewise.errors import StateError
from edgewise.kernel import serialize as snapshot
from edgewise.kernel.state.queue_parts import join_parts

ATTEMPTS_MAX = 3
_TIMER_WIDTH = 4  # due, offset, node, n


@dataclass(frozen=True, slots=True)
class KeySize:
    key: str
    bytes: int


@dataclass(frozen=True, slots=True)
class StateReport:
    """The state of one key partition at its newest version.

    `waits_since` is the offset of the oldest event that a timer waits for, `due` the time of the
    next timer.
    """

    fragment: str
    partition: int
    oldest_version: int
    version: int
    files: int
    disk_bytes: int
    keys: int
    state_bytes: int
    waits_since: int | None
    due: int | None
    largest: tuple[KeySize, ...] = ()


def sum_disk_bytes(state: Storage) -> int:
    """The size of all state files, without opening one."""
    return sum(sum(directory.sizes().values()) for _, _, directory in _list_stores(state))


def inspect_state(state: Storage, largest: int = 0) -> Iterator[StateReport]:
    """A report per key partition; StateError names a file that cannot be read.

    `largest` is how many of the largest keys to name.
    """
    for fragment, partition, directory in _list_stores(state):
        for attempt in range(ATTEMPTS_MAX):
            try:
                report = _inspect_store(fragment, partition, directory, largest)
            except StateError:
                if attempt == ATTEMPTS_MAX - 1:
                    raise
            else:
                if report is not None:
                    yield report
                break


def _list_stores(state: Storage) -> Iterator[tuple[str, int, Storage]]:
    """Fragment, key partition and directory of every store of the newest generation."""
    generations = [int(name) for name in state.names() if name.isdigit()]
    if not generations:
        return
    newest = state.inside(str(max(generations)))
    for fragment in newest.names():
        partitions = (int(n) for n in newest.inside(fragment).names() if n.isdigit())
        for partition in sorted(partitions):
            yield fragment, partition, newest.inside(fragment).inside(str(partition))


def _inspect_store(
    fragment: str, partition: int, directory: Storage, largest: int
) -> StateReport | None:
    store = StateStore(directory, None)
    versions = [version for version, _ in store.versions()]
    if not versions:
        return None
    sizes = directory.sizes()
    state = join_parts(store.load(versions[-1]).items())
    timers = [t for data in state.values() for t in _list_timers(snapshot.peek(data))]
    biggest = sorted(state.items(), key=lambda kv: -len(kv[1]))[:largest]
    return StateReport(
        fragment,
        partition,
        versions[0],
        versions[-1],
        len(sizes),
        sum(sizes.values()),
        len(state),
        sum(len(k) + len(v) for k, v in state.items()),
        min((offset for _, offset, _, _ in timers), default=None),
        min((due for due, _, _, _ in timers), default=None),
        tuple(KeySize(str(snapshot.unpack_key(k)), len(v)) for k, v in biggest),
    )


def _list_timers(value: Any) -> Iterator[tuple[int, int, int, int]]:
    """Pending timers of a state and of the partitions inside it."""
    match value:
        case [dict() as timers, _, *cells]:
            yield from (t for t in timers if isinstance(t, tuple) and len(t) == _TIMER_WIDTH)
            for cell in cells:
                if isinstance(cell, dict):
                    for inner in cell.values():
                        if isinstance(inner, list):
                            yield from _list_timers(inner)
