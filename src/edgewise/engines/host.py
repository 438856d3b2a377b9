"""Hosts kernels: rows of a batch in, rows of the result out, state kept by version.

The same function runs in Spark's tasks, in its driver for batches too small to be worth a shuffle,
and in the live embedded engine. It is given whole partitions of the key space, each in order.

An event that breaks a kernel does not stop it: the partition is fed again to a guarded kernel,
which counts the fault, tells it as a row of FAULTS, and goes on with the next event.
"""

from __future__ import annotations

import dataclasses
import itertools
import logging
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from edgewise.engines.inputs import CLOCK, OFFSET, STREAM
from edgewise.engines.kernel import compile_kernel
from edgewise.engines.kernel.api import Run
from edgewise.engines.kernel.compile import Compiled
from edgewise.engines.kernel.runtime import NO_TIME, TIMER
from edgewise.engines.results import FAULTS, Counts, Made, fault_table, tables
from edgewise.engines.state import StateStore
from edgewise.errors import EdgewiseError
from edgewise.event.arrow import AT, KIND, TS
from edgewise.event.column import Column
from edgewise.event.event import Kind
from edgewise.event.schema import Attribute, Schema
from edgewise.event.types import AttrType
from edgewise.plan.fragments import Fragment
from edgewise.plan.nodes import App, OnDemandQuery, Query, Stream, streams_of

LIVE_KERNELS_MAX = 64  # kernels a worker process keeps between batches
RUN_ROWS = 131_072  # fed at once; fewer cost more calls, more cost memory

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Cut:
    """Which offsets a batch has, and the app's time before it and at its end."""

    batch_id: int
    start: Mapping[str, int]
    end: Mapping[str, int]
    clock_start: int
    clock: int

    @property
    def rows(self) -> int:
        return sum(self.end[s] - self.start[s] for s in self.end)


Pulse = tuple[int, int, int]  # the app's time, the place and the capture time of an event


@dataclass(frozen=True)
class Job:
    """One fragment over one batch; travels to the tasks."""

    app: App
    fragment: Fragment
    version: int  # the batch id: state version - 1 goes in, this version comes out
    clock: int  # the app's time at the end of the batch
    state_root: str
    streams: tuple[str, ...]  # what `_stream` counts: inputs of the app, then those of its stages
    taps: tuple[str, ...] = ()  # queries whose own rows are wanted too, as the stream `@name`
    start: int | None = None  # when the app began: absence counts from there
    reads: Mapping[str, tuple[str, ...]] = field(
        default_factory=dict
    )  # of a stream, where not all
    at: int = 0  # when the end of the batch was captured
    pulse: Pulse | None = None  # maybe the event with which the app begins (`beginning`)
    revision: int = 0  # how often questions have changed the state: kernels of before are stale

    @property
    def outputs(self) -> tuple[Stream, ...]:
        """What the kernel may give rows of: also faults, named windows and triggers."""
        app, holds = self.app, self.fragment.holds
        queries = [q for q in app.queries if q.name in self.fragment.queries]
        seen = {q.output.target for q in queries} | {t.name for t in app.triggers if holds(t.name)}
        faults = {f"!{name}" for q in queries for name in (*streams_of(q.input), *seen)}
        named = {*seen, *faults}
        return (
            *(s for s in app.streams if s.name in named),
            *(Stream(w.schema) for w in app.windows if holds(w.name)),
            *(tap_stream(q) for q in queries if q.name in self.taps),
            FAULTS,
        )


def tap_stream(query: Query) -> Stream:
    items = query.select.items
    return Stream(Schema(f"@{query.name}", tuple(Attribute(i.name, i.expr.type) for i in items)))


Version = tuple[int, int]  # the batch, and what questions have changed after it


