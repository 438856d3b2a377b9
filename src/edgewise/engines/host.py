"""Hosts kernels: rows of a batch in, rows of the result out, state kept by version.

The same function runs in Spark's tasks, in its driver for batches too small to be worth a shuffle,
and in the live embedded engine. It is given whole partitions of the key space, each in order.
"""

from __future__ import annotations

import itertools
import logging
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from edgewise.engines.inputs import CLOCK, OFFSET, STREAM
from edgewise.engines.kernel import compile_kernel
from edgewise.engines.kernel.api import Kernel, OutRow, Run
from edgewise.engines.state import StateStore
from edgewise.errors import SetupError
from edgewise.event.arrow import ARROW_TYPES, AT, KIND, TS
from edgewise.event.schema import Attribute, Schema
from edgewise.plan.fragments import Fragment
from edgewise.plan.nodes import App, Query, Stream

COUNTED = -1  # in the place of an output stream: a row is a count
PART, OUT, PHASE, SEQ = "_part", "_out", "_phase", "_seq"
ORDER = [CLOCK, PHASE, OFFSET, SEQ]
LIVE_KERNELS_MAX = 64  # kernels a worker process keeps between batches

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


@dataclass(frozen=True)
class Job:
    """One fragment over one batch; travels to the tasks."""

    app: App
    fragment: Fragment
    version: int  # the batch id: state version - 1 goes in, this version comes out
    clock: int  # the app's time at the end of the batch
    state_root: str
    streams: tuple[str, ...]  # what `_stream` counts: all inputs of the app
    taps: tuple[str, ...] = ()  # queries whose own rows are wanted too, as the stream `@name`
    start: int | None = None  # when the app began: absence counts from there
    reads: Mapping[str, tuple[str, ...]] = field(
        default_factory=dict
    )  # of a stream, where not all

    @property
    def outputs(self) -> tuple[Stream, ...]:
        queries = [q for q in self.app.queries if q.name in self.fragment.queries]
        targets = {q.output.target for q in queries}
        written = tuple(s for s in self.app.streams if s.name in targets)
        return written + tuple(tap_stream(q) for q in queries if q.name in self.taps)


def tap_stream(query: Query) -> Stream:
    items = query.select.items
    return Stream(Schema(f"@{query.name}", tuple(Attribute(i.name, i.expr.type) for i in items)))


def out_schema(job: Job) -> Any:
    """Columns of the result: where a row belongs, then the attributes of every output stream."""
    fields: list[Any] = [pa.field(OUT, pa.int32())]
    fields += [pa.field(name, pa.int64()) for name in (*ORDER, TS, AT)]
    fields.append(pa.field(KIND, pa.int8()))
    for index, stream in enumerate(job.outputs):
        fields += [
            pa.field(f"o{index}_{a.name}", ARROW_TYPES[a.type]) for a in stream.schema.attributes
        ]
    return pa.schema(fields)


class LiveKernels:
    """The kernels of this process with the version of their state, least recently used go."""

    def __init__(self) -> None:
        self._kernels: OrderedDict[tuple[str, str, int], tuple[int, Kernel]] = OrderedDict()

    def take(self, job: Job, part: int) -> Kernel:
        """A kernel holding exactly the state after the batch before this one."""
        version, kernel = self._kernels.pop(self._key(job, part), (None, None))
        if kernel is not None and (job.fragment.stateless or version == job.version - 1):
            return kernel
        fresh = compile_kernel(job.app, job.fragment, job.taps)
        if not job.fragment.stateless:
            state = StateStore(Path(job.state_root), part).load(job.version - 1)
            fresh.restore(state.items())
        if job.start is not None and job.version == 0:
            fresh.start(job.start)
        return fresh

    def keep(self, job: Job, part: int, kernel: Kernel) -> None:
        self._kernels[self._key(job, part)] = (job.version, kernel)
        while len(self._kernels) > LIVE_KERNELS_MAX:
            self._kernels.popitem(last=False)

    @staticmethod
    def _key(job: Job, part: int) -> tuple[str, str, int]:
        return (job.state_root, job.fragment.name, part)


_LIVE = LiveKernels()


Counts = dict[str, dict[str, int]]  # what went wrong or was let go: of which kind, by whom


def watched(app: App) -> list[tuple[str, str]]:
    """All that is counted, in an order that tasks and driver share."""
    late = [("late", s.name) for s in app.streams if s.lateness_ms is not None]
    bounded = [q.name for q in app.queries if q.state is not None]
    bounded += [p.name for p in app.partitions if p.state is not None]
    faults = [("faults", s.name) for s in app.streams]
    return [*late, *(("dropped", name) for name in bounded), *faults]


def counted(job: Job, table: Any) -> Counts:
    """The counts of one batch, from rows that belong to no stream."""
    names, found = watched(job.app), Counts()
    mine = table.filter(pc.equal(table.column(OUT), pa.scalar(COUNTED)))
    for place, count in zip(*(mine.column(n).to_pylist() for n in (OFFSET, TS)), strict=True):
        kind, name = names[place]
        by_name = found.setdefault(kind, {})
        by_name[name] = by_name.get(name, 0) + count
    return found


def add_counts(total: Counts, more: Counts) -> None:
    for kind, names in more.items():
        mine = total.setdefault(kind, {})
        for name, count in names.items():
            mine[name] = mine.get(name, 0) + count


