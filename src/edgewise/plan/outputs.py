"""Define what a query does with its rows.

In the conditions and assignments of table outputs, columns of the table are fields of the slot
named as the table, and attributes of the query's own rows are `OutField`s.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TypeAlias

from edgewise.plan.exprs import Expr


class EventType(enum.Enum):
    """Which rows of a query go out.

    TIMEOUT is of patterns only: the matches that came to nothing `within` their time, instead of
    those that came to an end.
    """

    CURRENT = "current"
    EXPIRED = "expired"
    ALL = "all"
    TIMEOUT = "timeout"


@dataclass(frozen=True, slots=True)
class InsertInto:
    """`target` names a stream, a table or a named window."""

    target: str
    events: EventType = EventType.CURRENT


@dataclass(frozen=True, slots=True)
class SetColumn:
    column: str
    value: Expr


@dataclass(frozen=True, slots=True)
class DeleteFrom:
    """`on` None deletes every row."""

    target: str
    on: Expr | None = None
    events: EventType = EventType.CURRENT


@dataclass(frozen=True, slots=True)
class UpdateTable:
    """Lowering always fills `assignments`: without `set`, one for each same-named attribute."""

    target: str
    on: Expr
    assignments: tuple[SetColumn, ...] = ()
    events: EventType = EventType.CURRENT


@dataclass(frozen=True, slots=True)
class UpdateOrInsert:
    """As `UpdateTable`; where no row satisfies `on`, the query's row is inserted."""

    target: str
    on: Expr
    assignments: tuple[SetColumn, ...] = ()
    events: EventType = EventType.CURRENT


@dataclass(frozen=True, slots=True)
class Return:
    """Rows for whoever listens to the query itself."""

    events: EventType = EventType.CURRENT
    target: str = ""


QueryOutput: TypeAlias = InsertInto | DeleteFrom | UpdateTable | UpdateOrInsert | Return


class RateKind(enum.Enum):
    ALL = "all"
    FIRST = "first"
    LAST = "last"
    SNAPSHOT = "snapshot"


@dataclass(frozen=True, slots=True)
class RateLimit:
    """Exactly one of `every_ms` and `events`."""

    kind: RateKind
    every_ms: int | None = None
    events: int | None = None
