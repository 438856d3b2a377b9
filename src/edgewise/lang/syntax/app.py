"""Definitions, and the app that holds them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from edgewise.event.types import AttrType
from edgewise.lang.source import At
from edgewise.lang.syntax.expr import AttrRef, Call, Duration, span_field
from edgewise.lang.syntax.query import Annotation, Name, Partition, Query, Selection, Source


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    type: AttrType
    at: At = span_field()


@dataclass(frozen=True, slots=True)
class StreamDefinition:
    name: Name
    columns: tuple[Column, ...]
    annotations: tuple[Annotation, ...] = ()
    at: At = span_field()


@dataclass(frozen=True, slots=True)
class TableDefinition:
    name: Name
    columns: tuple[Column, ...]
    annotations: tuple[Annotation, ...] = ()
    at: At = span_field()


@dataclass(frozen=True, slots=True)
class WindowDefinition:
    name: Name
    columns: tuple[Column, ...]
    window: Call
    events: str = "all"
    annotations: tuple[Annotation, ...] = ()
    at: At = span_field()


@dataclass(frozen=True, slots=True)
class TriggerDefinition:
    """Exactly one of `every` and `when` ('start' or a cron expression)."""

    name: Name
    every: Duration | None = None
    when: str = ""
    annotations: tuple[Annotation, ...] = ()
    at: At = span_field()


@dataclass(frozen=True, slots=True)
class FunctionDefinition:
    name: Name
    language: str
    returns: AttrType
    body: str
    annotations: tuple[Annotation, ...] = ()
    at: At = span_field()


@dataclass(frozen=True, slots=True)
class AggregationDefinition:
    """`durations` as written; `is_range` for `sec ... year`."""

    name: Name
    source: Source
    selection: Selection
    durations: tuple[str, ...]
    is_range: bool = False
    by: AttrRef | None = None
    annotations: tuple[Annotation, ...] = ()
    at: At = span_field()


Definition: TypeAlias = (
    StreamDefinition
    | TableDefinition
    | WindowDefinition
    | TriggerDefinition
    | FunctionDefinition
    | AggregationDefinition
)


@dataclass(frozen=True, slots=True)
class App:
    annotations: tuple[Annotation, ...]
    definitions: tuple[Definition, ...]
    executions: tuple[Query | Partition, ...]
    at: At = span_field()
