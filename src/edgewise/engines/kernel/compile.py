"""From a fragment of a plan to a kernel: write the source, load it, wrap it.

The source is one function, `build(rt)`, that holds the stores, the functions of each query, one
function per stream (hands a chunk to those who read it, in order of definition), one per
partition and stream (finds the instance), and one feeder per input stream.
"""

from __future__ import annotations

import gc
from collections import Counter, OrderedDict, deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice, repeat
from typing import Any

from edgewise.engines.kernel import (
    absence,
    aggregates,
    aggregation,
    batches,
    calls,
    columnar,
    cron,
    elements,
    index,
    java,
    ondemand,
    pattern_bounds,
    patterns,
    ratelimits,
    selector,
    sessions,
    snapshot,
    tables,
    vectors,
    windows,
)
from edgewise.engines.kernel.api import KernelStats, OutColumns, OutRow, Run
from edgewise.engines.kernel.bodies import bodies
from edgewise.engines.kernel.feed_code import write_feeder
from edgewise.engines.kernel.index_code import (
    Filters,
    Reader,
    filter_index,
    find_text,
    write_index,
)
from edgewise.engines.kernel.join_code import JoinQuery
from edgewise.engines.kernel.layout import Layout, layout_of
from edgewise.engines.kernel.order import PULSE, Order
from edgewise.engines.kernel.page import TAP, Page
from edgewise.engines.kernel.pair_code import KeyedQuery, PairQuery, keys_of_pair, pair_of
from edgewise.engines.kernel.partition_code import write_partition
from edgewise.engines.kernel.pattern_code import PatternQuery
from edgewise.engines.kernel.queries import StreamQuery
from edgewise.engines.kernel.runtime import FIRST_CELL, Failed, Runtime, nothing
from edgewise.engines.kernel.saved import Saved
from edgewise.engines.kernel.sequence_code import SequenceQuery
from edgewise.engines.kernel.store_code import write_stores
from edgewise.engines.kernel.straight import sequence_of
from edgewise.engines.kernel.writer import local
from edgewise.errors import BadEvent
from edgewise.event.event import Kind
from edgewise.plan.fragments import Fragment
from edgewise.plan.nodes import App, JoinInput, OnDemandQuery, Query, StateInput, StreamInput

__all__ = ["TAP", "Compiled", "compile_kernel"]

SPACE: dict[str, Any] = {
    "java": java,
    "fn": calls,
    "agg": aggregates,
    "win": windows,
    "bat": batches,
    "ses": sessions,
    "pat": patterns,
    "el": elements,
    "bounds": pattern_bounds,
    "ab": absence,
    "rate": ratelimits,
    "tab": tables,
    "acc": aggregation,
    "cron": cron,
    "index": index,
    "f32": java.f32,
    "vec": vectors,
    "col": columnar,
    "deque": deque,
    "Counter": Counter,
    "OrderedDict": OrderedDict,
    "repeat": repeat,
    "islice": islice,
    "OutColumns": OutColumns,
    "arrange": selector.arrange,
    "BadEvent": BadEvent,
}


_KINDS = tuple(Kind)


LONG_RUN_EVENTS = 64  # from here on the collector waits until a run is done


@contextmanager
def _uncollected() -> Iterator[None]:
    """Kernels make no cycles, and a collector that looks for them doubles what a row costs."""
    running = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if running:
            gc.enable()


