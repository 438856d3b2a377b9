"""A query: its input, its selection, its rate, its output; and queries inside queries."""

from __future__ import annotations

from dataclasses import replace

from edgewise.event.schema import Schema
from edgewise.lang.lower.annotations import lower_annotations, named, value
from edgewise.lang.lower.draft import Draft
from edgewise.lang.lower.inputs import lower_join, lower_source
from edgewise.lang.lower.outputs import declare_target, lower_output, lower_rate
from edgewise.lang.lower.scope import Slot
from edgewise.lang.lower.selection import lower_selection, output_schema
from edgewise.lang.lower.states import lower_states
from edgewise.lang.lower.symbols import STREAM, Entry
from edgewise.lang.report import Refused
from edgewise.lang.syntax import query as written
from edgewise.plan import nodes


def lower_query(draft: Draft, node: written.Query, number: int) -> None:
    """Adds the query to what is planned; a refused one still declares the stream it feeds."""
    name = _name(draft, node, number)
    try:
        query_input, slots = _input(draft, node.input)
        context = draft.context(slots)
        select = lower_selection(context, node.selection, node.input.at)
        rows = output_schema("", select.items)
        output = lower_output(draft, node.output, rows, slots)
    except Refused:
        declare_target(draft, node.output)
        return
    draft.planned.queries.append(
        nodes.Query(
            name,
            query_input,
            select,
            output,
            draft.report.source.span(node.at),
            lower_rate(node.rate),
            draft.partition,
            lower_annotations(node.annotations),
        )
    )


def lower_inner(draft: Draft, node: written.Query) -> written.Name:
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
    rows = output_schema(target.full, query.select.items)
    entry.schema = Schema(target.full, rows.attributes)
    output = nodes.InsertInto(target.full, query.output.events)
    draft.planned.queries[-1] = replace(query, output=output)
    return target


def _input(draft: Draft, node: written.QueryInput) -> tuple[nodes.QueryInput, tuple[Slot, ...]]:
    match node:
        case written.Source():
            source, slot = lower_source(draft, node)
            return source, (slot,)
        case written.Join():
            return lower_join(draft, node)
        case written.StateInput():
            return lower_states(draft, node)


def _name(draft: Draft, node: written.Query, number: int) -> str:
    """`@info(name='...')`, else its number among all queries; inner ones count on their own."""
    name = given_name(node)
    taken = draft.planned.names
    if name and taken.get(name):
        draft.report.warn(node.at, f"two queries are called '{name}'")
    if not name:
        name = f"query{number}" if number > 0 else f"inner{-number}"
        while name in taken:
            name += "_"
    while taken.get(name):
        name += "_"
    taken[name] = True
    return name


def given_name(node: written.Query) -> str:
    for info in named(node.annotations, "info"):
        return value(info, "name") or value(info, "")
    return ""
