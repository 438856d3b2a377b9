"""Fold constants: what is known at compile time is not computed for every event.

Numbers follow the language: int and long wrap, `/` and `%` truncate towards zero, x/0 is null and
left alone, float is rounded to 32 bits. `x and true` stays: a null x must still become false.
"""

from __future__ import annotations

import math
import operator
import struct
from dataclasses import replace

from edgewise.event.types import NUMERIC, AttrType
from edgewise.plan.exprs import (
    COMPARISONS,
    Agg,
    And,
    Arith,
    Call,
    Compare,
    Const,
    Expr,
    InTable,
    IsNull,
    Not,
    Or,
)
from edgewise.plan.nodes import App
from edgewise.plan.rules.map_expressions import map_exprs

TRUE, FALSE = Const(AttrType.BOOL, True), Const(AttrType.BOOL, False)
BITS = {AttrType.INT: 32, AttrType.LONG: 64}


def fold_constants(app: App) -> App:
    return map_exprs(app, fold)


def fold(expr: Expr) -> Expr:
    """The expression with every constant part computed."""
    match expr:
        case Arith():
            return _fold_arithmetic(replace(expr, left=fold(expr.left), right=fold(expr.right)))
        case Compare():
            return _fold_compare(replace(expr, left=fold(expr.left), right=fold(expr.right)))
        case And():
            left, right = fold(expr.left), fold(expr.right)
            known = FALSE in {_type_key(left), _type_key(right)}
            return FALSE if known else _fold_both(And(left, right), TRUE)
        case Or():
            left, right = fold(expr.left), fold(expr.right)
            known = TRUE in {_type_key(left), _type_key(right)}
            return TRUE if known else _fold_both(Or(left, right), FALSE)
        case Not():
            inner = fold(expr.operand)
            return _constant_truth(not inner.value) if isinstance(inner, Const) else Not(inner)
        case IsNull():
            return IsNull(fold(expr.operand))
        case InTable():
            return replace(expr, condition=fold(expr.condition))
        case Call() | Agg():
            return replace(expr, args=tuple(fold(a) for a in expr.args))
        case _:
            return expr


def _type_key(expr: Expr) -> Expr | None:
    return expr if isinstance(expr, Const) and expr.type is AttrType.BOOL else None


def _fold_both(expr: And | Or, neutral: Const) -> Expr:
    return neutral if expr.left == expr.right == neutral else expr


def _constant_truth(value: object) -> Const:
    return TRUE if value else FALSE


def _fold_compare(expr: Compare) -> Expr:
    left, right = expr.left, expr.right
    if not isinstance(left, Const) or not isinstance(right, Const):
        return expr
    return _constant_truth(COMPARISONS[expr.op](left.value, right.value))


def _fold_arithmetic(expr: Arith) -> Expr:
    left, right = expr.left, expr.right
    if not isinstance(left, Const) or not isinstance(right, Const):
        return expr
    assert expr.type in NUMERIC
    if expr.op in {"/", "%"} and right.value == 0:
        return expr
    value = _compute_arithmetic(expr.op, expr.type, left.value, right.value)
    return expr if value is None else Const(expr.type, value)


def _compute_arithmetic(op: str, kind: AttrType, left: float, right: float) -> float | None:
    """The value, or None where it is better left to the engine (infinite, not a number)."""
    if kind in BITS:
        return _wrap_integer(_is_whole(op, int(left), int(right)), BITS[kind])
    if kind is AttrType.FLOAT:
        left, right = _round_float(left), _round_float(right)
    try:
        found = {
            "+": operator.add,
            "-": operator.sub,
            "*": operator.mul,
            "/": operator.truediv,
            "%": math.fmod,
        }[op](left, right)
        found = _round_float(found) if kind is AttrType.FLOAT else found
    except (OverflowError, ValueError):
        return None
    return found if math.isfinite(found) else None


def _is_whole(op: str, left: int, right: int) -> int:
    match op:
        case "+":
            return left + right
        case "-":
            return left - right
        case "*":
            return left * right
        case _:
            quotient = abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
            return quotient if op == "/" else left - quotient * right


def _wrap_integer(value: int, bits: int) -> int:
    half = 1 << (bits - 1)
    return (value + half) % (2 * half) - half


def _round_float(value: float) -> float:
    return float(struct.unpack("f", struct.pack("f", value))[0])
