"""Typed expressions. Frozen, typed at construction, no behaviour.

Null rules are SiddhiQL's: arithmetic with null is null, x/0 is null, an ordered or equal
comparison with null is false, `!=` with null is true, `and`/`or` read null as false, `not null` is
true. Engines implement exactly this.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

from edgewise.event.types import AttrType


@dataclass(frozen=True, slots=True)
class Const:
    type: AttrType
    value: Any


@dataclass(frozen=True, slots=True)
class Field:
    """An attribute of an input slot. A query on one stream has one slot, named by its alias."""

    type: AttrType
    slot: str
    name: str


@dataclass(frozen=True, slots=True)
class OutField:
    """An attribute of the select list, as `having` and `order by` see it."""

    type: AttrType
    name: str


@dataclass(frozen=True, slots=True)
class Arith:
    """`op` is one of + - * / %; both sides are promoted to `type` first."""

    type: AttrType
    op: str
    left: Expr
    right: Expr


@dataclass(frozen=True, slots=True)
class Compare:
    """`op` is one of == != < <= > >=."""

    op: str
    left: Expr
    right: Expr
    type: AttrType = AttrType.BOOL


@dataclass(frozen=True, slots=True)
class And:
    left: Expr
    right: Expr
    type: AttrType = AttrType.BOOL


@dataclass(frozen=True, slots=True)
class Or:
    left: Expr
    right: Expr
    type: AttrType = AttrType.BOOL


@dataclass(frozen=True, slots=True)
class Not:
    operand: Expr
    type: AttrType = AttrType.BOOL


@dataclass(frozen=True, slots=True)
class IsNull:
    operand: Expr
    type: AttrType = AttrType.BOOL


@dataclass(frozen=True, slots=True)
class Call:
    """A scalar function, `name` with its namespace (`str:length`)."""

    type: AttrType
    name: str
    args: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Agg:
    """An aggregator: current rows add, expired rows subtract, a reset clears."""

    type: AttrType
    name: str
    args: tuple[Expr, ...]


Expr: TypeAlias = Const | Field | OutField | Arith | Compare | And | Or | Not | IsNull | Call | Agg


def children(expr: Expr) -> tuple[Expr, ...]:
    match expr:
        case Arith() | Compare() | And() | Or():
            return (expr.left, expr.right)
        case Not() | IsNull():
            return (expr.operand,)
        case Call() | Agg():
            return expr.args
        case Const() | Field() | OutField():
            return ()


def walk(expr: Expr) -> tuple[Expr, ...]:
    """The expression and everything below it, parents first."""
    found: list[Expr] = []
    pending: list[Expr] = [expr]
    while pending:
        node = pending.pop()
        found.append(node)
        pending.extend(reversed(children(node)))
    return tuple(found)
