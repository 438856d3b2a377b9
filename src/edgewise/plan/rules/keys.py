"""Keys are found, not demanded: split an app into fragments and give each the key it can have.

Queries connected through streams make one fragment. Its key is a set of attributes of its input
stream such that every query with state groups by them, followed back through the select lists in
between. A key is legal only where the state of one group never depends on events of another:

    window      legal by key   because
    none        yes            running aggregates belong to their group
    time        yes            an event leaves at its own time, whatever else is inside
    others      no             what leaves depends on other groups (a count, a first event)

`order by`, `limit` and `offset` act on a chunk, and a chunk may span groups: not legal either.
"""

from __future__ import annotations

from edgewise.plan.exprs import Agg, Field, walk
from edgewise.plan.fragments import Fragment
from edgewise.plan.nodes import App, Query, StreamInput, Window, streams_of

KEYABLE_WINDOWS = ("", "time")

Lineage = dict[str, str]  # attribute of a stream -> attribute of the fragment's input


def split(app: App) -> tuple[Fragment, ...]:
    """The fragments of an app, in order of their first query."""
    return tuple(_fragment(app, queries) for queries in _components(app))


def _components(app: App) -> list[list[Query]]:
    """Queries that share a stream, directly or through others."""
    groups: list[tuple[set[str], list[Query]]] = []
    for query in app.queries:
        streams = {*streams_of(query.input), query.output.target}
        touching = [g for g in groups if g[0] & streams]
        merged = (
            streams.union(*(g[0] for g in touching)),
            [q for g in touching for q in g[1]] + [query],
        )
        groups = [g for g in groups if g not in touching] + [merged]
    order = {q.name: i for i, q in enumerate(app.queries)}
    for _, queries in groups:
        queries.sort(key=lambda q: order[q.name])
    return sorted((queries for _, queries in groups), key=lambda qs: order[qs[0].name])


def _fragment(app: App, queries: list[Query]) -> Fragment:
    names = tuple(q.name for q in queries)
    read = {name for q in queries for name in streams_of(q.input)}
    inputs = tuple(s.name for s in app.inputs if s.name in read)
    written = {q.output.target for q in queries}
    stateful = [q for q in queries if _stateful(q)]
    if not stateful:
        return Fragment(names[0], names, inputs, stateless=True)
    blocked = _blocked(stateful)
    if len(inputs) != 1:
        blocked = f"streams {', '.join(inputs)} are merged in time order" if inputs else "no input"
    elif len(written & read) and _written_twice(queries):
        blocked = "a stream in the middle is written by several queries"
    if blocked:
        return Fragment(names[0], names, inputs, why=blocked)
    lineage = _lineage(app, queries, inputs[0])
    candidates = [
        {lineage[_stream(q)].get(f.name, "") for f in q.select.group_by} - {""}
        for q in stateful
        if q.select.group_by
    ]
    schema = app.stream(inputs[0]).schema
    shared = set.intersection(*candidates) if candidates else set()
    key = tuple(name for name in schema.names if name in shared)
    if not key:
        return Fragment(names[0], names, inputs, why="the queries share no grouping attribute")
    return Fragment(names[0], names, inputs, ((inputs[0], key),))


def _stream(query: Query) -> str:
    return streams_of(query.input)[0]


def _window(query: Query) -> Window | None:
    return query.input.window if isinstance(query.input, StreamInput) else None


def _stateful(query: Query) -> bool:
    return (
        not isinstance(query.input, StreamInput)
        or query.input.window is not None
        or query.rate is not None
        or _aggregates(query)
    )


def _aggregates(query: Query) -> bool:
    exprs = [item.expr for item in query.select.items]
    if query.select.having is not None:
        exprs.append(query.select.having)
    return any(isinstance(node, Agg) for expr in exprs for node in walk(expr))


def _blocked(stateful: list[Query]) -> str:
    """The first reason why no key is legal, '' for none."""
    for query in stateful:
        if not isinstance(query.input, StreamInput) or query.partition:
            return f"{query.name}: joins, patterns and partitions are not keyed yet"
        if query.rate:
            return f"{query.name}: a rate limit counts all rows together"
        found = _window(query)
        window = found.name if found else ""
        if window not in KEYABLE_WINDOWS:
            return f"{query.name}: what leaves #window.{window} depends on all events together"
        if _aggregates(query) and not query.select.group_by:
            return f"{query.name}: aggregates over all events, no group by"
        if query.select.order_by or query.select.limit is not None or query.select.offset:
            return f"{query.name}: order by and limit look at all groups together"
    return ""


def _written_twice(queries: list[Query]) -> bool:
    targets = [q.output.target for q in queries]
    read = {name for q in queries for name in streams_of(q.input)}
    return any(targets.count(t) > 1 for t in read)


def _lineage(app: App, queries: list[Query], source: str) -> dict[str, Lineage]:
    """Which attribute of `source` an attribute of each stream still is, unchanged."""
    found: dict[str, Lineage] = {source: {n: n for n in app.stream(source).schema.names}}
    pending = list(queries)
    while pending:
        ready = [q for q in pending if _stream(q) in found]
        if not ready:  # a ring of streams: nothing can be followed into it
            for query in pending:
                found.setdefault(_stream(query), {})
            break
        for query in ready:
            before = found[_stream(query)]
            found[query.output.target] = {
                item.name: before[item.expr.name]
                for item in query.select.items
                if isinstance(item.expr, Field) and item.expr.name in before
            }
        pending = [q for q in pending if q not in ready]
    return found
