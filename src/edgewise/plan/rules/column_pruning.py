"""Find which attributes of its inputs a fragment reads (column pruning).

What nobody looks at is not handed to the kernel and not kept in its state. An event is needed
whole where someone may show or pass on the whole of it: a procedure, an expression window, a
frequent window without attributes, an aggregation, a fault stream.
"""

from __future__ import annotations

from collections.abc import Iterable

from edgewise.plan.exprs import Expr, Field, walk
from edgewise.plan.fragments import Fragment
from edgewise.plan.nodes import (
    App,
    Query,
    QueryInput,
    StreamCall,
    Window,
    handlers_of,
    slots_of,
    windows_of,
)
from edgewise.plan.rules.map_expressions import map_query

COUNTS_WHOLE_EVENTS = frozenset({"frequent", "lossyFrequent"})


def find_read_attributes(app: App, fragment: Fragment) -> dict[str, tuple[str, ...]]:
    """Per input of a fragment, its attributes in the order of its schema that someone needs."""
    own = set(fragment.queries)
    used = find_needed_attributes(app, [q for q in app.queries if q.name in own])
    whole = {a.input.stream for a in app.aggregations}
    whole |= {s.name[1:] for s in app.streams if s.name.startswith("!")}
    found: dict[str, tuple[str, ...]] = {}
    for stream in fragment.inputs:
        names = app.stream(stream).schema.names
        kept = {*used.get(stream, names), *fragment.key_of(stream)}
        found[stream] = names if stream in whole else tuple(n for n in names if n in kept)
    return found


def find_needed_attributes(app: App, queries: Iterable[Query]) -> dict[str, tuple[str, ...]]:
    """Per stream that is read, its attributes in the order of its schema that someone needs."""
    used: dict[str, set[str]] = {}
    schemas = {s.name: s.schema for s in app.streams}
    partitions = {p.name: p for p in app.partitions}
    for query in queries:
        slots = slots_of(query.input)
        for stream in slots.values():
            used.setdefault(stream, set())
        for field in _list_fields(query):
            if field.slot in slots:
                used[slots[field.slot]].add(field.name)
        for key in partitions[query.partition].keys if query.partition else ():
            parts = (key.value, *(r.condition for r in key.ranges))
            fields = [n for e in parts if e is not None for n in walk(e) if isinstance(n, Field)]
            used.setdefault(key.stream, set()).update(f.name for f in fields)
        if _reads_whole_events(query.input):
            for stream in slots.values():
                used[stream] |= set(schemas[stream].names if stream in schemas else ())
    return {
        stream: tuple(n for n in schemas[stream].names if n in names)
        for stream, names in used.items()
        if stream in schemas
    }


def _list_fields(query: Query) -> list[Field]:
    found: list[Field] = list(query.select.group_by)
    found += [o.field for o in query.select.order_by if isinstance(o.field, Field)]

    def note(expr: Expr) -> Expr:
        found.extend(n for n in walk(expr) if isinstance(n, Field))
        return expr

    map_query(query, note)
    for window in windows_of(query.input):
        for arg in window.args:
            note(arg)
    return found


def _reads_whole_events(query_input: QueryInput) -> bool:
    return any(isinstance(h, StreamCall) for h in handlers_of(query_input)) or any(
        window.condition is not None
        or window.reader is not None
        or (window.name in COUNTS_WHOLE_EVENTS and not _list_attribute_args(window))
        for window in windows_of(query_input)
    )


def _list_attribute_args(window: Window) -> list[Expr]:
    return [a for a in window.args if isinstance(a, Field)]
