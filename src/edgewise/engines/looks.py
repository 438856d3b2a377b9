"""A look at kernel state from outside: sizes, keys, versions, what is oldest. Changes nothing.

<state>/<generation>/<fragment>/<partition>/    as `spark.checkpoint` and `live` lay it out
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from edgewise.engines.homes import Home
from edgewise.engines.kernel import snapshot
from edgewise.engines.kernel.pieces import joined
from edgewise.engines.state import StateStore
from edgewise.errors import StateError

LOOKS_MAX = 3  # files go while we look at a running app: then the next version is there
_TIMER_WIDTH = 4  # due, offset, node, n


@dataclass(frozen=True, slots=True)
class KeyLook:
    key: str
    bytes: int


@dataclass(frozen=True, slots=True)
class PartLook:
    """`waits_since` is the place of the oldest event that a timer waits for, `due` the next."""

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
    largest: tuple[KeyLook, ...] = ()


def disk_bytes(state: Home) -> int:
    """Of everything below, without opening a file."""
    total = 0
    for _, _, place in _places(state):
        total += sum(place.sizes().values())
    return total


def looks(state: Home, largest: int = 0) -> Iterator[PartLook]:
    """Every partition at its newest version; StateError names a file that cannot be read."""
    for fragment, partition, place in _places(state):
        for attempt in range(LOOKS_MAX):
            try:
                found = _look(fragment, partition, place, largest)
            except StateError:
                if attempt == LOOKS_MAX - 1:
                    raise
            else:
                if found is not None:
                    yield found
                break


def _places(state: Home) -> Iterator[tuple[str, int, Home]]:
    generations = [int(name) for name in state.names() if name.isdigit()]
    if not generations:
        return
    newest = state.inside(str(max(generations)))
    for fragment in newest.names():
        parts = (int(n) for n in newest.inside(fragment).names() if n.isdigit())
        for part in sorted(parts):
            yield fragment, part, newest.inside(fragment).inside(str(part))


def _look(fragment: str, partition: int, place: Home, largest: int) -> PartLook | None:
    store = StateStore(place, None)
    versions = [version for version, _ in store.versions()]
    if not versions:
        return None
    sizes = place.sizes()
    state = joined(store.load(versions[-1]).items())
    timers = [t for data in state.values() for t in _timers(snapshot.peek(data))]
    biggest = sorted(state.items(), key=lambda kv: -len(kv[1]))[:largest]
    return PartLook(
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
        tuple(KeyLook(str(snapshot.unpack_key(k)), len(v)) for k, v in biggest),
    )


def _timers(value: Any) -> Iterator[tuple[int, int, int, int]]:
    """Pending timers of a state and of the states of partitions inside it."""
    match value:
        case [dict() as timers, _, *cells]:
            yield from (t for t in timers if isinstance(t, tuple) and len(t) == _TIMER_WIDTH)
            for cell in cells:
                if isinstance(cell, dict):
                    for inner in cell.values():
                        if isinstance(inner, list):
                            yield from _timers(inner)
