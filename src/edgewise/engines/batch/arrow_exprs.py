"""Translate plan expressions to pyarrow; None where unsupported.

A filter over a whole Arrow table drops events before they become Python values, which is much
faster than a kernel that drops them one by one. The price is a second definition of each
expression; `tests/engines/batch/test_arrow_exprs.py` holds it equal to the kernel's.

SiddhiQL's null rules differ from Arrow's: a comparison with null is false (`!=` is true), `and`
and `or` read null as false. Numbers wrap and NaN compares in Arrow as in Java. A long and a double
have no common type that holds all values of both: comparing them is not translated.

Used by `select_rows` and `spark.arrow_project`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import acero

from edgewise.event.arrow import ARROW_TYPES
from edgewise.event.types import AttrType
from edgewise.plan.exprs import (
    COMPARISONS,
    And,
    Arith,
    Compare,
    Const,
    Expr,
    Field,
    IsNull,
    Not,
    Or,
)

_ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "+": pc.add,
    "-": pc.subtract,
    "*": pc.multiply,
}
_WHOLE = {AttrType.INT, AttrType.LONG}


def translate_condition(expr: Expr, prefix: str) -> Any:
    """A boolean that is never null, over columns that begin with `prefix`; None: unsupported."""
    translated = translate_to_arrow(expr, prefix)
    return None if translated is None else _null_as_false(translated)


def translate_to_arrow(expr: Expr, prefix: str = "") -> Any:
    """The value of `expr`, which may be null; None: unsupported."""
    try:
        return _translate(expr, prefix)
    except NotImplementedError:
        return None


def filter_table(table: Any, condition: Any) -> Any:
    """The rows that meet the condition, in order.

    By a mask: a filter node of Arrow's own plans would copy every column piece by piece.
    """
    return table.filter(evaluate_condition(table, condition))


def evaluate_condition(table: Any, condition: Any) -> Any:
    """A boolean per row."""
    return project_table(table, ["met"], [condition]).column(0)


def project_table(table: Any, names: list[str], values: list[Any]) -> Any:
    """A table of the values for each row, in order."""
    steps = [
        acero.Declaration("table_source", acero.TableSourceNodeOptions(table)),
        acero.Declaration("project", acero.ProjectNodeOptions(values, names)),
    ]
    return acero.Declaration.from_sequence(steps).to_table(use_threads=False)


def _translate(expr: Expr, prefix: str) -> Any:
    match expr:
        case Const() if expr.value is not None and expr.type is not AttrType.OBJECT:
            return pc.scalar(pa.scalar(expr.value, ARROW_TYPES[expr.type]))
        case Field():
            return pc.field(f"{prefix}{expr.name}")
        case Arith(op="+" | "-" | "*"):
            left, right = (_cast(side, expr.type, prefix) for side in (expr.left, expr.right))
            return _ARITHMETIC[expr.op](left, right)
        case Compare():
            kind = _find_common_type(expr.left.type, expr.right.type)
            left, right = (_cast(side, kind, prefix) for side in (expr.left, expr.right))
            return pc.coalesce(COMPARISONS[expr.op](left, right), pc.scalar(expr.op == "!="))
        case And():
            left, right = (_translate_boolean(side, prefix) for side in (expr.left, expr.right))
            return left & right
        case Or():
            left, right = (_translate_boolean(side, prefix) for side in (expr.left, expr.right))
            return left | right
        case Not():
            return ~_translate_boolean(expr.operand, prefix)
        case IsNull():
            return _translate(expr.operand, prefix).is_null()
    raise NotImplementedError


def _translate_boolean(expr: Expr, prefix: str) -> Any:
    return _null_as_false(_translate(expr, prefix))


def _cast(expr: Expr, kind: AttrType, prefix: str) -> Any:
    translated = _translate(expr, prefix)
    return translated if expr.type is kind else translated.cast(ARROW_TYPES[kind], safe=False)


def _find_common_type(left: AttrType, right: AttrType) -> AttrType:
    """The type that holds every value of both."""
    if left is right and left is not AttrType.OBJECT:
        return left
    kinds = {left, right}
    if kinds <= _WHOLE:
        return AttrType.LONG
    if kinds <= {AttrType.INT, AttrType.FLOAT, AttrType.DOUBLE}:
        return AttrType.DOUBLE
    raise NotImplementedError


def _null_as_false(boolean: Any) -> Any:
    return pc.coalesce(boolean, pc.scalar(False))
