"""Which sequences run in straight lines (`sequence_code`), and what their steps are.

Everything else runs on the general machine in `patterns`: two counted elements in a row, a count
from two on, at the end, or from none at the start, logical and absent elements.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from edgewise.engines.kernel.page import Page
from edgewise.engines.kernel.pair_code import is_plain, partition_fields
from edgewise.plan.exprs import Agg, Call, Expr, InTable, SlotTime, walk
from edgewise.plan.nodes import (
    ChainState,
    CountState,
    EveryState,
    Filter,
    Query,
    State,
    StateInput,
    StateKind,
    StreamState,
)

_CLOCKED = {"currenttimemillis", "uuid"}


@dataclass(frozen=True, slots=True)
class Step:
    """One element: a single event, or `least` to `most` of them."""

    leaf: StreamState
    counted: bool = False
    least: int = 1
    most: int | None = 1

    @property
    def filters(self) -> tuple[Expr, ...]:
        return tuple(h.condition for h in self.leaf.handlers if isinstance(h, Filter))


@dataclass(frozen=True, slots=True)
class Sequence:
    """`keys` is the attribute that keys each stream; none outside a partition."""

    steps: tuple[Step, ...]
    every: bool
    keys: dict[str, str]
    within: int | None


def sequence_of(page: Page, query: Query) -> Sequence | None:
    """The query as steps in straight lines, None where it is something else."""
    source = query.input
    if not isinstance(source, StateInput) or source.kind is not StateKind.SEQUENCE:
        return None
    if not isinstance(source.state, ChainState) or not is_plain(query):
        return None
    first, *rest = source.state.states
    every = isinstance(first, EveryState)
    found = [_step(s) for s in (first.state if isinstance(first, EveryState) else first, *rest)]
    steps = tuple(s for s in found if s is not None)
    if len(steps) < len(found) or not _straight(steps) or not _readable(query, steps):
        return None
    keys: dict[str, str] = {}
    if query.partition:
        fields = partition_fields(page, query, [s.leaf.stream for s in steps])
        if fields is None:
            return None
        keys = fields
    return Sequence(steps, every, keys, source.within_ms)


def _step(state: State) -> Step | None:
    match state:
        case StreamState():
            step = Step(state)
        case CountState():
            step = Step(state.state, True, state.least, state.most)
        case _:
            return None
    plain = all(isinstance(h, Filter) for h in step.leaf.handlers)
    return step if plain and not step.leaf.stream.startswith("#") else None


def _straight(steps: tuple[Step, ...]) -> bool:
    """No count from two on, at the end, or from none at the start; no two in a row."""
    counted = [s.counted for s in steps]
    return (
        not counted[-1]
        and steps[0].least > 0
        and not any(a and b for a, b in pairwise(counted))
        and all(s.least <= 1 and (s.most is None or s.most >= 1) for s in steps)
    )


def _readable(query: Query, steps: tuple[Step, ...]) -> bool:
    exprs = [*(i.expr for i in query.select.items), *(f for s in steps for f in s.filters)]
    nodes = [n for e in exprs for n in walk(e)]
    return not any(
        isinstance(n, Agg | InTable | SlotTime)
        or (isinstance(n, Call) and (n.clocked or n.name.lower() in _CLOCKED))
        for n in nodes
    )
