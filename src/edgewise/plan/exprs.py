"""Define typed expressions. Frozen, typed at construction, no behaviour.

Null rules are SiddhiQL's: arithmetic with null is null, x/0 is null, an ordered or equal
comparison with null is false, `!=` with null is true, `and`/`or` read null as false, `not null` is
true. Engines implement exactly this.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

from edgewise.event.types import AttrType

COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@dataclass(frozen=True, slots=True)
class Const:
    type: AttrType
    value: Any


@dataclass(frozen=True, slots=True)
class Field:
    """An attribute of an input slot. A query on one stream has one slot, named by its alias.

    `index` picks one event of a counted pattern element: 0 is the first, -1 the last, -2 the one
    before. Without it a counted element gives the list of all its values, as an object. Within
    the element's own filter the last event is the one matched before.
    """

    type: AttrType
    slot: str
    name: str
    index: int | None = None


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
class SlotIsNull:
    """Whether a pattern element (or the other side of an outer join) has no event here."""

    slot: str
    index: int | None = None
    type: AttrType = AttrType.BOOL


@dataclass(frozen=True, slots=True)
class SlotTime:
    """The timestamp of a slot's event, ms; the empty slot is the row itself."""

    slot: str = ""
    index: int | None = None
    type: AttrType = AttrType.LONG


@dataclass(frozen=True, slots=True)
class InTable:
    """True when some row of the table satisfies; its columns are fields of the slot `table`."""

    condition: Expr
    table: str
    type: AttrType = AttrType.BOOL


@dataclass(frozen=True, slots=True)
class Call:
    """A scalar function, `name` with its namespace (`str:length`).

    `body` computes it where an engine has no own way to; `spark` names a native expression.
    A `clocked` body is given the event time first, a `typed` one the types of its arguments.
    Unless it `takes_null`, a null argument makes the result null without asking the body, or
    drops the event where the function `drops_null`.
    """

    type: AttrType
    name: str
    args: tuple[Expr, ...]
    body: Callable[..., Any] | None = field(default=None, repr=False)
    spark: str = ""
    clocked: bool = False
    takes_null: bool = False
    drops_null: bool = False
    typed: bool = False
    deterministic: bool = False  # as its author declares; ours always are


class AggregateBody(Protocol):
    """What computes an aggregate: four verbs over a state that is replaced, never changed.

    `eep.Aggregate` is one. Where `invertible` is false, `merge` stands in for `compensate`. A
    value with a null in it is left out unless it `takes_null`.
    """

    invertible: bool
    takes_null: bool

    def init(self) -> Any: ...
    def accumulate(self, state: Any, value: Any) -> Any: ...
    def compensate(self, state: Any, value: Any) -> Any: ...
    def merge(self, earlier: Any, later: Any) -> Any: ...
    def emit(self, state: Any) -> Any: ...


@dataclass(frozen=True, slots=True)
class Agg:
    """An aggregate: current rows add, expired rows subtract, a reset clears.

    `body` computes one that is the user's own; those of the language are known by name.
    """

    type: AttrType
    name: str
    args: tuple[Expr, ...]
    body: AggregateBody | None = field(default=None, repr=False, compare=False)


Expr: TypeAlias = (
    Const
    | Field
    | OutField
    | Arith
    | Compare
    | And
    | Or
    | Not
    | IsNull
    | SlotIsNull
    | SlotTime
    | InTable
    | Call
    | Agg
)


def children(expr: Expr) -> tuple[Expr, ...]:
    match expr:
        case Arith() | Compare() | And() | Or():
            return (expr.left, expr.right)
        case Not() | IsNull():
            return (expr.operand,)
        case InTable():
            return (expr.condition,)
        case Call() | Agg():
            return expr.args
        case Const() | Field() | OutField() | SlotIsNull() | SlotTime():
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


def conjuncts(expr: Expr) -> list[Expr]:
    """What must all hold for the condition to hold, in its order."""
    found, pending = list[Expr](), [expr]
    while pending:
        node = pending.pop()
        if isinstance(node, And):
            pending += (node.right, node.left)
        else:
            found.append(node)
    return found


def build_balanced(join: type[And | Or], terms: list[Expr]) -> Expr:
    """A tree of logarithmic depth: order of evaluation is kept, nesting is not."""
    while len(terms) > 1:
        pairs: list[Expr] = [join(a, b) for a, b in zip(terms[::2], terms[1::2], strict=False)]
        terms = [*pairs, *terms[len(pairs) * 2 :]]
    return terms[0]
