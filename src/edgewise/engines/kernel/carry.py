"""State of one plan into the kernel of another: whoever did not change goes on where it was.

The new kernel makes its state as for a new app, so that what is new begins here and now; then the
cells and timers of every owner that both plans have are put in their new places.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from edgewise.engines.kernel.layout import Layout
from edgewise.engines.kernel.runtime import FIRST_CELL, TIMERS, Runtime, State


def carry_state(rt: Runtime, old: Layout, before: State, new: Layout, key: Any) -> None:
    """The state of one key."""
    for state in (before, *_instances(old, before)):
        for timer in state[TIMERS]:
            rt.past(timer)
    after = rt.keys.get(key)
    if after is None:
        after = rt.state(key)
    rt.root = after
    places = _places(old.cells)
    for cell, make in rt.nested.items():
        owner = new.cells[cell - FIRST_CELL]
        if (owner, 0) not in places or owner not in old.inside:
            continue
        for name, instance in before[places[owner, 0]].items():
            made = make(after, name)
            _overlay(rt, _Plan(old.inside[owner], old.nodes), instance,
                     _Plan(new.inside[owner], new.nodes), made, ())  # fmt: skip
    _overlay(
        rt, _Plan(old.cells, old.nodes), before, _Plan(new.cells, new.nodes), after, rt.nested
    )


class _Plan:
    """Places of cells and timers, by owner and count."""

    def __init__(self, cells: tuple[str, ...], nodes: tuple[str, ...]) -> None:
        self.owners = set(cells) | set(nodes)
        self.cells = _places(cells)
        self.nodes = nodes
        self.place_of = _places(nodes, 0)


def _places(owners: tuple[str, ...], first: int = FIRST_CELL) -> dict[tuple[str, int], int]:
    found: dict[tuple[str, int], int] = {}
    counts: dict[str, int] = {}
    for place, owner in enumerate(owners, first):
        found[owner, counts.get(owner, 0)] = place
        counts[owner] = counts.get(owner, 0) + 1
    return found


def _overlay(rt: Runtime, old: _Plan, before: State, new: _Plan, after: State, apart: Any) -> None:
    """Cells and timers of common owners; `apart` are cells that were made one by one."""
    for name, place in new.cells.items():
        if name in old.cells and place not in apart:
            after[place] = before[old.cells[name]]
    common = old.owners & new.owners
    for timer in [t for t in after[TIMERS] if new.nodes[t[2]] in common]:
        del after[TIMERS][timer]
    names = {place: name for name, place in old.place_of.items()}
    for (due, offset, node, n), payload in before[TIMERS].items():
        if names[node] in new.place_of:
            rt.put_back(after, (due, offset, new.place_of[names[node]], n), payload)


def _instances(layout: Layout, state: State) -> Iterator[State]:
    for place, owner in enumerate(layout.cells, FIRST_CELL):
        if owner in layout.inside and owner not in layout.cells[: place - FIRST_CELL]:
            yield from state[place].values()
