"""What Spark's own expressions compute exactly as the language says: one table, asked by the
engine that builds them and by `explain` that tells of them.

A fragment without state is native where all of it is in the table. For a fragment with state,
`prefix` is what of its filters Spark can ask before an event crosses into the kernel.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from edgewise.event.types import AttrType
from edgewise.plan.exprs import (
    And,
    Arith,
    Call,
    Compare,
    Const,
    Expr,
    Field,
    IsNull,
    Not,
    Or,
    balanced,
    conjuncts,
    walk,
)
from edgewise.plan.fragments import Fragment
from edgewise.plan.nodes import (
    AbsentState,
    App,
    EventType,
    Filter,
    Handler,
    InsertInto,
    Query,
    StateInput,
    StateKind,
    StreamInput,
    handlers_of,
    state_leaves,
    streams_of,
)
from edgewise.plan.rules.rewriting import with_fields

NATIVE_TYPES = frozenset(AttrType) - {AttrType.OBJECT}
NATIVE_ARITHMETIC = frozenset({"+", "-", "*"})
PREFIX_PARTS_MAX = 200  # conditions of one prefix; with more, Spark's planner is the slower way


def obstacle(expr: Expr) -> str:
    """Why Spark cannot compute it as the language says, '' where it can."""
    return next((why for node in walk(expr) if (why := _own_obstacle(node))), "")


def _own_obstacle(node: Expr) -> str:
    match node:
        case Const() | Field():
            return "" if node.type in NATIVE_TYPES else "an object has no type in Spark"
        case Arith():
            known = node.op in NATIVE_ARITHMETIC
            return "" if known else f"'{node.op}' divides otherwise in Spark"
        case Compare() | And() | Or() | Not() | IsNull():
            return ""
        case Call():
            return "" if node.spark else f"{node.name}() is no Spark expression"
    return "it looks at more than the event"


def kernel_because(app: App, fragment: Fragment) -> str:
    """Why a fragment without state runs in the kernel, '' where it is Spark's own expressions."""
    names = set(fragment.queries)
    queries = [q for q in app.queries if q.name in names]
    last_writer = {q.output.target: place for place, q in enumerate(queries)}
    for place, query in enumerate(queries):
        why = _query_obstacle(query)
        if last_writer.get(streams_of(query.input)[0], -1) >= place:
            why = why or "it reads what a later query writes"
        if why:
            return f"{query.name}: {why}"
    return ""


def _query_obstacle(query: Query) -> str:
    source, select, output = query.input, query.select, query.output
    assert isinstance(source, StreamInput)
    handlers = handlers_of(source)
    if not all(isinstance(h, Filter) for h in handlers):
        return "a stream function is no Spark expression"
    if not isinstance(output, InsertInto) or output.events is EventType.EXPIRED:
        return "only 'insert into' of current events is native"
    if select.group_by or select.having is not None:
        return "'group by' and 'having' are not native"
    if select.order_by or select.limit is not None or select.offset:
        return "'order by', 'limit' and 'offset' are not native"
    exprs = [h.condition for h in handlers if isinstance(h, Filter)]
    exprs += [item.expr for item in select.items]
    return next((why for e in exprs if (why := obstacle(e))), "")


# A whole fragment without state.


@dataclass(frozen=True, slots=True)
class Projection:
    """One query without state: the rows of `source` that meet all `conditions`, as `columns` of
    `target`; expressions are over the attributes of `source`.

    `path` are the queries on the way; in their order an event runs through them, depth first.
    """

    source: str
    target: str
    conditions: tuple[Expr, ...]
    columns: Mapping[str, Expr]
    path: tuple[int, ...] = ()


def projections(app: App, fragment: Fragment) -> list[Projection]:
    """A fragment without state as projections of its inputs; empty where one is not native.

    A query on what another one made becomes a projection of the input both lead back to.
    """
    if kernel_because(app, fragment):
        return []
    made = [Projection(s, s, (), _own_fields(app, s)) for s in fragment.inputs]
    for place, query in enumerate(app.queries):
        if query.name in fragment.queries:
            before = [p for p in made if p.target == streams_of(query.input)[0]]
            made += [_projected(query, p, place) for p in before]
    return sorted(made[len(fragment.inputs) :], key=lambda p: p.path)


def _own_fields(app: App, stream: str) -> dict[str, Expr]:
    return {a.name: Field(a.type, stream, a.name) for a in app.stream(stream).schema.attributes}


def _projected(query: Query, before: Projection, place: int) -> Projection:
    def of_source(field: Field) -> Expr:
        return before.columns[field.name]

    asked = [h.condition for h in handlers_of(query.input) if isinstance(h, Filter)]
    conditions = (*before.conditions, *(with_fields(c, of_source) for c in asked))
    columns = {i.name: with_fields(i.expr, of_source) for i in query.select.items}
    path = (*before.path, place)
    return Projection(before.source, query.output.target, conditions, columns, path)


# What is asked before the kernel.


def prefix(app: App, fragment: Fragment, stream: str) -> Expr | None:
    """What an event of `stream` must satisfy to matter to any query; None: they all may."""
    if any(a.input.stream == stream and fragment.holds(a.name) for a in app.aggregations):
        return None
    names = set(fragment.queries)
    readers = [q for q in app.queries if q.name in names and stream in streams_of(q.input)]
    each = [_query_wants(q, stream) for q in readers]
    known = [w for w in each if w is not None]
    if not known or len(known) < len(each) or len(known) > PREFIX_PARTS_MAX:
        return None

    def of_the_stream(field: Field) -> Expr:
        return Field(field.type, stream, field.name)

    return balanced(Or, list(dict.fromkeys(with_fields(w, of_the_stream) for w in known)))


def _query_wants(query: Query, stream: str) -> Expr | None:
    """What Spark can say of the events of `stream` that `query` looks at; None: it may be any."""
    match query.input:
        case StreamInput():
            return _all_of(query.input.before, query.input.slot)
        case StateInput(kind=StateKind.PATTERN):
            return _pattern_wants(query.input, stream)
    return None


def _pattern_wants(pattern: StateInput, stream: str) -> Expr | None:
    """Some element could take the event, as far as the event alone can tell.

    Any event breaks a sequence, and may start the waiting of an absence for its key: those need
    them all.
    """
    leaves = state_leaves(pattern.state)
    if any(isinstance(leaf, AbsentState) for leaf in leaves):
        return None
    each = [_all_of(leaf.handlers, leaf.slot) for leaf in leaves if leaf.stream == stream]
    known = [c for c in each if c is not None]
    return balanced(Or, known) if known and len(known) == len(each) else None


def _all_of(handlers: Iterable[Handler], slot: str) -> Expr | None:
    """The leading filters' parts that ask for this event alone and that Spark can evaluate."""
    filters = itertools.takewhile(lambda h: isinstance(h, Filter), handlers)
    parts = [p for f in filters if isinstance(f, Filter) for p in conjuncts(f.condition)]
    known = [p for p in parts if _is_own(p, slot) and not obstacle(p)]
    return balanced(And, known) if known else None


def _is_own(expr: Expr, slot: str) -> bool:
    fields = [node for node in walk(expr) if isinstance(node, Field)]
    return all(field.slot == slot and field.index is None for field in fields)
