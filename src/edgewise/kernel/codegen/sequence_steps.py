"""Decide which sequences run as straight-line code (`sequence_query`), and what their steps are.

Everything else runs on the general machine in `operators.patterns`: two counted elements in a row,
a count from two on, at the end, or from none at the start, logical and absent elements.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from edgewise.kernel.codegen.fragment_builder import FragmentBuilder
from edgewise.kernel.codegen.keyed_query import is_plain, partition_fields
from edgewise.plan.exprs import Agg, Call, Expr, Field, InTable, SlotTime, walk
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
class SequenceStep:
    """One element: a single event, or `least` to `most` of them."""

    leaf: StreamState
    counted: bool = False
    least: int = 1
    most: int | None = 1

    @property
    def filters(self) -> tuple[Expr, ...]:
        return tuple(h.condition for h in self.leaf.handlers if isinstance(h, Filter))


@dataclass(frozen=True, slots=True)
class SequenceSteps:
    """`keys` is the attribute that keys each stream; none outside a partition."""

    steps: tuple[SequenceStep, ...]
    every: bool
    keys: dict[str, str]
    within: int | None


def sequence_of(builder: FragmentBuilder, query: Query) -> SequenceSteps | None:
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
        fields = partition_fields(builder, query, [s.leaf.stream for s in steps])
        if fields is None:
            return None
        keys = fields
    return SequenceSteps(steps, every, keys, source.within_ms)


def _step(state: State) -> SequenceStep | None:
    match state:
        case StreamState():
            step = SequenceStep(state)
        case CountState():
            step = SequenceStep(state.state, True, state.least, state.most)
        case _:
            return None
    plain = all(isinstance(h, Filter) for h in step.leaf.handlers)
    return step if plain and not step.leaf.stream.startswith("#") else None


def _straight(steps: tuple[SequenceStep, ...]) -> bool:
    """No count from two on, at the end, or from none at the start; no two in a row."""
    counted = [s.counted for s in steps]
    return (
        not counted[-1]
        and steps[0].least > 0
        and not any(a and b for a, b in pairwise(counted))
        and all(s.least <= 1 and (s.most is None or s.most >= 1) for s in steps)
    )


def _readable(query: Query, steps: tuple[SequenceStep, ...]) -> bool:
    """Nothing is read that needs the general machine: a clock, a table, or an optional element
    without an index, which is an empty list where it took nothing.
    """
    optional = {s.leaf.slot for s in steps if s.counted and s.least == 0}
    read = [(i.expr, "") for i in query.select.items]
    read += [(f, s.leaf.slot) for s in steps for f in s.filters]  # a filter reads its own event
    return not any(
        isinstance(n, Agg | InTable | SlotTime)
        or (isinstance(n, Call) and (n.clocked or n.name.lower() in _CLOCKED))
        or (isinstance(n, Field) and n.index is None and n.slot in optional - {own})
        for expr, own in read
        for n in walk(expr)
    )