class LiveKernels:
    """The kernels of this process with the version of their state, least recently used go."""

    def __init__(self) -> None:
        self._kernels: OrderedDict[tuple[str, str, int], tuple[Version, Compiled]] = OrderedDict()

    def take(self, job: Job, part: int) -> Compiled:
        """A kernel holding exactly the state after the batch before this one."""
        version, kernel = self._kernels.pop(self._key(job, part), (None, None))
        wanted = (job.version - 1, job.revision)
        if kernel is not None and (job.fragment.stateless or version == wanted):
            return kernel
        return fresh(job, part)

    def keep(self, job: Job, part: int, kernel: Compiled) -> None:
        self._kernels[self._key(job, part)] = ((job.version, job.revision), kernel)
        while len(self._kernels) > LIVE_KERNELS_MAX:
            self._kernels.popitem(last=False)

    @staticmethod
    def _key(job: Job, part: int) -> tuple[str, str, int]:
        return (job.state_root, job.fragment.name, part)


_LIVE = LiveKernels()


def fresh(job: Job, part: int, *, guarded: bool = False) -> Compiled:
    """A kernel from the files: the state after the batch before this one."""
    kernel = compile_kernel(job.app, job.fragment, job.taps, as_sent=guarded)
    if not job.fragment.stateless:
        state = StateStore(job.state_root, part).load(job.version - 1)
        kernel.restore(state.items())
    if job.start is not None and job.version == 0:
        kernel.start(job.start)
    return kernel


def run_part(job: Job, part: int, batches: Iterable[Any]) -> Made:
    """Feed one partition, in order, then let time move to the end of the batch."""
    kernel = _LIVE.take(job, part)
    names = watched(job.app)
    before = [_count(kernel, *name) for name in names]
    seen: list[Any] = []
    source = iter(whole_chunks(batches))
    try:
        feed(kernel, job, _remembered(source, seen))
    except EdgewiseError:
        raise
    except Exception:
        logger.info("fragment %s: fed again with guards", job.fragment.name, exc_info=True)
        kernel, before = fresh(job, part, guarded=True), [0] * len(names)
        feed(kernel, job, itertools.chain(seen, source))
    counts = {
        name: grown
        for name, old in zip(names, before, strict=True)
        if (grown := _count(kernel, *name) - old)
    }
    _tell_faults(kernel, counts)
    return finish(job, part, kernel, _by_kind(counts))


def finish(job: Job, part: int, kernel: Compiled, counts: Counts | None = None) -> Made:
    """What the kernel has made; its state is kept as that of the job's version."""
    if not job.fragment.stateless:
        StateStore(job.state_root, part).save(job.version, list(kernel.changed()))
    made = made_by(job, kernel)
    made.keys, made.counts = kernel.stats.keys, counts or {}
    _LIVE.keep(job, part, kernel)
    return made


def made_by(job: Job, kernel: Compiled) -> Made:
    """Its rows and faults since the last call."""
    schemas = {s.name: s.schema for s in job.outputs}
    made = Made(tables(kernel.take_columns(), schemas))
    if failed := kernel.take_failed():
        made.rows.setdefault(FAULTS.name, []).append(fault_table(failed))
    return made


def _tell_faults(kernel: Compiled, counts: Mapping[tuple[str, str], int]) -> None:
    for (kind, stream), count in counts.items():
        if kind == "faults":
            why = kernel.stats.reasons[stream]
            logger.warning("stream %s: %d events failed and were dropped: %s", stream, count, why)


def feed(kernel: Compiled, job: Job, batches: Iterable[Any]) -> None:
    """A part of a batch, in order; then time moves to the end of the batch."""
    at = job.at
    if job.pulse is not None and not job.fragment.keyed:
        kernel.pulse(*job.pulse)
    for batch in batches:
        for run, chunk in runs(job, batch):
            (kernel.feed_chunk if chunk else kernel.feed)(run)
        at = max(at, pc.max(batch.column(AT)).as_py() or 0)
    kernel.advance(job.clock, at)


def _remembered(batches: Iterator[Any], seen: list[Any]) -> Iterator[Any]:
    for batch in batches:
        seen.append(batch)
        yield batch


