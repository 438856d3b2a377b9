"""Parts of a plan as Spark columns, where they are proven equal; None where not.

SiddhiQL's null rules differ from SQL's: a comparison with null is false (`!=` is true), `and` and
`or` read null as false. Every boolean made here is therefore never null.
Spark takes NaN for the largest number and equal to itself; here it compares as in Java.

Two uses: a *prefix* filter keeps what nobody wants from crossing into Python, a *projection*
replaces the kernel of a fragment without state.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as sf

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
    walk,
)
from edgewise.plan.fragments import Fragment
from edgewise.plan.inputs import (
    AbsentState,
    Filter,
    Handler,
    StateInput,
    StateKind,
    StreamInput,
    state_leaves,
    streams_of,
)
from edgewise.plan.nodes import App, Query
from edgewise.plan.outputs import EventType, InsertInto

SPARK_TYPES = {
    AttrType.STRING: "string",
    AttrType.INT: "int",
    AttrType.LONG: "bigint",
    AttrType.FLOAT: "float",
    AttrType.DOUBLE: "double",
    AttrType.BOOL: "boolean",
}
_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
# Division stays with the kernel: Spark divides whole numbers into doubles.
_ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
}
_FLOATS = (AttrType.FLOAT, AttrType.DOUBLE)

Columns = Mapping[str, Column]  # by name of attribute


def column(expr: Expr, columns: Columns) -> Column | None:
    """`expr` over `columns`; None where it is not proven equal."""
    match expr:
        case Const() if expr.type in SPARK_TYPES:
            return sf.lit(expr.value).cast(SPARK_TYPES[expr.type])
        case Field() if expr.type in SPARK_TYPES:
            return columns.get(expr.name)
        case Arith() | Compare() | And() | Or():
            left = column(expr.left, columns)
            right = column(expr.right, columns)
            return None if left is None or right is None else _both(expr, left, right)
        case Not():
            operand = column(expr.operand, columns)
            return None if operand is None else ~_known(operand)
        case IsNull():
            operand = column(expr.operand, columns)
            return None if operand is None else operand.isNull()
        case Call() if expr.spark:
            args = [column(a, columns) for a in expr.args]
            known = [a for a in args if a is not None]
            return sf.call_function(expr.spark, *known) if len(known) == len(args) else None
    return None


def _both(expr: Arith | Compare | And | Or, left: Column, right: Column) -> Column | None:
    match expr:
        case Arith() if expr.op in _ARITHMETIC and expr.type in SPARK_TYPES:
            target = SPARK_TYPES[expr.type]
            return _ARITHMETIC[expr.op](left.cast(target), right.cast(target))  # type: ignore[no-any-return]
        case Compare():
            return _compared(expr, left, right)
        case And():
            return _known(left) & _known(right)
        case Or():
            return _known(left) | _known(right)
    return None


def _compared(expr: Compare, left: Column, right: Column) -> Column:
    differs = expr.op == "!="
    found = _COMPARE[expr.op](left, right)
    sides = ((expr.left, left), (expr.right, right))
    for side, value in sides:
        if side.type in _FLOATS and not isinstance(side, Const):
            found = found | sf.isnan(value) if differs else found & ~sf.isnan(value)
    return sf.coalesce(found, sf.lit(differs))


def _known(boolean: Column) -> Column:
    return sf.coalesce(boolean, sf.lit(False))


def own_columns(app: App, stream: str, prefix: str) -> dict[str, Column]:
    """The attributes of an input stream in the merged table."""
    return {name: sf.col(f"`{prefix}{name}`") for name in app.stream(stream).schema.names}


def wanted(app: App, fragment: Fragment, stream: str, prefix: str) -> Column | None:
    """What an event of `stream` must satisfy to matter to any query; None: they all may."""
    columns = own_columns(app, stream, prefix)
    each = [
        _query_wants(q, stream, columns)
        for q in app.queries
        if q.name in fragment.queries and stream in streams_of(q.input)
    ]
    known = [w for w in each if w is not None]
    if not known or len(known) < len(each):
        return None
    return reduce(operator.or_, known)


def _query_wants(query: Query, stream: str, columns: Columns) -> Column | None:
    """What Spark can say of the events of `stream` that `query` looks at; None: it may be any."""
    match query.input:
        case StreamInput():
            return _all_of(query.input.before, query.input.slot, columns)
        case StateInput(kind=StateKind.PATTERN):
            return _pattern_wants(query.input, stream, columns)
    return None


def _pattern_wants(pattern: StateInput, stream: str, columns: Columns) -> Column | None:
    """Some element could take the event, as far as the event alone can tell.

    Any event breaks a sequence, and may start the waiting of an absence for its key: those need
    them all.
    """
    leaves = state_leaves(pattern.state)
    if any(isinstance(leaf, AbsentState) for leaf in leaves):
        return None
    each = [_all_of(leaf.handlers, leaf.slot, columns) for leaf in leaves if leaf.stream == stream]
    known = [c for c in each if c is not None]
    return reduce(operator.or_, known) if known and len(known) == len(each) else None


def _all_of(handlers: tuple[Handler, ...], slot: str, columns: Columns) -> Column | None:
    """The leading filters' parts that ask for this event alone and that Spark can evaluate."""
    filters = itertools.takewhile(lambda h: isinstance(h, Filter), handlers)
    parts = [p for f in filters if isinstance(f, Filter) for p in _conjuncts(f.condition)]
    found = [column(p, columns) for p in parts if _is_own(p, slot)]
    known = [_known(c) for c in found if c is not None]
    return reduce(operator.and_, known) if known else None


