"""Projection push-down: which attributes of a stream any query of a fragment looks at."""

from __future__ import annotations

from collections.abc import Iterable

from edgewise.plan.exprs import Expr, Field, walk
from edgewise.plan.nodes import (
    App,
    JoinInput,
    Query,
    QueryInput,
    StateInput,
    StreamCall,
    StreamInput,
    slots_of,
)
from edgewise.plan.rules.rewriting import map_query


def needed(app: App, queries: Iterable[Query]) -> dict[str, tuple[str, ...]]:
    """Per stream that is read, its attributes in the order of its schema that someone needs."""
    used: dict[str, set[str]] = {}
    schemas = {s.name: s.schema for s in app.streams}
    for query in queries:
        slots = slots_of(query.input)
        for stream in slots.values():
            used.setdefault(stream, set())
        for field in _fields(query):
            if field.slot in slots:
                used[slots[field.slot]].add(field.name)
        if _takes_everything(query.input):
            for stream in slots.values():
                used[stream] |= set(schemas[stream].names if stream in schemas else ())
    return {
        stream: tuple(n for n in schemas[stream].names if n in names)
        for stream, names in used.items()
        if stream in schemas
    }


def _fields(query: Query) -> list[Field]:
    found: list[Field] = list(query.select.group_by)
    found += [o.field for o in query.select.order_by if isinstance(o.field, Field)]

    def note(expr: Expr) -> Expr:
        found.extend(n for n in walk(expr) if isinstance(n, Field))
        return expr

    map_query(query, note)
    for source in _sources(query.input):
        for arg in source.window.args if source.window else ():
            note(arg)
        if source.window and source.window.condition is not None:
            note(source.window.condition)
    return found


def _takes_everything(query_input: QueryInput) -> bool:
    """A procedure is handed the whole event; an expression window names events as a whole."""
    return any(
        isinstance(h, StreamCall) or (s.window is not None and s.window.condition is not None)
        for s in _sources(query_input)
        for h in (*s.before, *s.after, None)
    )


def _sources(query_input: QueryInput) -> list[StreamInput]:
    match query_input:
        case StreamInput():
            return [query_input]
        case JoinInput():
            return [query_input.left.input, query_input.right.input]
        case StateInput():
            return []
