"""Lower the select list: output attributes and types, grouping, having, order, limit."""

from __future__ import annotations

from dataclasses import replace

from edgewise.event.schema import Attribute, Schema
from edgewise.event.types import AttrType
from edgewise.lang.lower.expressions import Context
from edgewise.lang.lower.scope import UNKNOWN
from edgewise.lang.report import Refused
from edgewise.lang.source import At
from edgewise.lang.syntax import expr as written
from edgewise.lang.syntax.query import OrderItem, Selection, SelectItem
from edgewise.plan import nodes
from edgewise.plan.exprs import Expr, Field, OutField

EVERYTHING = Selection()


def lower_selection(context: Context, text: Selection | None, at: At) -> nodes.Select:
    """Every clause is tried; refused where the rows it makes are not known."""
    report = context.report
    selection = text or EVERYTHING
    items: tuple[nodes.SelectItem, ...] | None = None
    with report.attempt():
        if selection.items:
            items = _lower_items(context, selection.items)
        else:
            items = _select_all(context, at if text is None else text.at)
    if items is None:
        slots = (*context.scope.slots, UNKNOWN)
        context = replace(context, scope=replace(context.scope, slots=slots))
    outputs = build_output_schema("", items or ())
    plain = context.without_aggregates("in 'group by'")
    group_by: list[Field] = []
    for ref in selection.group_by:
        with report.attempt():
            found = plain.lower(ref)
            assert isinstance(found, Field)
            group_by.append(found)
    having: Expr | None = None
    if selection.having is not None:
        with report.attempt():
            scope = replace(context.scope, outputs=outputs)
            having = replace(context, scope=scope).boolean(selection.having, "'having'")
    order_by: list[nodes.OrderBy] = []
    for item in selection.order_by:
        with report.attempt():
            order_by.append(_lower_order(context, item, outputs))
    limit = _lower_count(context, selection.limit, "limit")
    offset = _lower_count(context, selection.offset, "offset")
    if items is None:
        raise Refused
    return nodes.Select(items, tuple(group_by), having, tuple(order_by), limit, offset)


def build_output_schema(name: str, items: tuple[nodes.SelectItem, ...]) -> Schema:
    return Schema(name, tuple(Attribute(i.name, i.expr.type) for i in items))


def _lower_items(
    context: Context, written_items: tuple[SelectItem, ...]
) -> tuple[nodes.SelectItem, ...]:
    report = context.report
    items: list[nodes.SelectItem] = []
    names: set[str] = set()
    for item in written_items:
        with report.attempt():
            name = item.alias or getattr(item.expression, "name", "")
            if name and name in names:
                report.error(item.at, f"'{name}' is selected twice", "rename one with 'as'")
            names.add(name)
            items.append(nodes.SelectItem(name, context.lower(item.expression)))
    if len(items) < len(written_items):
        raise Refused
    return tuple(items)


def _select_all(context: Context, at: At) -> tuple[nodes.SelectItem, ...]:
    """`select *`: the attributes of every slot, in order; a name may come once only."""
    items: list[nodes.SelectItem] = []
    names: set[str] = set()
    for slot in context.scope.slots:
        if slot.broken:
            raise Refused
        if slot.hidden:
            continue
        for attribute in slot.schema.attributes:
            if attribute.name in names:
                hint = "name the attributes instead of 'select *'"
                context.report.fail(at, f"'{attribute.name}' comes from two inputs", hint)
            names.add(attribute.name)
            kind = AttrType.OBJECT if slot.counted else attribute.type
            items.append(nodes.SelectItem(attribute.name, Field(kind, slot.name, attribute.name)))
    return tuple(items)


def _lower_order(context: Context, item: OrderItem, outputs: Schema) -> nodes.OrderBy:
    name = item.ref.name
    if item.ref.stream is None and outputs.index(name) >= 0:
        return nodes.OrderBy(OutField(outputs.type_of(name), name), item.descending)
    scope = replace(context.scope, outputs=outputs)
    found = scope.attribute(item.ref)
    assert isinstance(found, Field | OutField)
    return nodes.OrderBy(found, item.descending)


def _lower_count(context: Context, text: written.Expression | None, what: str) -> int | None:
    count: int | None = None
    with context.report.attempt():
        if text is not None:
            found = context.constant(text, f"'{what}'")
            if found.type not in {AttrType.INT, AttrType.LONG} or found.value < 0:
                context.report.fail(text.at, f"'{what}' needs a whole number, 0 or more")
            count = int(found.value)
    return count
