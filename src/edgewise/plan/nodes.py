"""The typed logical plan of an app. Frozen, schema derived, no behaviour.

An app is streams and queries. A query is an input (one stream through handlers and at most one
window), a selection, and an output. Order is meaning: queries on one stream run in this order,
depth first, each event all the way down before the next.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

from edgewise.errors import Span
from edgewise.event.schema import Schema
from edgewise.plan.exprs import Expr, Field, OutField


@dataclass(frozen=True, slots=True)
class Annotation:
    """`@name(key='v', 'v', @nested(...))`; a value without a key has the key ''."""

    name: str
    pairs: tuple[tuple[str, str], ...] = ()
    nested: tuple[Annotation, ...] = ()

    def get(self, key: str, default: str = "") -> str:
        return next((v for k, v in self.pairs if k.lower() == key.lower()), default)


@dataclass(frozen=True, slots=True)
class Stream:
    """A stream with its ends. `implicit` ones were derived from a select list."""

    schema: Schema
    annotations: tuple[Annotation, ...] = ()
    implicit: bool = False

    @property
    def name(self) -> str:
        return self.schema.name

    def annotated(self, name: str) -> tuple[Annotation, ...]:
        return tuple(a for a in self.annotations if a.name.lower() == name)


@dataclass(frozen=True, slots=True)
class Filter:
    condition: Expr


@dataclass(frozen=True, slots=True)
class Window:
    """`name` as in the language (`time`, `lengthBatch`); args are typed, times are LONG ms."""

    name: str
    args: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class StreamInput:
    """`stream[before]#window[after]`: filters before limit what enters, after what leaves."""

    stream: str
    slot: str
    before: tuple[Filter, ...] = ()
    window: Window | None = None
    after: tuple[Filter, ...] = ()


@dataclass(frozen=True, slots=True)
class SelectItem:
    name: str
    expr: Expr


@dataclass(frozen=True, slots=True)
class OrderBy:
    field: OutField
    descending: bool = False


@dataclass(frozen=True, slots=True)
class Select:
    items: tuple[SelectItem, ...]
    group_by: tuple[Field, ...] = ()
    having: Expr | None = None
    order_by: tuple[OrderBy, ...] = ()
    limit: int | None = None
    offset: int | None = None


class EventType(enum.Enum):
    """Which rows of a query go out."""

    CURRENT = "current"
    EXPIRED = "expired"
    ALL = "all"


@dataclass(frozen=True, slots=True)
class InsertInto:
    target: str
    events: EventType = EventType.CURRENT


@dataclass(frozen=True, slots=True)
class Query:
    name: str
    input: StreamInput
    select: Select
    output: InsertInto
    span: Span = Span(1, 1)


@dataclass(frozen=True, slots=True)
class App:
    name: str
    streams: tuple[Stream, ...]
    queries: tuple[Query, ...]
    annotations: tuple[Annotation, ...] = ()

    def stream(self, name: str) -> Stream:
        return next(s for s in self.streams if s.name == name)

    @property
    def inputs(self) -> tuple[Stream, ...]:
        """Streams that only the outside writes."""
        written = {q.output.target for q in self.queries}
        return tuple(s for s in self.streams if s.name not in written)

    @property
    def outputs(self) -> tuple[Stream, ...]:
        """Streams that queries write, in order of definition."""
        written = {q.output.target for q in self.queries}
        return tuple(s for s in self.streams if s.name in written)