def _conjuncts(expr: Expr) -> list[Expr]:
    if isinstance(expr, And):
        return [*_conjuncts(expr.left), *_conjuncts(expr.right)]
    return [expr]


def _is_own(expr: Expr, slot: str) -> bool:
    fields = [node for node in walk(expr) if isinstance(node, Field)]
    return all(field.slot == slot and field.index is None for field in fields)


@dataclass(frozen=True, slots=True)
class Projection:
    """One query without state: the rows of `source` where `condition`, as `columns` of `target`.

    `path` are the queries on the way; in their order an event runs through them, depth first.
    """

    source: str
    target: str
    condition: Column
    columns: Columns
    path: tuple[int, ...] = ()


def projections(app: App, fragment: Fragment, prefixes: Mapping[str, str]) -> list[Projection]:
    """A fragment without state as projections of its inputs; empty where one is not proven equal.

    A query on what another one made becomes a projection of the input both lead back to.
    """
    made = [
        Projection(s, s, sf.lit(True), own_columns(app, s, prefixes[s])) for s in fragment.inputs
    ]
    queries = {i: q for i, q in enumerate(app.queries) if q.name in fragment.queries}
    if not all(_plain(query) for query in queries.values()):
        return []
    for place, query in queries.items():
        assert isinstance(query.input, StreamInput)
        before = [p for p in made if p.target == query.input.stream]
        after = [_projected(query, p, place) for p in before]
        known = [p for p in after if p is not None]
        written_later = [q for i, q in queries.items() if i > place and _writes(q, query)]
        if not before or len(known) < len(after) or written_later:
            return []
        made += known
    return sorted(made[len(fragment.inputs) :], key=lambda p: p.path)


def _writes(query: Query, reader: Query) -> bool:
    return query.output is not None and query.output.target in streams_of(reader.input)


def _plain(query: Query) -> bool:
    """A filter and a select list, nothing else."""
    select, source, output = query.select, query.input, query.output
    handlers = (*source.before, *source.after) if isinstance(source, StreamInput) else ()
    return (
        isinstance(source, StreamInput)
        and source.window is None
        and all(isinstance(h, Filter) for h in handlers)
        and isinstance(output, InsertInto)
        and output.events is not EventType.EXPIRED
        and not (select.group_by or select.having or select.order_by)
        and select.limit is None
        and not select.offset
        and query.rate is None
        and not query.partition
    )


def _projected(query: Query, before: Projection, place: int) -> Projection | None:
    assert isinstance(query.input, StreamInput)
    assert isinstance(query.output, InsertInto)
    handlers = (*query.input.before, *query.input.after)
    filters = [h.condition for h in handlers if isinstance(h, Filter)]
    conditions = [column(f, before.columns) for f in filters]
    items = {i.name: column(i.expr, before.columns) for i in query.select.items}
    columns = {name: item for name, item in items.items() if item is not None}
    known = [_known(c) for c in conditions if c is not None]
    if len(known) < len(filters) or len(columns) < len(items):
        return None
    condition = reduce(operator.and_, known, before.condition)
    path = (*before.path, place)
    return Projection(before.source, query.output.target, condition, columns, path)
