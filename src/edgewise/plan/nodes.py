"""Define the typed logical plan of an app. Frozen, schema derived, no behaviour.

An app is streams and queries. A query is an input (a stream, a join or a pattern), a selection,
and an output. Order is meaning: queries on one stream run in this order, depth first, each event
all the way down before the next. The parts are in `inputs`, `selection`, `outputs` and `stores`;
this file holds what is made of them and is the one to import from.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from edgewise.errors import Span
from edgewise.event.schema import Schema
from edgewise.plan.annotations import Annotation
from edgewise.plan.exprs import Expr
from edgewise.plan.inputs import (
    AbsentState,
    ChainState,
    CountState,
    EveryState,
    Filter,
    Handler,
    JoinInput,
    JoinKind,
    JoinSide,
    LogicalState,
    QueryInput,
    State,
    StateInput,
    StateKind,
    StoreKind,
    StreamCall,
    StreamInput,
    StreamState,
    Window,
    handlers_of,
    slots_of,
    state_leaves,
    streams_of,
    windows_of,
)
from edgewise.plan.outputs import (
    DeleteFrom,
    EventType,
    InsertInto,
    QueryOutput,
    RateKind,
    RateLimit,
    Return,
    SetColumn,
    UpdateOrInsert,
    UpdateTable,
)
from edgewise.plan.selection import OrderBy, Select, SelectItem
from edgewise.plan.stores import Aggregation, NamedWindow, ScriptFunction, Table, Trigger

__all__ = [
    "AbsentState",
    "Aggregation",
    "Annotation",
    "App",
    "ChainState",
    "CountState",
    "DeleteFrom",
    "EventType",
    "EveryState",
    "Filter",
    "Handler",
    "InsertInto",
    "JoinInput",
    "JoinKind",
    "JoinSide",
    "LogicalState",
    "NamedWindow",
    "OnDemandQuery",
    "OrderBy",
    "Partition",
    "PartitionKey",
    "Query",
    "QueryInput",
    "QueryOutput",
    "RangeKey",
    "RateKind",
    "RateLimit",
    "Return",
    "ScriptFunction",
    "Select",
    "SelectItem",
    "SetColumn",
    "State",
    "StateInput",
    "StateKind",
    "StateLimit",
    "StoreKind",
    "Stream",
    "StreamCall",
    "StreamInput",
    "StreamState",
    "Table",
    "Trigger",
    "UpdateOrInsert",
    "UpdateTable",
    "Window",
    "handlers_of",
    "slots_of",
    "state_leaves",
    "streams_of",
    "windows_of",
]


@dataclass(frozen=True, slots=True)
class Stream:
    """A stream with its ends. `implicit` ones were derived: from a select list, a trigger, or
    the faults of another (`!S`). `anonymous` ones carry an inner query to the one around it.
    With `lateness_ms` its events may come so much after newer ones and are put in order.
    """

    schema: Schema
    annotations: tuple[Annotation, ...] = ()
    implicit: bool = False
    anonymous: bool = False
    lateness_ms: int | None = None

    @property
    def name(self) -> str:
        return self.schema.name

    def annotated(self, name: str) -> tuple[Annotation, ...]:
        return tuple(a for a in self.annotations if a.name.lower() == name)


@dataclass(frozen=True, slots=True)
class StateLimit:
    """What may be kept: at most `limit` (matches of a pattern for one key, keys of a partition;
    the one that waited longest goes first), and nothing that saw no event for `idle_ms`.
    """

    limit: int | None = None
    idle_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Query:
    """`partition` names the partition it lives in; an inner query comes before its outer one."""

    name: str
    input: QueryInput
    select: Select
    output: QueryOutput
    span: Span = Span(1, 1)
    rate: RateLimit | None = None
    partition: str = ""
    annotations: tuple[Annotation, ...] = ()
    state: StateLimit | None = None


@dataclass(frozen=True, slots=True)
class RangeKey:
    condition: Expr
    label: str


@dataclass(frozen=True, slots=True)
class PartitionKey:
    """Key of one stream: the text of `value`, or the label of every range that holds."""

    stream: str
    value: Expr | None = None
    ranges: tuple[RangeKey, ...] = ()


@dataclass(frozen=True, slots=True)
class Partition:
    """One instance of its queries and inner streams per key. A null key drops the event.

    Streams without a key here go to every instance there is. `state` bounds how many instances
    there are, and frees one that saw no event for long.
    """

    name: str
    keys: tuple[PartitionKey, ...]
    streams: tuple[Stream, ...] = ()
    state: StateLimit | None = None
    annotations: tuple[Annotation, ...] = ()
    span: Span = field(default=Span(1, 1), compare=False)  # of its keys


@dataclass(frozen=True, slots=True)
class OnDemandQuery:
    """One query against what an app holds; `store` is '' for a bare write.

    `on` is over the slot `slot`; without an output the rows go to who asked.
    """

    store: str
    kind: StoreKind
    slot: str
    select: Select
    on: Expr | None = None
    within: tuple[Expr, ...] = ()
    per: Expr | None = None
    output: QueryOutput | None = None


@dataclass(frozen=True, slots=True)
class App:
    """`streams` holds every stream outside partitions, `queries` every query in order."""

    name: str
    streams: tuple[Stream, ...]
    queries: tuple[Query, ...]
    annotations: tuple[Annotation, ...] = ()
    tables: tuple[Table, ...] = ()
    windows: tuple[NamedWindow, ...] = ()
    triggers: tuple[Trigger, ...] = ()
    aggregations: tuple[Aggregation, ...] = ()
    functions: tuple[ScriptFunction, ...] = ()
    partitions: tuple[Partition, ...] = ()

    def stream(self, name: str) -> Stream:
        return next(s for s in self.streams if s.name == name)

    def table(self, name: str) -> Table | None:
        return next((t for t in self.tables if t.name == name), None)

    def window(self, name: str) -> NamedWindow | None:
        return next((w for w in self.windows if w.name == name), None)

    def partition(self, name: str) -> Partition | None:
        return next((p for p in self.partitions if p.name == name), None)

    @property
    def lateness_ms(self) -> int | None:
        """How far the app's time runs behind its newest event; None: not at all, nothing waits."""
        return max(
            (s.lateness_ms for s in self.streams if s.lateness_ms is not None), default=None
        )

    @property
    def stores(self) -> tuple[Table | NamedWindow | Aggregation | Trigger, ...]:
        return (*self.tables, *self.windows, *self.aggregations, *self.triggers)

    @property
    def inputs(self) -> tuple[Stream, ...]:
        """Streams that only the outside writes."""
        written = {q.output.target for q in self.queries} | {t.name for t in self.triggers}
        return tuple(
            s for s in self.streams if s.name not in written and not s.name.startswith("!")
        )

    @property
    def outputs(self) -> tuple[Stream, ...]:
        """Streams that queries write, and faults (`!S`), in order of definition."""
        written = {q.output.target for q in self.queries}
        return tuple(
            s
            for s in self.streams
            if (s.name in written or s.name.startswith("!")) and not s.anonymous
        )
