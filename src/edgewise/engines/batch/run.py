"""Run kernels over the rows of a micro-batch and write their state.

The same function runs in Spark's tasks, in its driver for batches too small to be worth a shuffle,
and in the embedded engine. It takes one key partition of one fragment, its rows in order.

An event that makes a kernel fail does not stop the app: the key partition is run again with a
guarded kernel, which counts the event, emits it as a row of FAULTS, and goes on with the next one.
The trade-off: the fast path has no guard per event, a batch with a bad event runs twice.
"""

from __future__ import annotations

import dataclasses
import itertools
import logging
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from edgewise.engines.batch.columns import CLOCK, OFFSET, STREAM
from edgewise.engines.batch.job import Job
from edgewise.engines.batch.live_kernels import LiveKernels
from edgewise.engines.batch.outputs import (
    FAULTS,
    Counts,
    FragmentOutput,
    build_fault_table,
    convert_to_tables,
)
from edgewise.engines.state.store import StateStore
from edgewise.errors import EdgewiseError
from edgewise.event.arrow import AT, KIND, TS
from edgewise.event.column import Column
from edgewise.event.event import EventKind
from edgewise.event.types import AttrType
from edgewise.kernel.api import EventRun
from edgewise.kernel.compile import Kernel
from edgewise.kernel.runtime import NO_TIME, TIMER
from edgewise.plan.nodes import App, OnDemandQuery

RUN_ROWS = 131_072  # fed at once; fewer cost more calls, more cost memory

logger = logging.getLogger(__name__)

_live = LiveKernels()  # of this process


def run_key_partition(
    job: Job, key_partition: int, batches: Iterable[Any], kernels: LiveKernels | None = None
) -> FragmentOutput:
    """Feed the rows in order, move time to the end of the batch, write the state if the job does.

    `kernels` are those of an engine; without them the kernels of this process.
    """
    kernels = _live if kernels is None else kernels
    kernel = kernels.take(job, key_partition)
    counters = list_counters(job.app)
    before = [_read_counter(kernel, *counter) for counter in counters]
    seen: list[Any] = []
    source = iter(join_chunks(batches))
    _begin_stores(kernel, job)
    try:
        feed_kernel(kernel, job, _remember(source, seen))
    except EdgewiseError:
        raise
    except Exception:
        logger.info("fragment %s: running again with guards", job.fragment.name, exc_info=True)
        if kernel.session is not None:
            kernel.session.close()  # its writes of this batch go
        kernel, before = kernels.load(job, key_partition, guarded=True), [0] * len(counters)
        _begin_stores(kernel, job)
        feed_kernel(kernel, job, itertools.chain(seen, source))
    counts = {
        counter: grown
        for counter, old in zip(counters, before, strict=True)
        if (grown := _read_counter(kernel, *counter) - old)
    }
    _log_faults(kernel, counts)
    return finish_batch(job, key_partition, kernel, _group_by_kind(counts), kernels)


def _begin_stores(kernel: Kernel, job: Job) -> None:
    if kernel.session is not None:
        kernel.session.begin(job.version)


def finish_batch(
    job: Job,
    key_partition: int,
    kernel: Kernel,
    counts: Counts | None = None,
    kernels: LiveKernels | None = None,
) -> FragmentOutput:
    """Write the state as the job's version, keep the kernel, return what it emitted."""
    if kernel.session is not None:
        kernel.session.commit(job.version)
    if job.saves and not job.fragment.stateless:
        StateStore(job.state_root, key_partition).save(job.version, list(kernel.changed()))
    output = collect_output(job, kernel)
    output.keys, output.counts = kernel.stats.keys, counts or {}
    (_live if kernels is None else kernels).keep(job, key_partition, kernel)
    return output


def collect_output(job: Job, kernel: Kernel) -> FragmentOutput:
    """The rows and faults that the kernel emitted since the last call."""
    schemas = {s.name: s.schema for s in job.outputs}
    output = FragmentOutput(convert_to_tables(kernel.take_columns(), schemas))
    if failed := kernel.take_failed():
        output.rows.setdefault(FAULTS.name, []).append(build_fault_table(failed))
    return output


def _log_faults(kernel: Kernel, counts: Mapping[tuple[str, str], int]) -> None:
    for (kind, stream), count in counts.items():
        if kind == "faults":
            why = kernel.stats.reasons[stream]
            logger.warning("stream %s: %d events failed and were dropped: %s", stream, count, why)


