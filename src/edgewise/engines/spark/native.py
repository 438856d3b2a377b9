"""Expressions of the plan as Spark columns, where they are proven equal; None where not.

SiddhiQL's null rules differ from SQL's: a comparison with null is false (`!=` is true), `and` and
`or` read null as false. Every boolean made here is therefore never null.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable
from functools import reduce
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as sf

from edgewise.event.types import AttrType
from edgewise.plan.exprs import And, Arith, Compare, Const, Expr, Field, IsNull, Not, Or, walk
from edgewise.plan.fragments import Fragment
from edgewise.plan.inputs import Filter, StreamInput, streams_of
from edgewise.plan.nodes import App, Query

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


def column(expr: Expr, prefix: str) -> Column | None:
    """`expr` over columns named `prefix` and the attribute."""
    match expr:
        case Const() if expr.type in SPARK_TYPES:
            return sf.lit(expr.value).cast(SPARK_TYPES[expr.type])
        case Field() if expr.type in SPARK_TYPES:
            return sf.col(f"`{prefix}{expr.name}`")
        case Arith():
            return _arith(expr, prefix)
        case Compare():
            return _compare(expr, prefix)
        case And() | Or():
            left, right = column(expr.left, prefix), column(expr.right, prefix)
            if left is None or right is None:
                return None
            return left & right if isinstance(expr, And) else left | right
        case Not():
            operand = column(expr.operand, prefix)
            if operand is None or any(_floating(node) for node in walk(expr)):
                return None
            return ~_known(operand)
        case IsNull():
            operand = column(expr.operand, prefix)
            return None if operand is None else operand.isNull()
    return None


def _arith(expr: Arith, prefix: str) -> Column | None:
    """+ - * wrap as in Java; / and % stay with the kernel: Spark divides into doubles."""
    left, right = column(expr.left, prefix), column(expr.right, prefix)
    if left is None or right is None:
        return None
    target = SPARK_TYPES[expr.type]
    left, right = left.cast(target), right.cast(target)
    match expr.op:
        case "+":
            return left + right
        case "-":
            return left - right
        case "*":
            return left * right
    return None


def _compare(expr: Compare, prefix: str) -> Column | None:
    left, right = column(expr.left, prefix), column(expr.right, prefix)
    if left is None or right is None or (_floating(expr) and expr.op == "!="):
        return None
    return sf.coalesce(_COMPARE[expr.op](left, right), sf.lit(expr.op == "!="))


def _floating(expr: Expr) -> bool:
    """Spark takes NaN for the largest number: it may keep more, if not negated."""
    floats = (AttrType.FLOAT, AttrType.DOUBLE)
    return isinstance(expr, Compare) and (expr.left.type in floats or expr.right.type in floats)


def _known(boolean: Column) -> Column:
    return sf.coalesce(boolean, sf.lit(False))


def wanted(app: App, fragment: Fragment, stream: str, prefix: str) -> Column | None:
    """What an event of `stream` must satisfy to matter to any query; None: they all may.

    The kernel checks again; this only keeps what nobody wants from crossing into Python.
    """
    each = [
        _query_wants(q, prefix)
        for q in app.queries
        if q.name in fragment.queries and stream in streams_of(q.input)
    ]
    known = [w for w in each if w is not None]
    if not known or len(known) < len(each):
        return None
    return reduce(operator.or_, known)


def _query_wants(query: Query, prefix: str) -> Column | None:
    """The filters before the window that Spark can evaluate, together; at least one."""
    if not isinstance(query.input, StreamInput):
        return None
    filters = itertools.takewhile(lambda h: isinstance(h, Filter), query.input.before)
    found = [column(f.condition, prefix) for f in filters if isinstance(f, Filter)]
    known = [_known(c) for c in found if c is not None]
    return reduce(operator.and_, known) if known else None
