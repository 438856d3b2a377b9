"""Parts of a plan as Spark columns, where they are proven equal; None where not.

Which those are is for `plan/rules/native.py` to say; here they are built.

SiddhiQL's null rules differ from SQL's: a comparison with null is false (`!=` is true), `and` and
`or` read null as false. Every boolean made here is therefore never null.
Spark takes NaN for the largest number and equal to itself; here it compares as in Java.

Two uses: a *prefix* filter keeps what nobody wants from crossing into Python, a *projection*
replaces the kernel of a fragment without state.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as sf

from edgewise.event.types import AttrType
from edgewise.plan.exprs import (
    COMPARISONS,
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
)
from edgewise.plan.fragments import Fragment
from edgewise.plan.nodes import App
from edgewise.plan.rules.native import Projection, obstacle
from edgewise.plan.rules.native import prefix as asked_before

SPARK_TYPES = {
    AttrType.STRING: "string",
    AttrType.INT: "int",
    AttrType.LONG: "bigint",
    AttrType.FLOAT: "float",
    AttrType.DOUBLE: "double",
    AttrType.BOOL: "boolean",
}
_ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
}
_FLOATS = (AttrType.FLOAT, AttrType.DOUBLE)

Columns = Mapping[str, Column]  # by name of attribute


def column(expr: Expr, columns: Columns) -> Column | None:
    """`expr` over `columns`; None where it is not proven equal."""
    return None if obstacle(expr) else _column(expr, columns)


def _column(expr: Expr, columns: Columns) -> Column:
    match expr:
        case Const():
            return sf.lit(expr.value).cast(SPARK_TYPES[expr.type])
        case Field():
            return columns[expr.name]
        case Arith() | Compare() | And() | Or():
            return _both(expr, _column(expr.left, columns), _column(expr.right, columns))
        case Not():
            return ~_known(_column(expr.operand, columns))
        case IsNull():
            return _column(expr.operand, columns).isNull()
        case Call():
            return sf.call_function(expr.spark, *(_column(a, columns) for a in expr.args))
    raise AssertionError(expr)


def _both(expr: Arith | Compare | And | Or, left: Column, right: Column) -> Column:
    match expr:
        case Arith():
            target = SPARK_TYPES[expr.type]
            return _ARITHMETIC[expr.op](left.cast(target), right.cast(target))  # type: ignore[no-any-return]
        case Compare():
            return _compared(expr, left, right)
        case And():
            return _known(left) & _known(right)
        case Or():
            return _known(left) | _known(right)


def _compared(expr: Compare, left: Column, right: Column) -> Column:
    differs = expr.op == "!="
    found = COMPARISONS[expr.op](left, right)
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
    asked = asked_before(app, fragment, stream)
    return None if asked is None else _known(_column(asked, own_columns(app, stream, prefix)))


def projection(app: App, one: Projection, prefix: str) -> tuple[Column, dict[str, Column]]:
    """Which rows of the merged table it keeps, and what it makes of them."""
    own = own_columns(app, one.source, prefix)
    kept = reduce(operator.and_, (_known(_column(c, own)) for c in one.conditions), sf.lit(True))
    return kept, {name: _column(expr, own) for name, expr in one.columns.items()}
