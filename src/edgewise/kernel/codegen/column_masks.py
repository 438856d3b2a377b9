"""Write conditions over whole columns, which numpy computes for all events of a run at once.

Only comparisons of whole numbers with constants, and what `and`, `or` and `not` make of them: for
these an array says exactly what Python says event by event, where no value is null.
"""

from __future__ import annotations

from collections.abc import Mapping

from edgewise.event.types import AttrType
from edgewise.plan.exprs import And, Compare, Const, Expr, Field, Not, Or

_WHOLE = (AttrType.INT, AttrType.LONG)
_LONG = 1 << 63


def mask(expr: Expr, arrays: Mapping[str, str]) -> str:
    """The text, over the arrays of attributes; '' where there is none."""
    match expr:
        case And(left=left, right=right):
            return _both(mask(left, arrays), "&", mask(right, arrays))
        case Or(left=left, right=right):
            return _both(mask(left, arrays), "|", mask(right, arrays))
        case Not(operand=operand):
            inner = mask(operand, arrays)
            return f"~{inner}" if inner else ""
        case Compare(op=op, left=left, right=right):
            return _both(_operand(left, arrays), op, _operand(right, arrays))
        case _:
            return ""


def all_of(exprs: tuple[Expr, ...], arrays: Mapping[str, str]) -> str:
    texts = [mask(expr, arrays) for expr in exprs]
    if not texts or not all(texts):
        return ""
    return texts[0] if len(texts) == 1 else f"({' & '.join(texts)})"


def _both(left: str, op: str, right: str) -> str:
    return f"({left} {op} {right})" if left and right else ""


def _operand(expr: Expr, arrays: Mapping[str, str]) -> str:
    match expr:
        case Field() if expr.type in _WHOLE and expr.index is None:
            return arrays[expr.name]
        case Const(value=int(value)) if expr.type in _WHOLE and -_LONG <= value < _LONG:
            return str(value)
        case _:
            return ""
