"""Push filters down: what a later filter drops is not kept in a window before it.

    after a window      before it, where an event enters and leaves on its own (time, delay)
    filter of a query   into the inner query it reads, where that is a plain selection
    true                away; a filter that is always true filters nothing

Only conditions that give the same answer whenever they are asked are moved: no functions, tables
or times. Streams that others can see are never changed: rows must come out as they were written.
"""

from __future__ import annotations

from dataclasses import replace

from edgewise.plan.exprs import Agg, Call, Expr, InTable, SlotTime, walk
from edgewise.plan.nodes import App, Filter, Query, StreamInput
from edgewise.plan.rules.constant_folding import TRUE
from edgewise.plan.rules.map_expressions import map_query, replace_fields

INDEPENDENT = frozenset({"time", "delay"})


def push_filters(app: App) -> App:
    queries = {q.name: _push_before_window(_drop_true_filters(q)) for q in app.queries}
    anonymous = {s.name for s in app.streams if s.anonymous}
    writers = {q.output.target: q.name for q in app.queries}
    for query in list(queries.values()):
        source = query.input
        if isinstance(source, StreamInput) and source.stream in anonymous:
            _push_into_inner(queries, query, source, writers[source.stream])
    return replace(app, queries=tuple(queries[q.name] for q in app.queries))


def _drop_true_filters(query: Query) -> Query:
    if not isinstance(query.input, StreamInput):
        return query
    before = tuple(h for h in query.input.before if h != Filter(TRUE))
    after = tuple(h for h in query.input.after if h != Filter(TRUE))
    return replace(query, input=replace(query.input, before=before, after=after))


def _push_before_window(query: Query) -> Query:
    source = query.input
    if not isinstance(source, StreamInput) or source.window is None:
        return query
    if source.window.name not in INDEPENDENT:
        return query
    if not all(
        isinstance(h, Filter) and _is_safe_before_window(h.condition) for h in source.after
    ):
        return query
    moved = replace(source, before=(*source.before, *source.after), after=())
    return replace(query, input=moved)


def _is_safe_before_window(expr: Expr) -> bool:
    """Whether it depends on the event's own attributes alone."""
    return not any(isinstance(n, Call | InTable | SlotTime) for n in walk(expr))


def _push_into_inner(
    queries: dict[str, Query], outer: Query, source: StreamInput, writer: str
) -> None:
    """Filters of the outer query, in the inner one's own terms, behind its own filters."""
    inner = queries[writer]
    if not isinstance(inner.input, StreamInput) or not _is_plain(inner):
        return
    if not all(
        isinstance(h, Filter) and _is_safe_before_window(h.condition) for h in source.before
    ):
        return
    if not all(_is_safe_before_window(item.expr) for item in inner.select.items):
        return
    meaning = {item.name: item.expr for item in inner.select.items}

    def translate(expr: Expr) -> Expr:
        return replace_fields(expr, lambda field: meaning.get(field.name, field))

    moved = map_query(replace(outer, input=replace(source, after=(), window=None)), translate)
    assert isinstance(moved.input, StreamInput)
    handlers = (*inner.input.before, *moved.input.before)
    queries[inner.name] = replace(inner, input=replace(inner.input, before=handlers))
    queries[outer.name] = replace(outer, input=replace(source, before=()))


def _is_plain(query: Query) -> bool:
    """No window, no aggregate, nothing that counts rows."""
    select = query.select
    assert isinstance(query.input, StreamInput)
    if query.input.window or query.rate or select.having is not None or select.group_by:
        return False
    if select.order_by or select.limit is not None or select.offset is not None:
        return False
    return not any(isinstance(n, Agg) for item in select.items for n in walk(item.expr))
