"""Expressions as written. Places do not take part in equality.

Chains of `and` and of `or` are one node with many terms: a filter of a thousand alternatives must
not be a tree of depth a thousand.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias

from edgewise.event.types import AttrType
from edgewise.lang.source import NOWHERE, At


def span_field() -> Any:
    """The field that says where a node stands in the text."""
    return field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Literal:
    type: AttrType
    value: str | int | float | bool
    at: At = span_field()


@dataclass(frozen=True, slots=True)
class Duration:
    """A time literal such as `1 min 30 sec`."""

    ms: int
    at: At = span_field()


@dataclass(frozen=True, slots=True)
class StreamRef:
    """A stream or pattern element by name. `prefix` is '', '#' (inner) or '!' (fault).

    `index` counts from 0; -1 is `last`, -2 is `last-1`; None where none is written.
    """

    name: str
    prefix: str = ""
    index: int | None = None
    at: At = span_field()


@dataclass(frozen=True, slots=True)
class AttrRef:
    name: str
    stream: StreamRef | None = None
    at: At = span_field()


@dataclass(frozen=True, slots=True)
class Not:
    operand: Expression
    at: At = span_field()


@dataclass(frozen=True, slots=True)
class Binary:
    """`op` is one of + - * / % == != < <= > >=."""

    op: str
    left: Expression
    right: Expression
    at: At = span_field()


@dataclass(frozen=True, slots=True)
class Logical:
    """`op` is `and` or `or`; two terms or more."""

    op: str
    terms: tuple[Expression, ...]
    at: At = span_field()


@dataclass(frozen=True, slots=True)
class IsNull:
    """A bare name may be an attribute or a pattern element: the scope decides."""

    operand: Expression | StreamRef
    at: At = span_field()


@dataclass(frozen=True, slots=True)
class InTable:
    condition: Expression
    table: str
    at: At = span_field()


@dataclass(frozen=True, slots=True)
class Call:
    """`namespace:name(args)`; `star` for `name(*)`."""

    name: str
    args: tuple[Expression, ...] = ()
    namespace: str = ""
    star: bool = False
    at: At = span_field()


Expression: TypeAlias = (
    Literal | Duration | AttrRef | Not | Binary | Logical | IsNull | InTable | Call
)
