"""Hosts kernels: rows of a batch in, rows of the result out, state kept by version.

The same function runs in Spark's tasks, in its driver for batches too small to be worth a shuffle,
and in the live embedded engine. It is given whole partitions of the key space, each in order.

An event that breaks a kernel does not stop it: the partition is fed again to a guarded kernel,
which counts the fault, tells it as a row of FAULTS, and goes on with the next event.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import logging
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from edgewise.engines.inputs import CLOCK, OFFSET, STREAM
from edgewise.engines.kernel import compile_kernel
from edgewise.engines.kernel.api import OutRow, Run
from edgewise.engines.kernel.compile import Compiled
from edgewise.engines.kernel.runtime import NO_TIME, TIMER, Failed
from edgewise.engines.state import StateStore
from edgewise.errors import EdgewiseError, SetupError
from edgewise.event.arrow import ARROW_TYPES, AT, KIND, TS, from_column, to_column
from edgewise.event.event import Kind
from edgewise.event.schema import Attribute, Schema
from edgewise.log.api import LogWriter
from edgewise.plan.fragments import Fragment
from edgewise.plan.nodes import App, OnDemandQuery, Query, Stream, streams_of

PART, OUT, PHASE, SEQ = "_part", "_out", "_phase", "_seq"
ORDER = [CLOCK, PHASE, OFFSET, SEQ]
LIVE_KERNELS_MAX = 64  # kernels a worker process keeps between batches
FAULTS = Stream(
    Schema.of("$faults", stream="string", offset="long", error="string", event="string")
)  # what could not be processed: `offset` is the place in the merged input, `event` is JSON
_clock, _phase, _offset, _seq = (attrgetter(n) for n in ("clock", "phase", "offset", "seq"))
_ts, _at = attrgetter("ts"), attrgetter("at")
COUNTED, HELD_KEYS = -1, -2  # in the place of an output stream: a row tells of its partition

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
        self._kernels: OrderedDict[tuple[str, str, int], tuple[int, Compiled]] = OrderedDict()

    def take(self, job: Job, part: int) -> Compiled:
        """A kernel holding exactly the state after the batch before this one."""
        version, kernel = self._kernels.pop(self._key(job, part), (None, None))
        if kernel is not None and (job.fragment.stateless or version == job.version - 1):
            return kernel
        return fresh(job, part)

    def keep(self, job: Job, part: int, kernel: Compiled) -> None:
        self._kernels[self._key(job, part)] = (job.version, kernel)
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


def run_part(job: Job, part: int, batches: Iterable[Any]) -> Any:
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
    except Exception:  # noqa: BLE001  whatever an event broke, the others are to be processed
        kernel, before = fresh(job, part, guarded=True), [0] * len(names)
        feed(kernel, job, itertools.chain(seen, source))
    counts = [_count(kernel, *name) - old for name, old in zip(names, before, strict=True)]
    _tell_faults(kernel, dict(zip(names, counts, strict=True)))
    if not job.fragment.stateless:
        StateStore(job.state_root, part).save(job.version, list(kernel.changed()))
    failed = [row for one in kernel.take_failed() for row in _faults(one)]
    table = to_table(job, kernel.take() + failed)
    _LIVE.keep(job, part, kernel)
    return pa.concat_tables([table, _about(job, part, kernel, counts)])


def _tell_faults(kernel: Compiled, counts: Mapping[tuple[str, str], int]) -> None:
    for (kind, stream), count in counts.items():
        if kind == "faults" and count:
            why = kernel.stats.reasons[stream]
            logger.warning("stream %s: %d events failed and were dropped: %s", stream, count, why)


def feed(kernel: Compiled, job: Job, batches: Iterable[Any]) -> None:
    """A part of a batch, in order; then time moves to the end of the batch."""
    at = 0
    for batch in batches:
        for run, chunk in runs(job, batch):
            (kernel.feed_chunk if chunk else kernel.feed)(run)
            at = max(at, *run.at)
    kernel.advance(job.clock, at)


def _remembered(batches: Iterator[Any], seen: list[Any]) -> Iterator[Any]:
    for batch in batches:
        seen.append(batch)
        yield batch


def whole_chunks(batches: Iterable[Any]) -> Iterator[Any]:
    """The same rows, no batch ending inside a chunk."""
    held: list[Any] = []
    for batch in batches:
        held.append(batch)
        kinds = batch.column(KIND)
        if not len(kinds) or kinds[-1].as_py() != Kind.MORE:
            yield from held if len(held) == 1 else [_one(held)]
            held = []
    if held:
        yield _one(held)


def _one(batches: list[Any]) -> Any:
    return pa.Table.from_batches(batches).combine_chunks().to_batches()[0]


def ask(job: Job, query: OnDemandQuery) -> list[tuple[Any, ...]]:
    """A question to what an unkeyed fragment holds after the batch before `job`."""
    kernel = _LIVE.take(job, 0)
    rows = kernel.ask(query)
    kernel.take()
    if query.output is not None:
        StateStore(job.state_root, 0).amend(job.version - 1, list(kernel.changed()))
    _LIVE.keep(dataclasses.replace(job, version=job.version - 1), 0, kernel)
    return rows


def only(table: Any, job: Job) -> Any:
    """The rows of the fragment's inputs."""
    streams = pa.array([job.streams.index(s) for s in job.fragment.inputs], pa.int32())
    return table.filter(pc.is_in(table.column(STREAM), value_set=streams))


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
            ts=rows.column(TS).to_pylist(),
            columns=[
                from_column(rows.column(f"s{index}_{a.name}"), a.type)
                if a.name in read
                else unread
                for a in stream.schema.attributes
            ],
            offset=rows.column(OFFSET).to_pylist(),
            clock=rows.column(CLOCK).to_pylist(),
            at=rows.column(AT).to_pylist(),
        )
        yield run, chunked and bool(more[start])