class Compiled:
    """A kernel: generated functions around a runtime."""

    def __init__(
        self,
        app: App,
        source: str,
        feeders: dict[str, Any],
        rt: Runtime,
        layout: Layout,
        mark: bytes,
        by_key: int | None = None,
    ) -> None:
        self.app = app
        self.source = source
        self.layout = layout
        self.stats = KernelStats(faults=rt.faults, reasons=rt.reasons, dropped=rt.dropped)
        self._feeders = feeders
        self._rt = rt
        self._saved = Saved(app, rt, self.stats, layout, mark, by_key)

    @property
    def _order(self) -> Order | None:
        return self._saved.order

    def start(self, clock: int) -> None:
        """The app begins: what waits from the start on waits from here."""
        self._rt.now = clock
        if self._order is not None:
            self._order.floor = clock
        if not self._rt.keyed:
            self._rt.state(())

    def pulse(self, clock: int, offset: int, at: int) -> None:
        """An event of the app, maybe of no stream that is read here: what counts from the app's
        first event on does so from here, if it has not begun.
        """
        if self._rt.keyed or () in self._rt.keys or self._rt.created is nothing:
            return
        if self._order is None:
            self._begin(clock, offset, at)
        else:
            self._order.pulse(clock, offset, at)

    def _begin(self, clock: int, offset: int, at: int) -> None:
        if () not in self._rt.keys:
            self._rt.begin(clock, 1, offset, at)
            self._rt.state(())

    def feed(self, run: Run) -> None:
        self.stats.events_in += len(run.ts)
        if self._order is None:
            self._hand_on(run)
        elif len(run.ts):
            self._order.put(run)
            self.advance(run.clock[-1], run.at[-1])

    def _hand_on(self, run: Run) -> None:
        if run.stream == PULSE:
            self._begin(run.clock[0], run.offset[0], run.at[0])
            return
        feeder = self._feeders.get(run.stream)
        if feeder is not None and len(run.ts) >= LONG_RUN_EVENTS:
            with _uncollected():
                feeder(run)
        elif feeder is not None:
            feeder(run)
        elif len(run.ts):
            self._move(run.clock[-1], run.at[-1])
        if run.stream.startswith("!"):
            rows = zip(*run.columns, strict=True)
            places = zip(run.clock, run.offset, run.at, run.ts, rows, strict=True)
            for clock, offset, at, ts, row in places:
                self._rt.begin(clock, 1, offset, at)
                self._rt.emit(run.stream, [(0, ts, row)])

    def feed_chunk(self, run: Run) -> None:
        """All events of the run as one chunk, at the clock of the last."""
        rt = self._rt
        if run.stream not in self._feeders or not len(run.ts) or self._order is not None:
            self.feed(run)
            return
        self.stats.events_in += len(run.ts)
        rt.fire(run.clock[-1], run.at[-1])
        rt.begin(run.clock[-1], 1, run.offset[-1], run.at[-1])
        rows = zip(*run.columns, strict=True)
        chunk = [(0, ts, row) for ts, row in zip(run.ts, rows, strict=True)]
        self._feeders["", run.stream](rt.state(()), chunk)  # type: ignore[index]

    def ask(self, query: OnDemandQuery) -> list[tuple[Any, ...]]:
        """An on-demand query against what the app holds."""
        return ondemand.ask(self.app, self._rt, query, SPACE)

    def advance(self, clock: int, at: int) -> None:
        if self._order is not None:
            for run in self._order.let_go(clock):
                self._hand_on(run)
            clock -= self._order.lag_ms
        self._move(clock, at)

    def _move(self, clock: int, at: int) -> None:
        self._rt.fire(clock, at)
        self._rt.now = max(self._rt.now, clock)

    def batch_end(self) -> int | None:
        """When the open batch of an external time window ends; None: none has begun."""
        batch = self._rt.state(())[self._rt.batches]
        return batches.end_of(batch) if batch else None

    def begin_batch(self, end: int) -> None:
        """As after an event that closed the batch before, without that event."""
        self._rt.state(())[self._rt.batches] = batches.begun(end)

    def take(self) -> list[OutRow]:
        return [
            OutRow(stream, clock, phase, offset, seq, ts, at, _KINDS[kind], data)
            for stream, clock, phase, offset, seq, ts, at, kind, data in self.take_tuples()
        ]

    def take_tuples(self) -> list[tuple[Any, ...]]:
        """As `take`, without an object per row: the fields of OutRow in order."""
        rows, self._rt.rows = self._rt.rows, []
        if self._rt.blocks:
            self._rt.blocks = 0
            rows = [row for r in rows for row in (r.rows() if isinstance(r, OutColumns) else (r,))]
        self.stats.rows_out += len(rows)
        return rows

    def take_columns(self) -> list[OutColumns]:
        """As `take`, as columns: a block for each stream, and those made as blocks."""
        rows, self._rt.rows = self._rt.rows, []
        found: list[OutColumns] = []
        if self._rt.blocks:
            found = [row for row in rows if isinstance(row, OutColumns)]
            rows = [row for row in rows if not isinstance(row, OutColumns)]
            self._rt.blocks = 0
        by_stream: dict[str, list[tuple[Any, ...]]] = {}
        for row in rows:
            by_stream.setdefault(row[0], []).append(row)
        found += map(OutColumns.of, by_stream.values())
        self.stats.rows_out += sum(map(len, found))
        return found

    def take_failed(self) -> list[Failed]:
        """The faults since the last call, as many as were kept whole."""
        failed, self._rt.failed = self._rt.failed, []
        return failed

    def changed(self) -> Iterable[tuple[bytes, bytes | None]]:
        return self._saved.changed()

    def restore(self, states: Iterable[tuple[bytes, bytes]]) -> None:
        self._saved.restore(states)

    def carry(self, old: Layout, states: Iterable[tuple[bytes, bytes]], clock: int) -> None:
        """Into a fresh kernel, from another plan's: what both plans have goes on, the rest is new.

        `clock` is the app's time. May be called for several old fragments, one after the other.
        """
        self._saved.carry(old, states, clock)


