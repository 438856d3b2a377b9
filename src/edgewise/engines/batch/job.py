"""Describe the work of one micro-batch: which offsets, which fragment, which state.

A `Job` is all that a kernel's host needs besides the rows, and plain data, because it travels from
an engine to the tasks of Spark. The engines make jobs, `run` carries them out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from edgewise.engines.batch.outputs import FAULTS
from edgewise.event.schema import Attribute, Schema
from edgewise.plan.fragments import Fragment
from edgewise.plan.nodes import App, Query, Stream, streams_of


@dataclass(frozen=True, slots=True)
class BatchRange:
    """The offsets of a micro-batch, per stream, and the app's time before it and at its end."""

    batch_id: int
    start: Mapping[str, int]
    end: Mapping[str, int]
    clock_start: int
    clock: int

    @property
    def rows(self) -> int:
        return sum(self.end[s] - self.start[s] for s in self.end)


class AppStart(NamedTuple):
    """The first event of an app: the app's time, its offset, its capture time."""

    clock: int
    offset: int
    at: int


@dataclass(frozen=True)
class Job:
    """One fragment over one micro-batch."""

    app: App
    fragment: Fragment
    version: int  # the batch id: state version - 1 is read, this version is written
    clock: int  # the app's time at the end of the batch
    state_root: str
    streams: tuple[str, ...]  # what `_stream` counts: inputs of the app, then those of its stages
    fingerprint: bytes = field(kw_only=True)  # of the plan (`live_kernels.fingerprint_plan`)
    taps: tuple[str, ...] = ()  # queries whose own rows are wanted too, as the stream `@name`
    start: int | None = None  # when the app began: absence counts from there
    reads: Mapping[str, tuple[str, ...]] = field(
        default_factory=dict
    )  # attributes per stream that the queries use, where these are not all
    at: int = 0  # capture time of the end of the batch
    app_start: AppStart | None = None  # set while the app's first event may be in this batch
    saves: bool = (
        True  # write the state with the batch; else the engine does later (`state.saver`)
    )
    store_writer: str = ""  # who writes to databases behind tables; '': tables stay in memory
    store_directory: str = ""  # for databases that are files
    revision: int = 0  # how many on-demand queries have changed the state of version - 1

    @property
    def outputs(self) -> tuple[Stream, ...]:
        """The streams that the kernel may emit, with faults, named windows and triggers."""
        app, holds = self.app, self.fragment.holds
        queries = [q for q in app.queries if q.name in self.fragment.queries]
        seen = {q.output.target for q in queries} | {t.name for t in app.triggers if holds(t.name)}
        faults = {f"!{name}" for q in queries for name in (*streams_of(q.input), *seen)}
        named = {*seen, *faults}
        return (
            *(s for s in app.streams if s.name in named),
            *(Stream(w.schema) for w in app.windows if holds(w.name)),
            *(build_tap_stream(q) for q in queries if q.name in self.taps),
            FAULTS,
        )


def build_tap_stream(query: Query) -> Stream:
    """The stream `@name` of a query's own rows, before they reach its target."""
    items = query.select.items
    return Stream(Schema(f"@{query.name}", tuple(Attribute(i.name, i.expr.type) for i in items)))