def to_table(job: Job, rows: list[OutRow]) -> Any:
    """Rows of a kernel as one Arrow table of `out_schema`.

    A value that is not of its attribute's type has no place in a log: its row is a fault.
    """
    try:
        return _table(job, rows)
    except (pa.ArrowInvalid, pa.ArrowTypeError, TypeError, ValueError, OverflowError):
        schemas = {s.name: s.schema for s in job.outputs}
        return _table(job, [_fitting(row, schemas[row.stream]) for row in rows])


def _fitting(row: OutRow, schema: Schema) -> OutRow:
    for value, attribute in zip(row.data, schema.attributes, strict=True):
        try:
            to_column([value], attribute.type)
        except (pa.ArrowInvalid, pa.ArrowTypeError, TypeError, ValueError, OverflowError) as why:
            error = f"{attribute.name} is no {attribute.type.value}: {why}"
            [fault] = _faults((row.stream, row.clock, row.offset, row.at, error, [row.data]))
            return fault
    return row


def _table(job: Job, rows: list[OutRow]) -> Any:
    outputs = job.outputs
    index_of = {stream.name: i for i, stream in enumerate(outputs)}
    columns: list[Any] = [pa.array([index_of[r.stream] for r in rows], pa.int32())]
    whole = (_clock, _phase, _offset, _seq, _ts, _at)
    columns += [pa.array([of(r) for r in rows], pa.int64()) for of in whole]
    columns.append(pa.array([int(r.kind) for r in rows], pa.int8()))
    for stream in outputs:
        mine = [r.stream == stream.name for r in rows]
        for place, attribute in enumerate(stream.schema.attributes):
            values = [r.data[place] if own else None for r, own in zip(rows, mine, strict=True)]
            columns.append(to_column(values, attribute.type))
    return pa.Table.from_arrays(columns, schema=out_schema(job))


def _faults(failed: Failed) -> Iterator[OutRow]:
    stream, clock, offset, at, error, events = failed
    for seq, event in enumerate(events or [()]):
        text = json.dumps(event, default=str)
        data = (stream, offset, error, text)
        yield OutRow(FAULTS.name, clock, 1, offset, seq, clock, at, Kind.CURRENT, data)


def _about(job: Job, part: int, kernel: Compiled, counts: list[int]) -> Any:
    """What the driver is to know of a partition travels with the rows: from a task there is no
    other way. Its number of keys, and the counts of this batch.
    """
    rows = [{OUT: HELD_KEYS, OFFSET: part, TS: kernel.stats.keys}]
    rows += [{OUT: COUNTED, OFFSET: i, TS: count} for i, count in enumerate(counts) if count]
    return pa.Table.from_pylist(rows, schema=out_schema(job))


def keys_held(table: Any) -> int:
    """Keys in the state of a fragment, over all its partitions."""
    mine = table.filter(pc.equal(table.column(OUT), pa.scalar(HELD_KEYS)))
    return sum(mine.column(TS).to_pylist())


Counts = dict[str, dict[str, int]]  # what went wrong or was let go: of which kind, by whom


def watched(app: App) -> list[tuple[str, str]]:
    """All that is counted, in an order that tasks and driver share."""
    late = [("late", s.name) for s in app.streams if s.lateness_ms is not None]
    bounded = [q.name for q in app.queries if q.state is not None]
    bounded += [p.name for p in app.partitions if p.state is not None]
    failing = [*(s.name for s in app.streams), *(w.name for w in app.windows), TIMER, NO_TIME]
    faults = [("faults", name) for name in failing]
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


def _count(kernel: Compiled, kind: str, name: str) -> int:
    return int(getattr(kernel.stats, kind).get(name, 0))


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
    for own in schema:
        if own.name in table.column_names:
            columns.append(pc.cast(table.column(own.name), own.type))
        elif own.name in defaults:
            columns.append(pa.chunked_array([pa.repeat(defaults[own.name], table.num_rows)]))
        else:
            raise SetupError(f"the log needs the column '{own.name}', the table has none")
    whole = pa.Table.from_arrays(columns, schema=schema).combine_chunks()
    return whole.to_batches()[0]


def append(
    writers: Mapping[str, LogWriter], out: Mapping[str, list[Any]], producer: str, version: int
) -> int:
    """Once for each log; streams without one are for other queries only. Answers how many."""
    count = 0
    for stream, tables in out.items():
        writer = writers.get(stream)
        if writer is not None:
            rows = fit(pa.concat_tables(tables), writer.schema)
            writer.append(rows, producer=producer, sequence=version)
            count += rows.num_rows
    return count
