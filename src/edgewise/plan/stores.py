"""Define what an app holds beside streams: tables, named windows, aggregations, triggers."""

from __future__ import annotations

from dataclasses import dataclass

from edgewise.event.schema import Schema
from edgewise.event.types import AttrType
from edgewise.plan.annotations import Annotation
from edgewise.plan.exprs import Field
from edgewise.plan.inputs import StreamInput, Window
from edgewise.plan.outputs import EventType
from edgewise.plan.selection import Select


@dataclass(frozen=True, slots=True)
class Table:
    """`primary_key` is unique; each of `indexes` is one column, not unique."""

    schema: Schema
    primary_key: tuple[str, ...] = ()
    indexes: tuple[str, ...] = ()
    annotations: tuple[Annotation, ...] = ()

    @property
    def name(self) -> str:
        return self.schema.name

    def annotated(self, name: str) -> Annotation | None:
        return next((a for a in self.annotations if a.name.lower() == name), None)


@dataclass(frozen=True, slots=True)
class NamedWindow:
    """A window shared by all queries that read it; `events` is what it lets out."""

    schema: Schema
    window: Window
    events: EventType = EventType.ALL
    annotations: tuple[Annotation, ...] = ()

    @property
    def name(self) -> str:
        return self.schema.name


@dataclass(frozen=True, slots=True)
class Trigger:
    """A stream of one attribute, `triggered_time long`. One of `every_ms`, `cron`, `at_start`."""

    name: str
    every_ms: int | None = None
    cron: str = ""
    at_start: bool = False


@dataclass(frozen=True, slots=True)
class Aggregation:
    """Sums by calendar unit. `durations` from fine to coarse: sec min hour day month year.

    `schema` is what a join or an on-demand query sees: AGG_TIMESTAMP and the select list. `by` is
    the attribute that carries time (ms as long, or text); None: the event's own. Units begin as
    the clocks of `zone` say. Every `purge_ms` what is older than its unit's `retention_ms` goes.
    """

    schema: Schema
    input: StreamInput
    select: Select
    durations: tuple[str, ...]
    by: Field | None = None
    annotations: tuple[Annotation, ...] = ()
    zone: str = "UTC"
    purge_ms: int | None = None
    retention_ms: tuple[tuple[str, int], ...] = ()  # units not named here stay for ever

    @property
    def name(self) -> str:
        return self.schema.name


@dataclass(frozen=True, slots=True)
class ScriptFunction:
    """`define function name[language] return type { body }`."""

    name: str
    language: str
    returns: AttrType
    body: str
