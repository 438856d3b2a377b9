"""Transfer state of one plan into the kernel of another: an owner that did not change goes on.

The new kernel creates its state as for a new app, so that what is new begins here and now; then
the cells and timers of every owner that both plans have are put where the new layout has them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from edgewise.kernel.codegen.state_owners import StateLayout
from edgewise.kernel.runtime import FIRST_CELL, TIMERS, Runtime, State


def carry_state(rt: Runtime, old: StateLayout, before: State, new: StateLayout, key: Any) -> None:
    """The state of one key."""
    for state in (before, *_instances(old, before)):
        for timer in state[TIMERS]:
            rt.past(timer)
    after = rt.keys.get(key)
    if after is None:
        after = rt.state(key)
    rt.root = after
    positions = _positions(old.cells)
    for cell, make in rt.nested.items():
        owner = new.cells[cell - FIRST_CELL]
        if (owner, 0) not in positions or owner not in old.inside:
            continue
        for name, instance in before[positions[owner, 0]].items():
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
        self.cells = _positions(cells)
        self.nodes = nodes
        self.position_of = _positions(nodes, 0)


def _positions(owners: tuple[str, ...], first: int = FIRST_CELL) -> dict[tuple[str, int], int]:
    found: dict[tuple[str, int], int] = {}
    counts: dict[str, int] = {}
    for position, owner in enumerate(owners, first):
        found[owner, counts.get(owner, 0)] = position
        counts[owner] = counts.get(owner, 0) + 1
    return found


def _overlay(rt: Runtime, old: _Plan, before: State, new: _Plan, after: State, apart: Any) -> None:
    """Cells and timers of common owners; `apart` are cells that were made one by one."""
    for name, position in new.cells.items():
        if name in old.cells and position not in apart:
            after[position] = before[old.cells[name]]
    common = old.owners & new.owners
    for timer in [t for t in after[TIMERS] if new.nodes[t[2]] in common]:
        del after[TIMERS][timer]
    names = {position: name for name, position in old.position_of.items()}
    for (due, offset, node, n), payload in before[TIMERS].items():
        if names[node] in new.position_of:
            rt.put_back(after, (due, offset, new.position_of[names[node]], n), payload)


def _instances(layout: StateLayout, state: State) -> Iterator[State]:
    for position, owner in enumerate(layout.cells, FIRST_CELL):
        if owner in layout.inside and owner not in layout.cells[: position - FIRST_CELL]:
            yield from state[position].values()
