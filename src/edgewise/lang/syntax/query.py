"""Queries and partitions as written: inputs, selections, outputs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from edgewise.lang.source import At
from edgewise.lang.syntax.expr import AttrRef, Call, Duration, Expression, span_field


@dataclass(frozen=True, slots=True)
class Annotation:
    """`@name(key='v', 'v', @nested(...))`; `@app:name` has the name `app:name`."""

    name: str
    pairs: tuple[tuple[str, str], ...] = ()
    nested: tuple[Annotation, ...] = ()
    at: At = span_field()


@dataclass(frozen=True, slots=True)
class Filter:
    condition: Expression
    at: At = span_field()


@dataclass(frozen=True, slots=True)
class StreamFunction:
    call: Call
    at: At = span_field()


Handler: TypeAlias = Filter | StreamFunction


@dataclass(frozen=True, slots=True)
class Name:
    """The name of a stream, table or window. `prefix` is '', '#' (inner) or '!' (fault)."""

    text: str
    prefix: str = ""
    at: At = span_field()

    @property
    def full(self) -> str:
        return self.prefix + self.text


@dataclass(frozen=True, slots=True)
class Source:
    """`stream[filter]#function()#window.name()[filter]`."""

    stream: Name | Query
    before: tuple[Handler, ...] = ()
    window: Call | None = None
    after: tuple[Handler, ...] = ()
    alias: str = ""
    at: At = span_field()


@dataclass(frozen=True, slots=True)
class Within:
    """`within start[, end]` of a join with an aggregation."""

    start: Expression
    end: Expression | None = None
    at: At = span_field()


@dataclass(frozen=True, slots=True)
class Join:
    """`kind` is inner, left, right or full; `trigger` is '', left or right (unidirectional)."""

    left: Source
    right: Source
    kind: str = "inner"
    trigger: str = ""
    on: Expression | None = None
    within: Within | None = None
    per: Expression | None = None
    at: At = span_field()


@dataclass(frozen=True, slots=True)
class Element:
    """`ref=Stream[filter]`."""

    source: Source
    ref: str = ""
    at: At = span_field()


@dataclass(frozen=True, slots=True)
class Count:
    """`<least:most>`; most is None where it has no end."""

    element: Element
    least: int
    most: int | None
    at: At = span_field()


@dataclass(frozen=True, slots=True)
class Absent:
    """`not Stream[filter] [for time]`."""

    source: Source
    waiting: Duration | None = None
    at: At = span_field()


@dataclass(frozen=True, slots=True)
class Both:
    """`left and right` or `left or right` of two single elements."""

    op: str
    left: Element | Absent
    right: Element | Absent
    at: At = span_field()


@dataclass(frozen=True, slots=True)
class Every:
    state: State
    at: At = span_field()


@dataclass(frozen=True, slots=True)
class Chain:
    """One state after the other; two or more."""

    states: tuple[State, ...]
    at: At = span_field()


State: TypeAlias = Element | Count | Absent | Both | Every | Chain


@dataclass(frozen=True, slots=True)
class StateInput:
    """`kind` is pattern (`->`) or sequence (`,`)."""

    kind: str
    state: State
    within: Duration | None = None
    at: At = span_field()


QueryInput: TypeAlias = Source | Join | StateInput


@dataclass(frozen=True, slots=True)
class SelectItem:
    expression: Expression
    alias: str = ""
    at: At = span_field()


@dataclass(frozen=True, slots=True)
class OrderItem:
    ref: AttrRef
    descending: bool = False
    at: At = span_field()


@dataclass(frozen=True, slots=True)
class Selection:
    """No items means `select *`."""

    items: tuple[SelectItem, ...] = ()
    group_by: tuple[AttrRef, ...] = ()
    having: Expression | None = None
    order_by: tuple[OrderItem, ...] = ()
    limit: Expression | None = None
    offset: Expression | None = None
    at: At = span_field()


@dataclass(frozen=True, slots=True)
class Rate:
    """`output [all|last|first|snapshot] every (time | n events)`; exactly one of the two."""

    kind: str = "all"
    every: Duration | None = None
    events: int | None = None
    at: At = span_field()


@dataclass(frozen=True, slots=True)
class Assignment:
    target: AttrRef
    value: Expression
    at: At = span_field()


@dataclass(frozen=True, slots=True)
class Output:
    """`kind` is insert, delete, update, upsert or return; `events` current, expired, all
    or timeout.
    """

    kind: str
    target: Name | None = None
    events: str = "current"
    assignments: tuple[Assignment, ...] = ()
    on: Expression | None = None
    at: At = span_field()


@dataclass(frozen=True, slots=True)
class Query:
    annotations: tuple[Annotation, ...]
    input: QueryInput
    selection: Selection | None
    rate: Rate | None
    output: Output
    at: At = span_field()


@dataclass(frozen=True, slots=True)
class RangeKey:
    condition: Expression
    label: str
    at: At = span_field()


@dataclass(frozen=True, slots=True)
class PartitionKey:
    """`value of stream`, or `cond as 'label' or ... of stream`; exactly one of the two."""

    stream: Name
    value: Expression | None = None
    ranges: tuple[RangeKey, ...] = ()
    at: At = span_field()


@dataclass(frozen=True, slots=True)
class Partition:
    annotations: tuple[Annotation, ...]
    keys: tuple[PartitionKey, ...]
    queries: tuple[Query, ...]
    at: At = span_field()


@dataclass(frozen=True, slots=True)
class OnDemand:
    """A query against what an app holds: `store` is what it reads, None for a bare write."""

    store: Name | None = None
    alias: str = ""
    on: Expression | None = None
    within: Within | None = None
    per: Expression | None = None
    selection: Selection | None = None
    output: Output | None = None
    at: At = span_field()
