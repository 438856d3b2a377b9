"""Many filters on one stream, found by an index instead of asked one by one.

Queries whose first filter says `attribute == constant` are entered under their constant; an event
then goes to those under its own value and to the queries that could not be indexed, in order of
definition. Each query still tests its whole filter.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from edgewise.engines.kernel.queries import QueryCode, StreamQuery
from edgewise.plan.exprs import And, Compare, Const, Expr, Field
from edgewise.plan.nodes import Filter

INDEX_MIN = 4  # fewer filters are faster asked one by one

Indexed = tuple[int, dict[Any, list[str]], list[str]]


def filter_index(readers: Iterable[tuple[QueryCode, list[str]]]) -> Indexed | None:
    """Place of the attribute, entries by value, entries for every other value; None: no index."""
    found = [(entries, _equalities(code)) for code, entries in readers]
    counts: dict[int, int] = {}
    for _, equal in found:
        for place in equal:
            counts[place] = counts.get(place, 0) + 1
    place = max(counts, key=lambda p: counts[p], default=-1)
    if counts.get(place, 0) < INDEX_MIN:
        return None
    values = dict.fromkeys(equal[place] for _, equal in found if place in equal)
    by_value: dict[Any, list[str]] = {value: [] for value in values}
    others: list[str] = []
    for entries, equal in found:
        if place in equal:
            by_value[equal[place]] += entries
            continue
        others += entries
        for listed in by_value.values():
            listed.extend(entries)
    return place, by_value, others


def _equalities(code: QueryCode) -> dict[int, Any]:
    """Places of attributes that must equal a constant for anything to happen."""
    if not isinstance(code, StreamQuery) or code.named or code.query.partition:
        return {}
    first = code.source.before[0] if code.source.before else None
    if not isinstance(first, Filter):
        return {}
    found: dict[int, Any] = {}
    pending: list[Expr] = [first.condition]
    while pending:
        node = pending.pop()
        if isinstance(node, And):
            pending += (node.right, node.left)
        elif isinstance(node, Compare) and node.op == "==":
            for field, const in ((node.left, node.right), (node.right, node.left)):
                if (
                    isinstance(field, Field)
                    and isinstance(const, Const)
                    and field.type is const.type
                    and const.value is not None
                ):
                    found[code.names.places[field.slot, field.name, None]] = const.value
    return found