def compile_kernel(
    app: App, fragment: Fragment, taps: Iterable[str] = (), *, as_sent: bool = False
) -> Compiled:
    """`taps` names queries whose own rows are wanted too, as the stream `@name`.

    `as_sent`: values may be of another type than their attribute, so any event may fail.
    """
    page = Page(app, fragment, frozenset(taps), as_sent=as_sent)
    if _keeps_the_key(page):
        page = Page(app, replace(fragment, keys=()), page.taps, as_sent=as_sent)
        page.by_key = FIRST_CELL
    source = write_page(page)
    rt = Runtime(keyed=page.fragment.keyed)
    rt.guarded = any(page.guarded(stream) for stream in page.read())
    space = {**SPACE, **page.readers_of_text, **bodies(app)}
    exec(compile(source, f"<kernel {fragment.name}>", "exec"), space)  # noqa: S102  our own text
    feeders = space["build"](rt)
    lateness = tuple((s.name, s.lateness_ms) for s in app.streams if s.lateness_ms is not None)
    layout = layout_of(page, fragment)
    mark = snapshot.fingerprint((layout.cells, layout.nodes, layout.inside, layout.keys, lateness))
    return Compiled(app, source, feeders, rt, layout, mark, page.by_key)


def _keeps_the_key(page: Page) -> bool:
    """One query that holds its state by the fragment's own key: no state around it is needed."""
    if not page.fragment.keyed or len(page.queries) > 1 or page.app.lateness_ms is not None:
        return False
    [query] = page.queries
    pair, sequence = pair_of(page, query), sequence_of(page, query)
    keys = keys_of_pair(pair) if pair else sequence.keys if sequence else {}
    return bool(keys) and {s: (k,) for s, k in keys.items()} == dict(page.fragment.keys)


def write_page(page: Page) -> str:
    w = page.writer
    with w.block("def build(rt)"):
        w.line("emit = rt.emit")
        write_stores(page)
        codes = {q.name: _query(page, q) for q in page.queries}
        for code in codes.values():
            page.own(f"query {code.query.name}")
            code.write()
        for scope in page.scopes.values():
            if scope.partition is not None and not _keeps_keys(codes, scope.partition.name):
                write_partition(page, scope, lambda q, s: entries(codes[q.name], s))
        for stream in page.read():
            if not stream.startswith("#"):
                _stream(page, stream, codes)
        fed = [s.name for s in page.app.streams if s.name in page.read()]
        for stream in fed:
            write_feeder(page, stream, codes)
        w.line()
        w.line(f"rt.nodes[:] = [{', '.join(page.timers)}]")
        w.line(f"rt.fresh = lambda: [{', '.join(page.root.fresh)}]")
        if page.root.created:
            with w.block("def created(S)"):
                for line in page.root.created:
                    w.line(line)
            w.line("rt.created = created")
        feeders = [f"{s!r}: feed_{local(s)}" for s in fed]
        feeders += [f"('', {s!r}): {page.stream_name(s)}" for s in fed]
        w.line(f"return {{{', '.join(feeders)}}}")
    return w.text()


