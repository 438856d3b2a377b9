"""From a fragment of a plan to a kernel: write the source, load it, wrap it.

The source is one function, `build(rt)`, that holds a function per stream (hands a chunk to the
queries that read it, in order of definition), three per query (`_in`, `_select`, `_out`) and one
feeder per input stream.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

from edgewise.engines.kernel import aggregates, calls, java, selector, snapshot, windows
from edgewise.engines.kernel.api import KernelStats, OutRow, Run
from edgewise.engines.kernel.exprs import Code, Exprs
from edgewise.engines.kernel.runtime import FIRST_CELL, Runtime
from edgewise.engines.kernel.selector import Names, SelectorCode, used_fields
from edgewise.engines.kernel.writer import Writer, local
from edgewise.errors import AppError, Problem
from edgewise.event.event import Kind
from edgewise.plan.exprs import Const, Expr, Field
from edgewise.plan.fragments import Fragment
from edgewise.plan.nodes import (
    App,
    EventType,
    Filter,
    Handler,
    Query,
    StreamInput,
    Window,
    streams_of,
)

TAP = "@"  # rows of a query itself, asked for by `taps`, come out under this mark and its name

WINDOWS: dict[str, Callable[..., windows.Window]] = {
    "length": windows.Length,
    "time": windows.Time,
    "timebatch": windows.TimeBatch,
}


class Compiled:
    """A kernel: generated functions around a runtime."""

    def __init__(self, source: str, feeders: dict[str, Any], rt: Runtime, mark: bytes) -> None:
        self.source = source
        self.stats = KernelStats()
        self._feeders = feeders
        self._rt = rt
        self._mark = mark

    def feed(self, run: Run) -> None:
        feeder = self._feeders.get(run.stream)
        if feeder is not None:
            self.stats.events_in += len(run.ts)
            feeder(run)

    def advance(self, clock: int, at: int) -> None:
        self._rt.fire(clock, at)
        self._rt.now = max(self._rt.now, clock)

    def take(self) -> list[OutRow]:
        rows, self._rt.rows = self._rt.rows, []
        self.stats.rows_out += len(rows)
        return [
            OutRow(stream, clock, phase, offset, seq, ts, at, Kind(kind), data)
            for stream, clock, phase, offset, seq, ts, at, kind, data in rows
        ]

    def changed(self) -> Iterable[tuple[bytes, bytes | None]]:
        rt = self._rt
        touched = list(rt.dirty) if rt.keyed else list(rt.keys)
        rt.dirty.clear()
        out: list[tuple[bytes, bytes | None]] = []
        for key in touched:
            state = rt.keys.get(key)
            if state is None:
                continue
            if rt.keyed and not any(cell for i, cell in enumerate(state) if i != 1):
                del rt.keys[key]
                out.append((snapshot.pack_key(key), None))
                continue
            clock = None if rt.keyed else rt.now
            out.append((snapshot.pack_key(key), snapshot.pack(self._mark, [clock, *state])))
        self.stats.keys = len(rt.keys)
        return out

    def restore(self, states: Iterable[tuple[bytes, bytes]]) -> None:
        rt = self._rt
        for key_bytes, data in states:
            clock, *state = snapshot.unpack(self._mark, data)
            if clock is not None:
                rt.now = max(rt.now, clock)
            rt.keys[snapshot.unpack_key(key_bytes)] = state
            rt.rearm(state)
        self.stats.keys = len(rt.keys)


def compile_kernel(app: App, fragment: Fragment, taps: Iterable[str] = ()) -> Compiled:
    """`taps` names queries whose own rows are wanted too, as the stream `@name`."""
    page = Page(app, fragment, frozenset(taps))
    source = page.source()
    rt = Runtime(keyed=fragment.keyed)
    space: dict[str, Any] = {
        "java": java,
        "fn": calls,
        "agg": aggregates,
        "win": windows,
        "f32": java.f32,
        "deque": deque,
        "arrange": selector.arrange,
    }
    exec(compile(source, f"<kernel {fragment.name}>", "exec"), space)  # noqa: S102  our own text
    feeders = space["build"](rt)
    mark = snapshot.fingerprint((page.queries, fragment.keys))
    return Compiled(source, feeders, rt, mark)


class Page:
    """The generated source of one fragment."""

    def __init__(self, app: App, fragment: Fragment, taps: frozenset[str]) -> None:
        self.app = app
        self.fragment = fragment
        self.taps = taps
        self.writer = Writer()
        wanted = set(fragment.queries)
        self.queries = tuple(q for q in app.queries if q.name in wanted)
        self.read = tuple(dict.fromkeys(n for q in self.queries for n in streams_of(q.input)))
        self._cells: list[str] = []
        self._timers: list[str] = []

    def source(self) -> str:
        w = self.writer
        with w.block("def build(rt)"):
            w.line("emit = rt.emit")
            for i, query in enumerate(self.queries):
                QueryCode(self, query, f"q{i}_{local(query.name)}").write()
            for stream in self.read:
                self._stream(stream)
            for stream in self.read:
                self._feeder(stream)
            w.line(f"rt.nodes[:] = [{', '.join(self._timers)}]")
            w.line(f"rt.fresh = lambda: [{', '.join(self._cells)}]")
            feeders = ", ".join(f"{s!r}: feed_{local(s)}" for s in self.read)
            w.line(f"return {{{feeders}}}")
        return w.text()

    def cell(self, fresh: str) -> int:
        """A cell of its own for an operator; `fresh` is the text of its empty value."""
        self._cells.append(fresh)
        return FIRST_CELL + len(self._cells) - 1

    def refill(self, cell: int, fresh: str) -> None:
        self._cells[cell - FIRST_CELL] = fresh

    def node(self, on_timer: str) -> int:
        self._timers.append(on_timer)
        return len(self._timers) - 1

    @property
    def next_node(self) -> int:
        return len(self._timers)

    @property
    def next_cell(self) -> int:
        return FIRST_CELL + len(self._cells)

    def _stream(self, stream: str) -> None:
        w = self.writer
        w.line()
        with w.block(f"def s_{local(stream)}(S, chunk)"):
            for i, query in enumerate(self.queries):
                if stream in streams_of(query.input):
                    w.line(f"q{i}_{local(query.name)}_in(S, chunk)")

    def _feeder(self, stream: str) -> None:
        w = self.writer
        schema = self.app.stream(stream).schema
        names = [f"c_{local(n)}" for n in schema.names]
        w.line()
        with w.block(f"def feed_{local(stream)}(run)"):
            w.line("heap = rt.heap")
            columns = ", ".join(["ts", "offset", "clock", "at", *names])
            source = "zip(run.ts, run.offset, run.clock, run.at, *run.columns)"
            with w.block(f"for {columns} in {source}"):
                with w.block("if heap and heap[0][0] <= clock"):
                    w.line("rt.fire(clock, at)")
                w.line("rt.begin(clock, 1, offset, at)")
                row = f"({', '.join(names)}{',' if len(names) == 1 else ''})"
                key = self._key(stream)
                w.line(f"s_{local(stream)}(rt.state({key}), [(0, ts, {row})])")

    def _key(self, stream: str) -> str:
        if not self.fragment.keyed:
            return "()"
        key = [f"c_{local(n)}" for n in self.fragment.key_of(stream)]
        return f"({', '.join(key)}{',' if len(key) == 1 else ''})"


class QueryCode:
    """The functions of one query."""

    def __init__(self, page: Page, query: Query, name: str) -> None:
        self.page = page
        self.query = query
        self.name = name
        if not isinstance(query.input, StreamInput):
            raise AppError((Problem(query.span, "joins and patterns do not run here yet"),))
        self.input = query.input
        schema = page.app.stream(self.input.stream).schema
        slot = self.input.slot
        self.names = Names({(slot, n): i for i, n in enumerate(schema.names)})

    def write(self) -> None:
        query, page = self.query, self.page
        select = SelectorCode(
            page.writer,
            query.select,
            self.names,
            query.output.events,
            cell=page.next_cell,
            only_current=self.input.window is None,
        )
        if select.stateful:
            page.cell("{}" if query.select.group_by else "None")
        self._out()
        if self.input.window is None:
            self._straight(select)
        else:
            self._windowed(select, self.input.window)
        if select.stateful and not query.select.group_by:
            page.refill(select.cell, select.start_cells())

    def _conditions(self, handlers: tuple[Handler, ...]) -> list[Expr]:
        for handler in handlers:
            if not isinstance(handler, Filter):
                problem = Problem(self.query.span, f"'#{handler.name}' does not run here yet")
                raise AppError((problem,))
        return [h.condition for h in handlers if isinstance(h, Filter)]

    def _filters(self, conditions: list[Expr]) -> None:
        exprs = Exprs(self.page.writer, self._field)
        for condition in conditions:
            with self.page.writer.block(f"if not {exprs.condition(condition)}"):
                self.page.writer.line("continue")

    def _field(self, expr: Expr) -> Code:
        assert isinstance(expr, Field), f"{expr!r} has no place in a filter"
        return Code(self.names.local(expr))

    def _unpack(self, *exprs: Expr) -> None:
        text = self.names.unpack(used_fields(self.names, *exprs))
        if text:
            self.page.writer.line(text)

    def _straight(self, select: SelectorCode) -> None:
        """No window: filter and select in one loop."""
        w, source = self.page.writer, self.input
        filters = self._conditions((*source.before, *source.after))
        w.line()
        with w.block(f"def {self.name}_in(S, chunk)"):
            select.before_loop()
            with w.block("for _, ts, row in chunk"):
                self._unpack(*filters, *select.expressions())
                self._filters(filters)
                select.body()
            select.after_loop(f"{self.name}_out")

    def _windowed(self, select: SelectorCode, window: Window) -> None:
        w, page, source = self.page.writer, self.page, self.input
        name, after = self.name, self._conditions(source.after)
        w.line()
        with w.block(f"def {name}_select(S, chunk)"):
            select.before_loop()
            with w.block("for kind, ts, row in chunk"):
                with w.block("if kind == 2"):
                    select.reset()
                    w.line("continue")
                self._unpack(*after, *select.expressions())
                self._filters(after)
                select.body()
            select.after_loop(f"{name}_out")
        make = self._window(window)
        w.line()
        w.line(f"{name}_window = {make}")
        page.cell(f"{name}_window.fresh()")
        page.node(f"{name}_timer")
        w.line()
        with w.block(f"def {name}_in(S, chunk)"):
            w.line("out = []")
            before = self._conditions(source.before)
            with w.block("for _, ts, row in chunk"):
                self._unpack(*before)
                self._filters(before)
                w.line(f"{name}_window.push(S, ts, row, out)")
            with w.block("if out"):
                w.line(f"{name}_select(S, out)")
        w.line()
        with w.block(f"def {name}_timer(S, due, payload)"):
            w.line("out = []")
            w.line(f"{name}_window.timer(S, due, payload, out)")
            with w.block("if out"):
                w.line(f"{name}_select(S, out)")

    def _window(self, window: Window) -> str:
        maker = WINDOWS.get(window.name.lower())
        if maker is None:
            problem = Problem(self.query.span, f"the window '{window.name}' is not known here")
            raise AppError((problem,))
        args = [repr(a.value) for a in window.args if isinstance(a, Const)]
        head = f"rt, {self.page.next_node}, {self.page.next_cell}"
        return f"win.{maker.__name__}({', '.join([head, *args])})"

    def _out(self) -> None:
        w, page, query = self.page.writer, self.page, self.query
        target = query.output.target
        w.line()
        with w.block(f"def {self.name}_out(S, chunk)"):
            if query.name in page.taps:
                w.line(f"emit({TAP + query.name!r}, chunk)")
            if target in page.read:
                chunk = "chunk"
                if query.output.events is not EventType.CURRENT:
                    chunk = "[(0, ts, row) for _, ts, row in chunk]"
                w.line(f"s_{local(target)}(S, {chunk})")
            w.line(f"emit({target!r}, chunk)")
