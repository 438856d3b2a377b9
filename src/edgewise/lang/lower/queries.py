"""Lower a query: input, selection, rate, output; and queries inside queries."""

from __future__ import annotations

from dataclasses import replace

from edgewise.event.schema import Schema
from edgewise.lang.lower.annotations import (
    annotation_value,
    find_annotation,
    lower_annotations,
    lower_state_limit,
)
from edgewise.lang.lower.context import LoweringContext
from edgewise.lang.lower.inputs import lower_join, lower_source
from edgewise.lang.lower.outputs import check_timeout, declare_target, lower_output, lower_rate
from edgewise.lang.lower.scope import UNKNOWN, Slot
from edgewise.lang.lower.selection import build_output_schema, lower_selection
from edgewise.lang.lower.states import lower_states
from edgewise.lang.lower.symbols import STREAM, Entry
from edgewise.lang.report import Refused
from edgewise.lang.syntax import query as written
from edgewise.plan import nodes


def lower_query(draft: LoweringContext, node: written.Query, number: int) -> None:
    """Adds the query to what is planned; a refused one still declares the stream it feeds.

    Each clause is checked, also where one before it was refused.
    """
    name = _choose_name(draft, node, number)
    report = draft.report
    query_input: nodes.QueryInput | None = None
    slots: tuple[Slot, ...] = (UNKNOWN,)
    select: nodes.Select | None = None
    output: nodes.QueryOutput | None = None
    with report.attempt():
        query_input, slots = _lower_input(draft, node.input)
    with report.attempt():
        select = lower_selection(draft.context(slots), node.selection, node.input.at)
    with report.attempt():
        rows = build_output_schema("", select.items) if select else None
        output = lower_output(draft, node.output, rows, slots)
        check_timeout(draft, node.output, query_input)
    state: nodes.StateLimit | None = None
    with report.attempt():
        state = _lower_state_limit(draft, node, query_input)
    if query_input is None or select is None or output is None:
        declare_target(draft, node.output)
        return
    draft.planned.queries.append(
        nodes.Query(
            name,
            query_input,
            select,
            output,
            draft.report.source.span(node.input.at),
            lower_rate(node.rate),
            draft.partition,
            lower_annotations(node.annotations),
            state,
        )
    )


def _lower_state_limit(
    draft: LoweringContext, node: written.Query, source: nodes.QueryInput | None
) -> nodes.StateLimit | None:
    declared = find_annotation(node.annotations, "state")
    if declared and source is not None and not isinstance(source, nodes.StateInput):
        hint = "a window says itself what it keeps; a partition takes @state for its keys"
        draft.report.fail(declared[0].at, "@state bounds patterns, this is none", hint)
    return lower_state_limit(draft.report, declared)


def lower_inner(draft: LoweringContext, node: written.Query) -> written.Name:
    """A query in parentheses becomes a query of its own into a stream nobody else can name."""
    draft.planned.anonymous += 1
    number = draft.planned.anonymous
    prefix = "#" if draft.partition else ""
    target = written.Name(f"@inner{number}", prefix, node.at)
    entry = Entry(STREAM, target.full, None, node.at, implicit=True, anonymous=True)
    draft.symbols.define(entry)
    before = len(draft.planned.queries)
    inserted = replace(node.output, kind="return", target=None)
    lower_query(draft, replace(node, output=inserted), number=-number)
    if len(draft.planned.queries) == before:
        raise Refused
    query = draft.planned.queries[-1]
    rows = build_output_schema(target.full, query.select.items)
    entry.schema = Schema(target.full, rows.attributes)
    output = nodes.InsertInto(target.full, query.output.events)
    draft.planned.queries[-1] = replace(query, output=output)
    return target


def _lower_input(
    draft: LoweringContext, node: written.QueryInput
) -> tuple[nodes.QueryInput, tuple[Slot, ...]]:
    match node:
        case written.Source():
            source, slot = lower_source(draft, node, operators=True)
            return source, (slot,)
        case written.Join():
            return lower_join(draft, node)
        case written.StateInput():
            return lower_states(draft, node)


def _choose_name(draft: LoweringContext, node: written.Query, number: int) -> str:
    """`@info(name='...')`, else its number among all queries; inner ones count on their own."""
    given = find_given_name(node)
    planned = draft.planned
    base = name = given or (f"query{number}" if number > 0 else f"inner{-number}")
    used = planned.names.get(name) if given else name in planned.names
    if given and used:
        draft.report.warn(node.at, f"two queries are called '{given}'")
    while used:
        again = planned.again[base] = planned.again.get(base, 0) + 1
        name = f"{base}_{again if again > 1 else ''}"
        used = name in planned.names
    planned.names[name] = True
    return name


def find_given_name(node: written.Query) -> str:
    for info in find_annotation(node.annotations, "info"):
        return annotation_value(info, "name") or annotation_value(info, "")
    return ""
