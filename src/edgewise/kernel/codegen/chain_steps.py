"""Decide which patterns run as straight-line code (`chain_query`), and what their steps are.

A chain is `every e1 -> e2 -> ... -> en`, single events, where one key holds each match together:
the attribute of the partition, or an equality that every element has with one before it
(`e2.k == e1.k`, `e3.k == e2.k`); or no element asks anything of another, and all matches move as
one. What else is compared, `e2.v > e1.v`, is asked of each match of the key: while these are few
that is many times faster than an index. Everything else runs on the general machine in
`operators.patterns`.
"""

from __future__ import annotations

from dataclasses import dataclass

from edgewise.event.types import AttrType
from edgewise.kernel.codegen.fragment_builder import FragmentBuilder
from edgewise.kernel.codegen.keyed_query import is_plain, partition_fields
from edgewise.plan.exprs import (
    Agg,
    Call,
    Compare,
    Expr,
    Field,
    InTable,
    SlotIsNull,
    SlotTime,
    walk,
)
from edgewise.plan.nodes import (
    ChainState,
    EveryState,
    Filter,
    Query,
    StateInput,
    StateKind,
    StreamState,
)
from edgewise.plan.rules.pattern_conditions import ElementCondition, split_conditions

_PARTIAL = (AttrType.FLOAT, AttrType.DOUBLE, AttrType.OBJECT)  # NaN is not equal to itself
_NOT_PLAIN = Agg | InTable | SlotTime | SlotIsNull | Call


@dataclass(frozen=True, slots=True)
class ChainStep:
    """One element; `key` is the attribute of its event that holds the match together, or ''."""

    leaf: StreamState
    key: str
    own: tuple[Expr, ...]  # read the event alone
    cross: tuple[Expr, ...]  # read earlier ones, beside the key


Chain = tuple[ChainStep, ...]


def chain_of(builder: FragmentBuilder, query: Query) -> Chain | None:
    """The query as a chain, None where it is something else."""
    source = query.input
    if not isinstance(source, StateInput) or source.kind is not StateKind.PATTERN:
        return None
    leaves = _leaves(source)
    if leaves is None or not is_plain(query):
        return None
    conditions = split_conditions(source.state)
    mine = [conditions[leaf.slot] for leaf in leaves]
    read = [i.expr for i in query.select.items]
    read += [e for c in mine for e in (*c.own, *c.cross)]
    if any(_needs_machine(n) for e in read for n in walk(e)):
        return None
    keys = _keys(builder, query, leaves, mine)
    if keys is None:
        return None
    held = {(leaf.slot, key) for leaf, key in zip(leaves, keys, strict=True)}
    return tuple(
        ChainStep(leaf, key, c.own, tuple(e for e in c.cross if not _joins_keys(e, held)))
        for leaf, key, c in zip(leaves, keys, mine, strict=True)
    )


def _keys(
    builder: FragmentBuilder,
    query: Query,
    leaves: list[StreamState],
    conditions: list[ElementCondition],
) -> list[str] | None:
    """The key of each element; None where matches are not held together by one."""
    if query.partition:
        streams = [leaf.stream for leaf in leaves]
        fields = partition_fields(builder, query, streams)
        return None if fields is None else [fields[stream] for stream in streams]
    if not any(c.cross for c in conditions):
        return ["" for _ in leaves]
    return _find_keys(leaves, conditions)


def _leaves(source: StateInput) -> list[StreamState] | None:
    match source.state:
        case ChainState(states=(EveryState(state=StreamState() as first), *rest)):
            leaves = [s for s in rest if isinstance(s, StreamState)]
        case _:
            return None
    if len(leaves) < len(rest):
        return None
    plain = all(isinstance(h, Filter) for leaf in (first, *leaves) for h in leaf.handlers)
    inner = any(leaf.stream.startswith("#") for leaf in (first, *leaves))
    return [first, *leaves] if plain and not inner else None


def _needs_machine(node: Expr) -> bool:
    return isinstance(node, _NOT_PLAIN) or (
        isinstance(node, Field) and node.index not in {None, 0}
    )


def _find_keys(leaves: list[StreamState], conditions: list[ElementCondition]) -> list[str] | None:
    """One attribute for each element, equal to that of an element before it."""
    pairs = [
        [(mine, theirs) for mine, theirs in c.keys if isinstance(mine, Field)
         and isinstance(theirs, Field) and mine.type is theirs.type and mine.type not in _PARTIAL]
        for c in conditions
    ]  # fmt: skip
    for _, first in pairs[1]:
        keys = {leaves[0].slot: first.name}
        for leaf, found in zip(leaves[1:], pairs[1:], strict=True):
            mine = [m.name for m, theirs in found if keys.get(theirs.slot) == theirs.name]
            if not mine:
                break
            keys[leaf.slot] = mine[0]
        if len(keys) == len(leaves):
            return [keys[leaf.slot] for leaf in leaves]
    return None


def _joins_keys(expr: Expr, held: set[tuple[str, str]]) -> bool:
    """It says that two keys are equal, as all are that are held together."""
    return (
        isinstance(expr, Compare)
        and expr.op == "=="
        and all(isinstance(e, Field) and (e.slot, e.name) in held for e in (expr.left, expr.right))
    )


def stream_keys(chain: Chain) -> dict[str, str]:
    """The attribute that keys each stream; none where one stream has two, or there is no key."""
    found = {(step.leaf.stream, step.key) for step in chain}
    keys = dict(found)
    return keys if len(keys) == len(found) and all(keys.values()) else {}
