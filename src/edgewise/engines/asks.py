"""What a plan asks of an event by itself, asked of whole Arrow tables.

SiddhiQL's null rules differ from Arrow's: a comparison with null is false (`!=` is true), `and`
and `or` read null as false. Numbers wrap and NaN compares in Arrow as in Java. Whole numbers of 64
bits and floating ones have no type that holds both: there is no word for comparing them.
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


def asked(expr: Expr, prefix: str) -> Any:
    """`expr` over the columns that begin with `prefix`, never null; None where Arrow has no word
    for it.
    """
    made = answered(expr, prefix)
    return None if made is None else _known(made)


def answered(expr: Expr, prefix: str = "") -> Any:
    """The value of `expr`, likewise; may be null."""
    try:
        return _arrow(expr, prefix)
    except NotImplementedError:
        return None


def kept_rows(table: Any, condition: Any) -> Any:
    """Those that meet it, in order. A mask first: as a step of Arrow's own plans a filter copies
    every column piece by piece.
    """
    return table.filter(met(table, condition))


def met(table: Any, condition: Any) -> Any:
    """Row by row, whether."""
    return made_rows(table, ["met"], [condition]).column(0)


def made_rows(table: Any, names: list[str], values: list[Any]) -> Any:
    """A table of values for each row, in order."""
    steps = [
        acero.Declaration("table_source", acero.TableSourceNodeOptions(table)),
        acero.Declaration("project", acero.ProjectNodeOptions(values, names)),
    ]
    return acero.Declaration.from_sequence(steps).to_table(use_threads=False)


def _arrow(expr: Expr, prefix: str) -> Any:
    match expr:
        case Const() if expr.value is not None and expr.type is not AttrType.OBJECT:
            return pc.scalar(pa.scalar(expr.value, ARROW_TYPES[expr.type]))
        case Field():
            return pc.field(f"{prefix}{expr.name}")
        case Arith(op="+" | "-" | "*"):
            left, right = (_typed(side, expr.type, prefix) for side in (expr.left, expr.right))
            return _ARITHMETIC[expr.op](left, right)
        case Compare():
            kind = _common(expr.left.type, expr.right.type)
            left, right = (_typed(side, kind, prefix) for side in (expr.left, expr.right))
            return pc.coalesce(COMPARISONS[expr.op](left, right), pc.scalar(expr.op == "!="))
        case And():
            return _known(_arrow(expr.left, prefix)) & _known(_arrow(expr.right, prefix))
        case Or():
            return _known(_arrow(expr.left, prefix)) | _known(_arrow(expr.right, prefix))
        case Not():
            return ~_known(_arrow(expr.operand, prefix))
        case IsNull():
            return _arrow(expr.operand, prefix).is_null()
    raise NotImplementedError


def _typed(expr: Expr, kind: AttrType, prefix: str) -> Any:
    made = _arrow(expr, prefix)
    return made if expr.type is kind else made.cast(ARROW_TYPES[kind], safe=False)


def _common(left: AttrType, right: AttrType) -> AttrType:
    """The type that holds every value of both."""
    if left is right and left is not AttrType.OBJECT:
        return left
    kinds = {left, right}
    if kinds <= _WHOLE:
        return AttrType.LONG
    if kinds <= {AttrType.INT, AttrType.FLOAT, AttrType.DOUBLE}:
        return AttrType.DOUBLE
    raise NotImplementedError


def _known(boolean: Any) -> Any:
    return pc.coalesce(boolean, pc.scalar(False))