def feed_kernel(kernel: Kernel, job: Job, batches: Iterable[Any]) -> None:
    """Feed rows in order, then move time to the end of the batch."""
    at = job.at
    if job.app_start is not None and not job.fragment.keyed:
        kernel.note_app_start(*job.app_start)
    for batch in batches:
        for run, chunk in split_runs(job, batch):
            (kernel.feed_chunk if chunk else kernel.feed)(run)
        at = max(at, pc.max(batch.column(AT)).as_py() or 0)
    kernel.advance(job.clock, at)


def _remember(batches: Iterator[Any], seen: list[Any]) -> Iterator[Any]:
    for batch in batches:
        seen.append(batch)
        yield batch


def join_chunks(batches: Iterable[Any]) -> Iterator[Any]:
    """The same rows in larger record batches, none of which ends inside a chunk."""
    held: list[Any] = []
    for batch in _join_small(batches):
        held.append(batch)
        kinds = batch.column(KIND)
        if not len(kinds) or kinds[-1].as_py() != EventKind.MORE:
            yield from held if len(held) == 1 else [_concatenate(held)]
            held = []
    if held:
        yield _concatenate(held)


def _join_small(batches: Iterable[Any]) -> Iterator[Any]:
    """The same rows, small batches joined up to RUN_ROWS."""
    held: list[Any] = []
    count = 0
    for batch in batches:
        held.append(batch)
        count += batch.num_rows
        if count >= RUN_ROWS:
            yield held[0] if len(held) == 1 else _concatenate(held)
            held, count = [], 0
    if held:
        yield held[0] if len(held) == 1 else _concatenate(held)


def _concatenate(batches: list[Any]) -> Any:
    return pa.Table.from_batches(batches).combine_chunks().to_batches()[0]


def answer_query(
    job: Job, query: OnDemandQuery, kernels: LiveKernels | None = None
) -> list[tuple[Any, ...]]:
    """Run an on-demand query on what an unkeyed fragment holds before `job`.

    A query that changes the state makes the next revision, which later jobs must name.
    """
    kernels = _live if kernels is None else kernels
    kernel = kernels.take(job, 0)
    rows = kernel.answer(query)
    kernel.take()
    if kernel.session is not None and query.output is not None:
        kernel.session.commit(None)
    revision = job.revision
    if query.output is not None:
        StateStore(job.state_root, 0).amend(job.version - 1, list(kernel.changed()))
        revision += 1
    after = dataclasses.replace(job, version=job.version - 1, revision=revision)
    kernels.keep(after, 0, kernel)
    return rows


def split_runs(job: Job, batch: Any) -> Iterator[tuple[EventRun, bool]]:
    """Split ordered rows into runs of one stream each; True where a run is one chunk.

    A chunk goes through a keyed fragment event by event: its rows belong to different keys.
    """
    streams = batch.column(STREAM).to_numpy(zero_copy_only=False)
    if len(streams) == 0:
        return
    breaks = np.diff(streams) != 0
    more = batch.column(KIND).to_numpy(zero_copy_only=False) == EventKind.MORE
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
        run = EventRun(
            stream=stream.name,
            ts=_long_column(rows, TS),
            columns=[
                Column(rows.column(f"s{index}_{a.name}"), a.type) if a.name in read else unread
                for a in stream.schema.attributes
            ],
            offset=_long_column(rows, OFFSET),
            clock=_long_column(rows, CLOCK),
            at=_long_column(rows, AT),
        )
        yield run, chunked and bool(more[start])


def _long_column(rows: Any, name: str) -> Column:
    return Column(rows.column(name), AttrType.LONG)


def list_counters(app: App) -> list[tuple[str, str]]:
    """Everything a kernel counts (kind, name), in an order that tasks and driver share."""
    late = [("late", s.name) for s in app.streams if s.lateness_ms is not None]
    bounded = [q.name for q in app.queries if q.state is not None]
    bounded += [p.name for p in app.partitions if p.state is not None]
    failing = [*(s.name for s in app.streams), *(w.name for w in app.windows), TIMER, NO_TIME]
    faults = [("faults", name) for name in failing]
    return [*late, *(("dropped", name) for name in bounded), *faults]


def _group_by_kind(counts: Mapping[tuple[str, str], int]) -> Counts:
    found: Counts = {}
    for (kind, name), count in counts.items():
        found.setdefault(kind, {})[name] = count
    return found


def _read_counter(kernel: Kernel, kind: str, name: str) -> int:
    return int(getattr(kernel.stats, kind).get(name, 0))
