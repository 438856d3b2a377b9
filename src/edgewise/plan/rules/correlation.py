"""Find equalities between the slots of a pattern or a join, such as `e2.k == e1.k`.

Attributes that must be equal in every match form a class. A class with an attribute of every slot
is a key: events of different keys can never take part in one match.
"""

from __future__ import annotations

from collections.abc import Iterable

from edgewise.event.types import AttrType
from edgewise.plan.exprs import Compare, Expr, Field, conjuncts
from edgewise.plan.nodes import Filter, JoinInput, StateInput, state_leaves

# Equal fractions may differ as text or bits (-0.0, NaN), so they make no key.
KEY_TYPES = frozenset({AttrType.STRING, AttrType.INT, AttrType.LONG, AttrType.BOOL})

Place = tuple[str, str]  # slot and attribute
KeyClass = dict[str, str]  # slot -> one of its attributes


def correlate(query_input: JoinInput | StateInput) -> list[KeyClass]:
    """Every class that has an attribute of each slot, in the order they are written."""
    if isinstance(query_input, JoinInput):
        conditions = [query_input.on] if query_input.on is not None else []
        slots = [query_input.left.input.slot, query_input.right.input.slot]
    else:
        leaves = state_leaves(query_input.state)
        conditions = [
            h.condition for leaf in leaves for h in leaf.handlers if isinstance(h, Filter)
        ]
        slots = [leaf.slot for leaf in leaves]
    found: list[KeyClass] = []
    for members in find_equal_slots(conditions):
        key: KeyClass = {}
        for slot, attribute in members:
            key.setdefault(slot, attribute)
        if set(key) == set(slots):
            found.append(key)
    return found


def find_equal_slots(conditions: Iterable[Expr]) -> list[list[Place]]:
    """Classes of places that every one of the conditions together forces to be equal."""
    classes: list[list[Place]] = []
    for condition in conditions:
        for left, right in _list_equalities(condition):
            touching = [c for c in classes if left in c or right in c]
            merged = list(dict.fromkeys([p for c in touching for p in c] + [left, right]))
            classes = [c for c in classes if c not in touching] + [merged]
    return classes


def _list_equalities(condition: Expr) -> Iterable[tuple[Place, Place]]:
    """The `a == b` between two slots that must hold for the whole condition to hold."""
    for expr in conjuncts(condition):
        match expr:
            case Compare(op="==", left=Field() as left, right=Field() as right):
                same_type = left.type is right.type and left.type in KEY_TYPES
                if left.slot != right.slot and same_type:
                    yield (left.slot, left.name), (right.slot, right.name)