def whole_chunks(batches: Iterable[Any]) -> Iterator[Any]:
    """The same rows, no batch ending inside a chunk."""
    held: list[Any] = []
    for batch in _long(batches):
        held.append(batch)
        kinds = batch.column(KIND)
        if not len(kinds) or kinds[-1].as_py() != Kind.MORE:
            yield from held if len(held) == 1 else [_one(held)]
            held = []
    if held:
        yield _one(held)


def _long(batches: Iterable[Any]) -> Iterator[Any]:
    """The same rows, small batches together."""
    held: list[Any] = []
    count = 0
    for batch in batches:
        held.append(batch)
        count += batch.num_rows
        if count >= RUN_ROWS:
            yield held[0] if len(held) == 1 else _one(held)
            held, count = [], 0
    if held:
        yield held[0] if len(held) == 1 else _one(held)


def _one(batches: list[Any]) -> Any:
    return pa.Table.from_batches(batches).combine_chunks().to_batches()[0]


def ask(job: Job, query: OnDemandQuery) -> list[tuple[Any, ...]]:
    """A question to what an unkeyed fragment holds after the batch before `job`.

    One that changes it makes the next revision: jobs that follow are of that one.
    """
    kernel = _LIVE.take(job, 0)
    rows = kernel.ask(query)
    kernel.take()
    revision = job.revision
    if query.output is not None:
        StateStore(job.state_root, 0).amend(job.version - 1, list(kernel.changed()))
        revision += 1
    after = dataclasses.replace(job, version=job.version - 1, revision=revision)
    _LIVE.keep(after, 0, kernel)
    return rows


def runs(job: Job, batch: Any) -> Iterator[tuple[Run, bool]]:
    """A batch of ordered input as runs of one stream each, and whether a run is one chunk.

    A chunk goes through a keyed fragment event by event: its rows belong to different keys.
    """
    streams = batch.column(STREAM).to_numpy(zero_copy_only=False)
    if len(streams) == 0:
        return
    breaks = np.diff(streams) != 0
    more = batch.column(KIND).to_numpy(zero_copy_only=False) == Kind.MORE
    chunked = bool(more.any()) and not job.fragment.keyed
    if chunked:
        at = batch.column(AT).to_numpy(zero_copy_only=False)
        breaks |= (np.diff(at) != 0) & (more[:-1] | more[1:])
        breaks |= ~more[:-1] & more[1:]
        breaks[1:] |= more[:-2] & ~more[1:-1]
    edges = [0, *(np.flatnonzero(breaks) + 1).tolist(), len(streams)]
    for start, end in itertools.pairwise(edges):
        rows = batch.slice(start, end - start)
        index = int(streams[start])
        stream = job.app.stream(job.streams[index])
        read = job.reads.get(stream.name, stream.schema.names)
        unread = [None] * len(rows)
        run = Run(
            stream=stream.name,
            ts=_numbers(rows, TS),
            columns=[
                Column(rows.column(f"s{index}_{a.name}"), a.type) if a.name in read else unread
                for a in stream.schema.attributes
            ],
            offset=_numbers(rows, OFFSET),
            clock=_numbers(rows, CLOCK),
            at=_numbers(rows, AT),
        )
        yield run, chunked and bool(more[start])


def _numbers(rows: Any, name: str) -> Column:
    return Column(rows.column(name), AttrType.LONG)


def watched(app: App) -> list[tuple[str, str]]:
    """All that is counted, in an order that tasks and driver share."""
    late = [("late", s.name) for s in app.streams if s.lateness_ms is not None]
    bounded = [q.name for q in app.queries if q.state is not None]
    bounded += [p.name for p in app.partitions if p.state is not None]
    failing = [*(s.name for s in app.streams), *(w.name for w in app.windows), TIMER, NO_TIME]
    faults = [("faults", name) for name in failing]
    return [*late, *(("dropped", name) for name in bounded), *faults]


def _by_kind(counts: Mapping[tuple[str, str], int]) -> Counts:
    found: Counts = {}
    for (kind, name), count in counts.items():
        found.setdefault(kind, {})[name] = count
    return found


def _count(kernel: Compiled, kind: str, name: str) -> int:
    return int(getattr(kernel.stats, kind).get(name, 0))
