"""Lower the output of a query: insert, delete, update, upsert, return, and its rate limit."""

from __future__ import annotations

from dataclasses import replace

from edgewise.event.schema import Schema
from edgewise.event.types import NUMERIC
from edgewise.lang.lower.context import LoweringContext
from edgewise.lang.lower.expressions import Context
from edgewise.lang.lower.scope import UNKNOWN, Slot
from edgewise.lang.lower.symbols import STREAM, TABLE, WINDOW, Entry
from edgewise.lang.report import Refused, suggest_nearest
from edgewise.lang.syntax import query as written
from edgewise.plan import nodes
from edgewise.plan.exprs import Expr, OutField


def lower_output(
    draft: LoweringContext,
    node: written.Output,
    rows: Schema | None,
    inputs: tuple[Slot, ...] = (),
) -> nodes.QueryOutput:
    """`rows` is the shape of what the query selects; a stream not known yet takes it.

    None where the select list was refused: then only what does not need it is checked.
    """
    events = nodes.EventType(node.events)
    if node.kind == "return" or node.target is None:
        return nodes.Return(events)
    if node.kind == "insert":
        if rows is None:
            raise Refused
        _lower_insert(draft, node.target, rows)
        return nodes.InsertInto(node.target.full, events)
    _, table = draft.symbols.find(node.target, TABLE)
    context = _build_table_context(draft, node.target.full, table, rows, inputs)
    on: Expr | None = None
    with draft.report.attempt():
        on = context.boolean(node.on, "'on'") if node.on is not None else None
    if node.kind == "delete":
        return nodes.DeleteFrom(node.target.full, on, events)
    if node.kind == "upsert" and rows is not None:
        _check_fit(draft, node.target, "table", table, rows)
    sets = _lower_assignments(context, node, table, rows)
    if on is None:
        raise Refused
    output = nodes.UpdateTable if node.kind == "update" else nodes.UpdateOrInsert
    return output(node.target.full, on, sets, events)


def check_timeout(
    draft: LoweringContext, node: written.Output, source: nodes.QueryInput | None
) -> None:
    """Only what waits for a time can time out."""
    if node.events != "timeout" or source is None:
        return
    if not isinstance(source, nodes.StateInput):
        hint = "a window lets 'expired events' go"
        draft.report.fail(node.at, "only patterns and sequences have timeout events", hint)
    if source.within_ms is None:
        hint = "add 'within' and a time after the last element"
        draft.report.fail(node.at, "a pattern without 'within' never times out", hint)
    chain = source.state.states if isinstance(source.state, nodes.ChainState) else (source.state,)
    first = chain[0].state if isinstance(chain[0], nodes.EveryState) else chain[0]
    if isinstance(first, nodes.AbsentState):
        hint = "'within' counts from the first event: begin with an event"
        draft.report.fail(node.at, "a pattern that begins with an absence never times out", hint)


def declare_target(draft: LoweringContext, node: written.Output) -> None:
    """A query that failed still makes its target known, so that one mistake is told once."""
    target = node.target
    if node.kind != "insert" or target is None or target.prefix == "!":
        return
    if draft.symbols.get(target.full) is None:
        draft.symbols.define(Entry(STREAM, target.full, None, target.at, implicit=True))


def _lower_insert(draft: LoweringContext, target: written.Name, rows: Schema) -> None:
    entry = draft.symbols.get(target.full)
    if entry is None and target.prefix != "!":
        if target.prefix == "#" and not draft.partition:
            hint = "inner streams live between 'begin' and 'end' of a partition"
            draft.report.fail(target.at, f"'{target.full}' stands outside a partition", hint)
        schema = Schema(target.full, rows.attributes)
        draft.symbols.define(Entry(STREAM, target.full, schema, target.at, implicit=True))
        return
    entry, schema = draft.symbols.find(target, STREAM, TABLE, WINDOW)
    _check_fit(draft, target, entry.kind, schema, rows)


def _check_fit(
    draft: LoweringContext, target: written.Name, kind: str, has: Schema, rows: Schema
) -> None:
    """Rows fit by place: as many attributes, each of the same type."""
    report = draft.report
    if len(has.attributes) != len(rows.attributes):
        message = (
            f"{kind} '{target.full}' has {len(has.attributes)} attributes, "
            f"this query selects {len(rows.attributes)}"
        )
        report.fail(target.at, message, f"it is ({_describe_shape(has)})")
    for mine, its in zip(rows.attributes, has.attributes, strict=True):
        if mine.type is not its.type:
            message = (
                f"'{mine.name}' is {mine.type.value}, "
                f"but '{its.name}' of {kind} '{target.full}' is {its.type.value}"
            )
            report.fail(target.at, message, f"convert it with convert(.., '{its.type.value}')")


def _describe_shape(schema: Schema) -> str:
    return ", ".join(f"{a.name} {a.type.value}" for a in schema.attributes)


def _build_table_context(
    draft: LoweringContext, name: str, table: Schema, rows: Schema | None, inputs: tuple[Slot, ...]
) -> Context:
    slots = (Slot(name, table, (name,)), *(s for s in inputs if s.name != name))
    if rows is None:
        slots = (*slots, UNKNOWN)
    context = draft.context(slots, no_aggregates="in a condition on a table")
    return replace(context, scope=replace(context.scope, outputs=rows))


def _lower_assignments(
    context: Context, node: written.Output, table: Schema, rows: Schema | None
) -> tuple[nodes.SetColumn, ...]:
    if not node.assignments:
        if rows is None:
            raise Refused
        same = [a for a in rows.attributes if table.index(a.name) >= 0]
        if not same:
            hint = "add 'set', or rename the selected attributes with 'as'"
            context.report.fail(node.at, "no selected attribute is a column of the table", hint)
        return tuple(nodes.SetColumn(a.name, OutField(a.type, a.name)) for a in same)
    found: list[nodes.SetColumn] = []
    for assignment in node.assignments:
        with context.report.attempt():
            found.append(_lower_assignment(context, assignment, table))
    if len(found) < len(node.assignments):
        raise Refused
    return tuple(found)


def _lower_assignment(
    context: Context, node: written.Assignment, table: Schema
) -> nodes.SetColumn:
    column, stream = node.target.name, node.target.stream
    if stream is not None and stream.name != table.name:
        hint = f"write {table.name}.{column}"
        message = f"'set' changes columns of '{table.name}', whatever stands before the dot"
        context.report.warn(node.target.at, message, hint)
    if table.index(column) < 0:
        hint = suggest_nearest(column, table.names)
        context.report.fail(node.target.at, f"'{table.name}' has no column '{column}'", hint)
    value = context.lower(node.value)
    kind = table.type_of(column)
    if value.type is not kind and not (value.type in NUMERIC and kind in NUMERIC):
        message = f"column '{column}' is {kind.value}, this is {value.type.value}"
        context.report.fail(node.value.at, message)
    return nodes.SetColumn(column, value)


def lower_rate(node: written.Rate | None) -> nodes.RateLimit | None:
    if node is None:
        return None
    every_ms = node.every.ms if node.every else None
    return nodes.RateLimit(nodes.RateKind(node.kind), every_ms, node.events)
