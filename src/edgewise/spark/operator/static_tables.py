"""Give tables of an app to the operator as frames, and split the app into stages around them.

A frame that stands for a table enters like a stream: a query of its own inserts its rows, before
the first event. A table that no query writes is the same for everybody, so each shard gets a copy
and the queries that read it keep the key that they have without it, as with a broadcast join. One
that queries write belongs to all keys: its frame is what it holds at first.

Pure: `api` uses it.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from edgewise.event.schema import Schema
from edgewise.event.types import AttrType
from edgewise.plan.exprs import Const, Expr, Field, InTable, walk
from edgewise.plan.fragments import Fragment
from edgewise.plan.nodes import (
    App,
    InsertInto,
    JoinInput,
    Query,
    Select,
    Stream,
    StreamInput,
    streams_of,
)
from edgewise.plan.rules.chain import split_into_stages
from edgewise.plan.rules.map_expressions import map_query
from edgewise.plan.selection import SelectItem

_SUFFIX = "@frame"  # no stream of an app can be called so


def name_table_stream(table: str) -> str:
    """The stream by which rows of a frame enter the table."""
    return f"{table}{_SUFFIX}"


def is_table_stream(stream: str) -> bool:
    return stream.endswith(_SUFFIX)


def add_table_streams(app: App, tables: Collection[str]) -> App:
    """The app with a stream and a query for each of these tables."""
    given = [t for t in app.tables if t.name in tables]
    streams = [Stream(Schema(name_table_stream(t.name), t.schema.attributes)) for t in given]
    loaders = [_build_loader(stream, t.name) for stream, t in zip(streams, given, strict=True)]
    return replace(app, streams=(*app.streams, *streams), queries=(*app.queries, *loaders))


def _build_loader(stream: Stream, table: str) -> Query:
    items = [
        SelectItem(a.name, Field(a.type, stream.name, a.name)) for a in stream.schema.attributes
    ]
    source = StreamInput(stream.name, stream.name)
    return Query(stream.name, source, Select(tuple(items)), InsertInto(table))


def split_with_tables(app: App, tables: Collection[str]) -> tuple[Fragment, ...]:
    """The stages of an app with table streams, each after those it reads from."""
    loaders = {name_table_stream(t) for t in tables}
    written = {q.output.target for q in app.queries if q.name not in loaders}
    copied = [t for t in tables if t not in written]
    streams = {name_table_stream(t) for t in copied}
    reduced = replace(
        app,
        streams=tuple(s for s in app.streams if s.name not in streams),
        queries=tuple(_forget_tables(q, copied) for q in app.queries if q.name not in streams),
        tables=tuple(t for t in app.tables if t.name not in copied),
    )
    queries = {q.name: q for q in app.queries}
    found = []
    for fragment in split_into_stages(reduced):
        read = {t for name in fragment.queries for t in list_tables_read(queries[name])}
        own = [t for t in copied if t in read]
        found.append(
            _hold_copies(app, _give_time(app, fragment), own) if own else _give_time(app, fragment)
        )
    return tuple(found)


def _give_time(app: App, fragment: Fragment) -> Fragment:
    """What reads no input, as a trigger, goes by the time of those that others read."""
    if fragment.inputs:
        return fragment
    read = find_streams_read(app)
    return replace(fragment, inputs=tuple(s.name for s in app.inputs if s.name in read))


def find_streams_read(app: App) -> set[str]:
    """The streams that queries and aggregations read, tables aside."""
    names = {name.removeprefix("!") for q in app.queries for name in streams_of(q.input)}
    names |= {a.input.stream for a in app.aggregations}
    return {name for name in names if not is_table_stream(name)}


def _hold_copies(app: App, fragment: Fragment, tables: list[str]) -> Fragment:
    """A copy per shard; what has no state besides is spread by whole events."""
    streams = tuple(name_table_stream(t) for t in tables)
    keys = fragment.keys
    if fragment.stateless:
        keys = tuple((name, app.stream(name).schema.names) for name in fragment.inputs)
    return replace(
        fragment,
        queries=(*fragment.queries, *streams),
        inputs=(*fragment.inputs, *streams),
        stores=(*(fragment.stores or ()), *tables),
        keys=keys,
        stateless=False,
    )


def list_tables_read(query: Query) -> set[str]:
    """What a query joins or looks into with `in`, by name."""
    found = set(streams_of(query.input))

    def note(expr: Expr) -> Expr:
        found.update(node.table for node in walk(expr) if isinstance(node, InTable))
        return expr

    map_query(query, note)
    return found


def _forget_tables(query: Query, tables: Collection[str]) -> Query:
    """The query as if these tables were not there: for its key only, not to be run."""
    query = map_query(query, lambda expr: _replace_lookup(expr, tables))
    source = query.input
    if not isinstance(source, JoinInput):
        return query
    sides = (source.left.input, source.right.input)
    kept = [side for side in sides if side.stream not in tables]
    if len(kept) != 1:
        return query
    slots = {side.slot for side in sides} - {kept[0].slot}
    grouped = tuple(
        replace(f, name=f"{f.slot}.{f.name}") if f.slot in slots else f
        for f in query.select.group_by
    )
    return replace(query, input=kept[0], select=replace(query.select, group_by=grouped))


def _replace_lookup(expr: Expr, tables: Collection[str]) -> Expr:
    if isinstance(expr, InTable) and expr.table in tables:
        return Const(AttrType.BOOL, True)
    changes: dict[str, object] = {
        name: _replace_lookup(getattr(expr, name), tables)
        for name in ("left", "right", "operand", "condition")
        if hasattr(expr, name)
    }
    if hasattr(expr, "args"):
        changes["args"] = tuple(_replace_lookup(a, tables) for a in expr.args)
    return replace(expr, **changes) if changes else expr  # type: ignore[arg-type]