AnyQuery = StreamQuery | JoinQuery | PatternQuery | KeyedQuery


def _keeps_keys(codes: dict[str, AnyQuery], partition: str) -> bool:
    """A partition whose only query keeps its own keys."""
    return any(
        isinstance(c, KeyedQuery) and c.query.partition == partition for c in codes.values()
    )


def _query(page: Page, query: Query) -> AnyQuery:
    pair = pair_of(page, query)
    # Keyed from outside, a pair sees one key only and would never forget one that falls silent.
    forgets = query.partition or not page.fragment.keyed
    if pair is not None and forgets:
        return PairQuery(page, query, pair)
    sequence = sequence_of(page, query)
    if sequence is not None:
        return SequenceQuery(page, query, sequence)
    match query.input:
        case StreamInput():
            return StreamQuery(page, query, query.input)
        case JoinInput():
            return JoinQuery(page, query, query.input)
        case StateInput():
            return PatternQuery(page, query, query.input)


def entries(code: AnyQuery, stream: str) -> list[str]:
    """The functions of a query that take a chunk of this stream."""
    match code:
        case StreamQuery():
            return [f"{code.name}_in"]
        case JoinQuery():
            return code.entries(stream)
        case PatternQuery() | KeyedQuery():
            return [code.entry(stream)]


def _stream(page: Page, stream: str, codes: dict[str, Any]) -> None:
    w = page.writer
    w.line()
    readers = _readers(page, stream, codes)
    found = filter_index(readers)
    if found is not None:
        write_index(page, page.stream_name(stream), found)
    with w.block(f"def {page.stream_name(stream)}(S, chunk)"):
        if not page.guarded(stream):
            _hand_on(page, stream, readers, found)
            return
        with w.block("try"):
            _hand_on(page, stream, readers, found)
        with w.block("except Exception as why"):
            w.line(f"rt.fault({stream!r}, why, chunk)")
            if page.has_stream(f"!{stream}"):
                w.line("chunk = [(0, ts, (*row, str(why))) for _, ts, row in chunk]")
                if f"!{stream}" in page.read():
                    w.line(f"{page.stream_name(f'!{stream}')}(S, chunk)")
                w.line(f"emit({f'!{stream}'!r}, chunk)")


def _readers(page: Page, stream: str, codes: dict[str, Any]) -> list[Reader]:
    """The functions that take a chunk of this stream, in the order they are written."""
    found: list[Reader] = []
    called: set[str] = set()
    for query in page.readers(stream):
        scope, code = page.scopes[query.partition], codes[query.name]
        if scope.partition is None or isinstance(code, KeyedQuery):
            found.append((code, entries(code, stream)))
        elif scope.name not in called:
            called.add(scope.name)
            found.append((None, [f"{scope.name}_of_{local(stream)}"]))
    found += [
        (None, [f"agg_{local(kept.name)}_in"])
        for kept in page.app.aggregations
        if kept.input.stream == stream and kept.name in page.stores
    ]
    return found


def _hand_on(page: Page, stream: str, readers: list[Reader], found: Filters | None) -> None:
    """A chunk to all that read the stream, in the order they are written."""
    w = page.writer
    if found is not None:
        with w.block("if len(chunk) == 1"):
            with w.block(f"for q in {find_text(page.stream_name(stream), found)}"):
                w.line("q(S, chunk)")
            w.line("return")
    for _, names in readers:
        for name in names:
            w.line(f"{name}(S, chunk)")
    w.line("return")
