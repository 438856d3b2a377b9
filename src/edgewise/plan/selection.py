"""Define the select list: group by, having, order by, limit, offset."""

from __future__ import annotations

from dataclasses import dataclass

from edgewise.plan.exprs import Expr, Field, OutField


@dataclass(frozen=True, slots=True)
class SelectItem:
    name: str
    expr: Expr


@dataclass(frozen=True, slots=True)
class OrderBy:
    """By a selected attribute or, where the name is not selected, by one of the input."""

    field: OutField | Field
    descending: bool = False


@dataclass(frozen=True, slots=True)
class Select:
    """`having` sees the output (OutField) and, where a name is not there, the input (Field)."""

    items: tuple[SelectItem, ...]
    group_by: tuple[Field, ...] = ()
    having: Expr | None = None
    order_by: tuple[OrderBy, ...] = ()
    limit: int | None = None
    offset: int | None = None
