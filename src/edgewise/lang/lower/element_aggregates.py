"""Lower aggregates over the events that one element of a pattern took: `avg(e2.price)`.

Such a call is a function of one match: it sees the list of values that the element collected, not
the rows of the query, so it is legal wherever the element is seen, in conditions of later elements
too. Its meaning is the definition of the aggregate in `eep`, folded over the list. In the original
this is an error. Used by `expressions`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from edgewise.event.types import AttrType
from edgewise.lang.lower.scope import Scope, Slot
from edgewise.lang.syntax import expr as written
from edgewise.plan import exprs
from edgewise.plan.functions import Function


@dataclass(frozen=True, slots=True)
class ElementAggregate:
    """The body of such a call; `own` is the user's aggregate, else `name` is one of ours."""

    name: str
    own: exprs.AggregateBody | None = None

    def __call__(self, values: Sequence[Any] | None) -> Any:
        from edgewise.eep.language import DEFINITIONS, fold  # it loads numpy; `check` must not

        return fold(self.own or DEFINITIONS[self.name.lower()], values or ())


def find_elements(scope: Scope, node: written.Call) -> exprs.Field | None:
    """What the call is over where that is a counted element, else None; `count(e2)` is of events.

    The field has the type of one value.
    """
    ref = node.args[0] if len(node.args) == 1 and not node.star else None
    if not isinstance(ref, written.AttrRef):
        return None
    if ref.stream is None:
        is_attribute = any(s.schema.index(ref.name) >= 0 for s in scope.slots)
        slot = None if is_attribute else scope.find_slot(ref.name)
        if slot is None or not _is_seen_whole(scope, slot) or node.name.lower() != "count":
            return None
        first = slot.schema.attributes[0]
        return exprs.Field(first.type, slot.name, first.name)
    slot = scope.find_slot(ref.stream.prefix + ref.stream.name)
    if slot is None or ref.stream.index is not None or not _is_seen_whole(scope, slot):
        return None
    if slot.schema.index(ref.name) < 0:
        return None
    return exprs.Field(slot.schema.type_of(ref.name), slot.name, ref.name)


def _is_seen_whole(scope: Scope, slot: Slot) -> bool:
    """An element's own condition sees the event that comes, not those it has."""
    return slot.counted and slot.name != scope.own


def lower_element_aggregate(function: Function, one: exprs.Field) -> exprs.Call:
    listed = exprs.Field(AttrType.OBJECT, one.slot, one.name)
    body = ElementAggregate(function.name, function.body)
    kind = function.type_of((one,))
    return exprs.Call(kind, function.name, (listed,), body, takes_null=True, deterministic=True)
