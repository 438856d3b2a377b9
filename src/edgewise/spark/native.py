"""Build Spark columns from plan expressions, where both are proven equal.

Which expressions those are is decided in `plan.rules.native_spark`; here they are built. Spark's
own expressions run in the JVM and keep events out of Python, at the price of a second definition;
`tests/spark/test_native.py` holds it equal to the kernel's.

SiddhiQL's null rules differ from SQL's: a comparison with null is false (`!=` is true), `and` and
`or` read null as false, so no boolean built here is ever null. Spark takes NaN for the largest
number and equal to itself; here it compares as in Java.

Used by `tasks`: a *prefilter* drops events before they enter Python, a *projection* replaces the
kernel of a fragment without state.
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
from edgewise.plan.rules.native_spark import Projection, build_prefilter, find_native_obstacle

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


def build_column(expr: Expr, columns: Columns) -> Column | None:
    """`expr` over `columns`; None where it is not proven equal."""
    return None if find_native_obstacle(expr) else _build(expr, columns)


def _build(expr: Expr, columns: Columns) -> Column:
    match expr:
        case Const():
            return sf.lit(expr.value).cast(SPARK_TYPES[expr.type])
        case Field():
            return columns[expr.name]
        case Arith() | Compare() | And() | Or():
            return _build_binary(expr, _build(expr.left, columns), _build(expr.right, columns))
        case Not():
            return ~_null_as_false(_build(expr.operand, columns))
        case IsNull():
            return _build(expr.operand, columns).isNull()
        case Call():
            return sf.call_function(expr.spark, *(_build(a, columns) for a in expr.args))
    raise AssertionError(expr)


def _build_binary(expr: Arith | Compare | And | Or, left: Column, right: Column) -> Column:
    match expr:
        case Arith():
            target = SPARK_TYPES[expr.type]
            return _ARITHMETIC[expr.op](left.cast(target), right.cast(target))  # type: ignore[no-any-return]
        case Compare():
            return _build_comparison(expr, left, right)
        case And():
            return _null_as_false(left) & _null_as_false(right)
        case Or():
            return _null_as_false(left) | _null_as_false(right)


def _build_comparison(expr: Compare, left: Column, right: Column) -> Column:
    differs = expr.op == "!="
    found = COMPARISONS[expr.op](left, right)
    sides = ((expr.left, left), (expr.right, right))
    for side, value in sides:
        if side.type in _FLOATS and not isinstance(side, Const):
            found = found | sf.isnan(value) if differs else found & ~sf.isnan(value)
    return sf.coalesce(found, sf.lit(differs))


def _null_as_false(boolean: Column) -> Column:
    return sf.coalesce(boolean, sf.lit(False))


def list_input_columns(app: App, stream: str, prefix: str) -> dict[str, Column]:
    """The attributes of an input stream in the merged table."""
    return {name: sf.col(f"`{prefix}{name}`") for name in app.stream(stream).schema.names}


def build_condition(app: App, fragment: Fragment, stream: str, prefix: str) -> Column | None:
    """What an event of `stream` must meet so that some query can use it; None: all may."""
    condition = build_prefilter(app, fragment, stream)
    if condition is None:
        return None
    return _null_as_false(_build(condition, list_input_columns(app, stream, prefix)))


def build_projection(
    app: App, projection: Projection, prefix: str
) -> tuple[Column, dict[str, Column]]:
    """The condition on rows of the merged table, and the values of those that meet it."""
    own = list_input_columns(app, projection.source, prefix)
    conditions = (_null_as_false(_build(c, own)) for c in projection.conditions)
    met = reduce(operator.and_, conditions, sf.lit(True))
    return met, {name: _build(expr, own) for name, expr in projection.columns.items()}
