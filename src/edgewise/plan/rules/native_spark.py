"""Find what Spark's own expressions compute exactly as the language defines it.

One table serves the engine that builds the expressions and `explain` that describes them.

A fragment without state is native where all of it is in the table. For a fragment with state,
`build_prefilter` is what of its filters Spark can ask before an event crosses into the kernel.
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
    build_balanced,
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
from edgewise.plan.rules.map_expressions import replace_fields

NATIVE_TYPES = frozenset(AttrType) - {AttrType.OBJECT}
NATIVE_ARITHMETIC = frozenset({"+", "-", "*"})
PREFILTER_PARTS_MAX = 200  # conditions of one prefix; with more, Spark's planner is the slower way


def find_native_obstacle(expr: Expr) -> str:
    """Why Spark cannot compute it as the language says, '' where it can."""
    return next((why for node in walk(expr) if (why := _find_node_obstacle(node))), "")


def _find_node_obstacle(node: Expr) -> str:
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


def explain_kernel_use(app: App, fragment: Fragment) -> str:
    """Why a fragment without state runs in the kernel, '' where it is Spark's own expressions."""
    names = set(fragment.queries)
    queries = [q for q in app.queries if q.name in names]
    last_writer = {q.output.target: index for index, q in enumerate(queries)}
    for index, query in enumerate(queries):
        why = _find_query_obstacle(query)
        if last_writer.get(streams_of(query.input)[0], -1) >= index:
            why = why or "it reads what a later query writes"
        if why:
            return f"{query.name}: {why}"
    return ""


def _find_query_obstacle(query: Query) -> str:
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
    return next((why for e in exprs if (why := find_native_obstacle(e))), "")


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


def build_projections(app: App, fragment: Fragment) -> list[Projection]:
    """A fragment without state as projections of its inputs; empty where one is not native.

    A query on what another one found becomes a projection of the input both lead back to.
    """
    if explain_kernel_use(app, fragment):
        return []
    found = [Projection(s, s, (), _fields_of_stream(app, s)) for s in fragment.inputs]
    for index, query in enumerate(app.queries):
        if query.name in fragment.queries:
            before = [p for p in found if p.target == streams_of(query.input)[0]]
            found += [_project_query(query, p, index) for p in before]
    return sorted(found[len(fragment.inputs) :], key=lambda p: p.path)


def _fields_of_stream(app: App, stream: str) -> dict[str, Expr]:
    return {a.name: Field(a.type, stream, a.name) for a in app.stream(stream).schema.attributes}


def _project_query(query: Query, before: Projection, index: int) -> Projection:
    def of_source(field: Field) -> Expr:
        return before.columns[field.name]

    asked = [h.condition for h in handlers_of(query.input) if isinstance(h, Filter)]
    conditions = (*before.conditions, *(replace_fields(c, of_source) for c in asked))
    columns = {i.name: replace_fields(i.expr, of_source) for i in query.select.items}
    path = (*before.path, index)
    return Projection(before.source, query.output.target, conditions, columns, path)


# What is asked before the kernel.


def build_prefilter(app: App, fragment: Fragment, stream: str) -> Expr | None:
    """What an event of `stream` must satisfy to matter to any query; None: they all may."""
    if any(a.input.stream == stream and fragment.holds(a.name) for a in app.aggregations):
        return None
    names = set(fragment.queries)
    readers = [q for q in app.queries if q.name in names and stream in streams_of(q.input)]
    each = [_query_prefilter(q, stream) for q in readers]
    known = [w for w in each if w is not None]
    if not known or len(known) < len(each) or len(known) > PREFILTER_PARTS_MAX:
        return None

    def of_the_stream(field: Field) -> Expr:
        return Field(field.type, stream, field.name)

    return build_balanced(Or, list(dict.fromkeys(replace_fields(w, of_the_stream) for w in known)))


def _query_prefilter(query: Query, stream: str) -> Expr | None:
    """What Spark can say of the events of `stream` that `query` looks at; None: it may be any."""
    match query.input:
        case StreamInput():
            return _combine_filters(query.input.before, query.input.slot)
        case StateInput(kind=StateKind.PATTERN):
            return _pattern_prefilter(query.input, stream)
    return None


def _pattern_prefilter(pattern: StateInput, stream: str) -> Expr | None:
    """Some element could take the event, as far as the event alone can tell.

    Any event breaks a sequence, and may start the waiting of an absence for its key: those need
    them all.
    """
    leaves = state_leaves(pattern.state)
    if any(isinstance(leaf, AbsentState) for leaf in leaves):
        return None
    each = [_combine_filters(leaf.handlers, leaf.slot) for leaf in leaves if leaf.stream == stream]
    known = [c for c in each if c is not None]
    return build_balanced(Or, known) if known and len(known) == len(each) else None


def _combine_filters(handlers: Iterable[Handler], slot: str) -> Expr | None:
    """The leading filters' parts that ask for this event alone and that Spark can evaluate."""
    filters = itertools.takewhile(lambda h: isinstance(h, Filter), handlers)
    parts = [p for f in filters if isinstance(f, Filter) for p in conjuncts(f.condition)]
    known = [p for p in parts if _reads_only_slot(p, slot) and not find_native_obstacle(p)]
    return build_balanced(And, known) if known else None


def _reads_only_slot(expr: Expr, slot: str) -> bool:
    fields = [node for node in walk(expr) if isinstance(node, Field)]
    return all(field.slot == slot and field.index is None for field in fields)