def run_part(job: Job, part: int, batches: Iterable[Any]) -> Any:
    """Feed one partition, in order, then let time move to the end of the batch."""
    kernel = _LIVE.take(job, part)
    names = watched(job.app)
    before = [_count(kernel, *name) for name in names]
    failed = dict(kernel.stats.faults)
    at = 0
    for batch in batches:
        for run in runs(job, batch):
            kernel.feed(run)
            at = max(at, *run.at)
    kernel.advance(job.clock, at)
    table = to_table(job, kernel.take())
    counts = [_count(kernel, *name) - old for name, old in zip(names, before, strict=True)]
    if any(counts):
        table = pa.concat_tables([table, _count_rows(job, counts)])
    for stream, count in kernel.stats.faults.items():
        fresh = count - failed.get(stream, 0)
        if fresh:
            why = kernel.stats.reasons[stream]
            logger.warning("stream %s: %d events failed and were dropped: %s", stream, fresh, why)
    if not job.fragment.stateless:
        StateStore(Path(job.state_root), part).save(job.version, list(kernel.changed()))
    _LIVE.keep(job, part, kernel)
    return table


def _count(kernel: Kernel, kind: str, name: str) -> int:
    return int(getattr(kernel.stats, kind).get(name, 0))


def _count_rows(job: Job, counts: list[int]) -> Any:
    """Counts travel with the rows: from a task there is no other way."""
    places = [i for i, count in enumerate(counts) if count]
    own = {OUT: [COUNTED] * len(places), OFFSET: places, TS: [counts[i] for i in places]}
    zeros = [0] * len(places)
    system, schema = {CLOCK, PHASE, SEQ, AT, KIND}, out_schema(job)
    return pa.Table.from_arrays(
        [
            pa.array(own.get(f.name, zeros if f.name in system else [None] * len(places)), f.type)
            for f in schema
        ],
        schema=schema,
    )


def runs(job: Job, batch: Any) -> Iterator[Run]:
    """A batch of ordered input as runs of one stream each."""
    streams = batch.column(STREAM).to_numpy(zero_copy_only=False)
    if len(streams) == 0:
        return
    edges = [0, *(np.flatnonzero(np.diff(streams)) + 1).tolist(), len(streams)]
    for start, end in itertools.pairwise(edges):
        rows = batch.slice(start, end - start)
        index = int(streams[start])
        stream = job.app.stream(job.streams[index])
        names = stream.schema.names
        read, unread = job.reads.get(stream.name, names), [None] * len(rows)
        yield Run(
            stream=stream.name,
            ts=rows.column(TS).to_pylist(),
            columns=[
                rows.column(f"s{index}_{n}").to_pylist() if n in read else unread for n in names
            ],
            offset=rows.column(OFFSET).to_pylist(),
            clock=rows.column(CLOCK).to_pylist(),
            at=rows.column(AT).to_pylist(),
        )


def to_table(job: Job, rows: list[OutRow]) -> Any:
    """Rows of a kernel as one Arrow table of `out_schema`.

    Those of named windows, triggers and fault streams stay inside: they have no log.
    """
    schema = out_schema(job)
    index_of = {stream.name: i for i, stream in enumerate(job.outputs)}
    rows = [r for r in rows if r.stream in index_of]
    columns: dict[str, list[Any]] = {
        OUT: [index_of[r.stream] for r in rows],
        CLOCK: [r.clock for r in rows],
        PHASE: [r.phase for r in rows],
        OFFSET: [r.offset for r in rows],
        SEQ: [r.seq for r in rows],
        TS: [r.ts for r in rows],
        AT: [r.at for r in rows],
        KIND: [int(r.kind) for r in rows],
    }
    for index, stream in enumerate(job.outputs):
        for place, name in enumerate(stream.schema.names):
            columns[f"o{index}_{name}"] = [
                r.data[place] if r.stream == stream.name else None for r in rows
            ]
    return pa.Table.from_arrays(
        [pa.array(columns[f.name], type=f.type) for f in schema], schema=schema
    )


def by_stream(job: Job, table: Any) -> list[tuple[Any, Any]]:
    """The table in order, cut into one record batch per output stream that got rows."""
    table = table.sort_by([(name, "ascending") for name in ORDER])
    out = []
    for index, stream in enumerate(job.outputs):
        mine = table.filter(pc.equal(table.column(OUT), pa.scalar(index)))
        if mine.num_rows:
            names = [TS, AT, KIND, *(f"o{index}_{n}" for n in stream.schema.names)]
            rows = mine.select(names).rename_columns([TS, AT, KIND, *stream.schema.names])
            out.append((stream, rows))
    return out


def fit(table: Any, schema: Any) -> Any:
    """A table with a log's column names as one record batch of exactly the log's schema."""
    defaults: dict[str, Any] = {KIND: pa.scalar(0, pa.int8()), AT: pa.scalar(0, pa.int64())}
    columns: list[Any] = []
    for wanted in schema:
        if wanted.name in table.column_names:
            columns.append(pc.cast(table.column(wanted.name), wanted.type))
        elif wanted.name in defaults:
            columns.append(pa.chunked_array([pa.repeat(defaults[wanted.name], table.num_rows)]))
        else:
            raise SetupError(f"the log needs the column '{wanted.name}', the table has none")
    whole = pa.Table.from_arrays(columns, schema=schema).combine_chunks()
    return whole.to_batches()[0]
