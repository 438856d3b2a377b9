"""Write queries: input, selection, output.

Every query becomes a few functions: `_in` takes a chunk of its stream, `_select` takes what its
window, join or pattern gives, `_out` takes its rows. A query without a window has `_in` and
selection in one loop.
"""

from __future__ import annotations

from edgewise.kernel.codegen.expr_text import ExprText, ExprWriter, Resolve
from edgewise.kernel.codegen.fragment_builder import FragmentBuilder, refuse
from edgewise.kernel.codegen.function_binding import procedure_name
from edgewise.kernel.codegen.processor_chain import has_processor, write_chain
from edgewise.kernel.codegen.query_output import OutputWriter, carried
from edgewise.kernel.codegen.row_layout import RowLayout
from edgewise.kernel.codegen.selector import SelectWriter
from edgewise.kernel.codegen.table_access import in_table
from edgewise.kernel.codegen.window_calls import APART, BATCHES, IN_TURN, make_window
from edgewise.kernel.functions import calls
from edgewise.plan.exprs import Call, Const, Expr, Field, InTable, walk
from edgewise.plan.nodes import (
    EventType,
    Filter,
    Handler,
    Query,
    RateKind,
    StreamCall,
    StreamInput,
    Window,
)


class QueryWriter:
    """What all queries share. `names` says what a row given to the selector holds."""

    def __init__(self, builder: FragmentBuilder, query: Query, names: RowLayout) -> None:
        self.builder = builder
        self.query = query
        self.writer = builder.writer
        self.name = builder.query_name(query)
        self.scope = builder.scopes[query.partition]
        self.names = names
        self.output = OutputWriter(builder, query, self.name, self.scope)

    def tables(self, expr: InTable, resolve: Resolve) -> str:
        return in_table(self.builder, expr, resolve)

    def exprs(self, names: RowLayout | None = None) -> ExprWriter:
        return ExprWriter(self.writer, (names or self.names).code, self.tables)

    def selector(self, *, only_current: bool) -> SelectWriter:
        query = self.query
        rate = query.rate
        grouped = rate is not None and bool(query.select.group_by)
        snapshot = rate is not None and rate.kind is RateKind.SNAPSHOT
        select = SelectWriter(
            self.writer,
            query.select,
            self.names,
            EventType.ALL if snapshot else query.output.events,
            cell=self.scope.next_cell,
            only_current=only_current,
            tables=self.tables,
            carried=carried(query),
            keep_group=grouped or snapshot,
            each_row=snapshot,
        )
        if select.stateful:
            self.scope.cell("{}" if query.select.group_by else "None")
        return select

    def finish(self, select: SelectWriter) -> None:
        if select.stateful and not self.query.select.group_by:
            self.scope.refill(select.cell, select.start_cells())

    def unpack(self, done: set[str], *exprs: Expr | None) -> None:
        """Locals for what these expressions read and no line before has unpacked."""
        used = [k for k in self.names.used(*exprs) if self.names.locals[k] not in done]
        done |= {self.names.locals[k] for k in used}
        text = self.names.unpack(used)
        if text:
            self.writer.line(text)

    def handlers(self, handlers: tuple[Handler, ...], slot: str, done: set[str]) -> None:
        """Filters and stream functions, inside a loop over `ts, row`."""
        for handler in handlers:
            exprs = self.exprs()
            if isinstance(handler, Filter):
                self.unpack(done, handler.condition)
                with self.writer.block(f"if not {exprs.condition(handler.condition)}"):
                    self.writer.line("continue")
                continue
            if handler.procedure is not None:
                self._procedure(handler, slot)
                continue
            self.unpack(done, *handler.args)
            name = handler.name.lower()
            if name == "log":
                continue
            if name not in calls.STREAM_FUNCTIONS:
                raise refuse(self.query.span, f"the stream function '#{handler.name}' is unknown")
            args = ", ".join(exprs.value(a) for a in handler.args)
            self.writer.line(f"row = row + fn.{calls.STREAM_FUNCTIONS[name].__name__}({args})")
            for attribute in handler.adds:
                self.names.append((slot, attribute.name, None))

    def _procedure(self, call: StreamCall, slot: str) -> None:
        """The user's own code, with the state it declared in a cell of its own."""
        assert call.procedure is not None
        cell = self.scope.cell(repr(dict(call.procedure.state)))
        names = tuple(key[1] for key in self.names.positions)
        w = self.writer
        w.line(f"extra = {procedure_name(w, call)}(S[{cell}], {names!r}, row)")
        with w.block("if extra is None"):
            w.line("continue")
        w.line("row = row + extra")
        for attribute in call.adds:
            self.names.append((slot, attribute.name, None))

    def select_function(
        self,
        select: SelectWriter,
        after: tuple[Handler, ...],
        slot: str,
        late: bool = False,
    ) -> None:
        """`_select(S, chunk)`: what leaves a window, join or pattern.

        `late`: current rows are the last of a chunk, so each group is projected once, at its end.
        """
        w = self.writer
        w.line()
        with w.block(f"def {self.name}_select(S, chunk)"):
            select.before_loop()
            with w.block("for kind, ts, row in chunk"):
                with w.block("if kind == 2"):
                    select.reset()
                    w.line("continue")
                done: set[str] = set()
                self.handlers(after, slot, done)
                if late:
                    self.unpack(done, *select.grouping())
                    select.gather()
                else:
                    self.unpack(done, *select.expressions())
                    select.body()
            if late:
                with w.block("for group, (ts, row) in out.items()"):
                    self.unpack(set(), *select.expressions())
                    select.project()
            select.after_loop(f"{self.name}_out")
        self.finish(select)


# Windows that a feeder may inline (`sliding_events`), by what their arguments are.
SLIDING_ARGS: dict[str, tuple[type[Expr], ...]] = {
    "length": (Const,),
    "time": (Const,),
    "externaltime": (Field, Const),
}


class StreamQueryWriter(QueryWriter):
    """`from S[filter]#window.w()[filter]`, or from a named window."""

    def __init__(self, builder: FragmentBuilder, query: Query, source: StreamInput) -> None:
        schema = builder.schema(source.stream, query.partition)
        super().__init__(builder, query, RowLayout((source.slot, n, None) for n in schema.names))
        self.source = source
        self.named = builder.app.window(source.stream) is not None
        self.sliding: SelectWriter | None = None  # where a feeder may inline this window
        self.windowed: SelectWriter | None = None  # behind a window
        self.window_cell = self.window_node = 0

    def read_columns(self) -> Resolve:
        """How expressions read the event at hand in a loop over columns."""
        columns = self.builder.event_locals(self.source.stream)

        def resolve(expr: Expr) -> ExprText:
            return (
                ExprText(columns[expr.name]) if isinstance(expr, Field) else self.names.code(expr)
            )

        return resolve

    def write(self) -> None:
        self.output.write()
        if has_processor((*self.source.before, *self.source.after)):
            write_chain(self)
        elif self.named:
            self._from_named_window()
        elif self.source.window is None:
            self._straight()
        else:
            self._windowed(self.source.window)

    def _straight(self) -> None:
        w, source = self.writer, self.source
        select = self.selector(only_current=True)
        w.line()
        with w.block(f"def {self.name}_in(S, chunk)"):
            select.before_loop()
            with w.block("for _, ts, row in chunk"):
                done: set[str] = set()
                handlers = (*source.before, *source.after)
                if all(isinstance(h, Filter) for h in handlers):
                    filters = [h.condition for h in handlers if isinstance(h, Filter)]
                    self.unpack(done, *filters, *select.expressions())
                self.handlers(handlers, source.slot, done)
                self.unpack(done, *select.expressions())
                select.body()
            select.after_loop(f"{self.name}_out")
        self.finish(select)

    def _from_named_window(self) -> None:
        """Rows come as current, expired and reset, as the window lets them out."""
        select = self.selector(only_current=False)
        self.select_function(select, (*self.source.before, *self.source.after), self.source.slot)
        self.writer.line(f"{self.name}_in = {self.name}_select")

    def _slides(self, window: Window, select: SelectWriter) -> bool:
        """A window in order with aggregates, and only current rows wanted."""
        wanted, handlers = self.query.select, (*self.source.before, *self.source.after)
        kinds = tuple(type(arg) for arg in window.args)
        size = window.args[-1] if window.args else None
        return (
            kinds == SLIDING_ARGS.get(window.name.lower())
            and isinstance(size, Const)
            and size.value > 0
            and select.aggregates
            and not self.query.partition
            and self.query.output.events is EventType.CURRENT
            and not self.source.after
            and all(isinstance(h, Filter) for h in handlers)
            and not wanted.order_by
            and wanted.limit is None
            and wanted.offset is None
            and not any(isinstance(n, Call) for e in select.expressions() for n in walk(e))
        )

    def _windowed(self, window: Window) -> None:
        w, source, name = self.writer, self.source, self.name
        select = self.selector(only_current=False)
        select.in_turn = window.name.lower() in IN_TURN
        # With a trigger that is let out at once and again with its batch, more leave than came.
        select.uneven = window.name.lower() == "expressionbatch" and len(window.args) == 3
        done: set[str] = set()
        first_line = len(w.lines)
        with w.block(f"def {name}_in(S, chunk)"):
            w.line("out = []")
            with w.block("for _, ts, row in chunk"):
                self.handlers(source.before, source.slot, done)
                w.line(f"{name}_window.push(S, ts, row, out)")
                if window.name.lower() in APART:
                    with w.block("if out"):
                        w.line(f"{name}_select(S, out)")
                        w.line("out = []")
            w.line(f"{name}_window.end(S, out)")
            with w.block("if out"):
                w.line(f"{name}_select(S, out)")
        entry, w.lines[first_line:] = (
            w.lines[first_line:],
            [],
        )  # written below the window it pushes to
        late = window.name.lower() in BATCHES and len(window.args) < 3 and select.may_gather
        self.select_function(select, source.after, source.slot, late)
        w.line()
        cell, span = self.scope.next_cell, self.query.span
        made = make_window(self.builder, window, source.slot, self.names, cell, span)
        w.line(f"{name}_window = {made}")
        self.window_cell = self.scope.cell(f"{name}_window.fresh()")
        if self.query.output.events is EventType.CURRENT and self.query.rate is None:
            w.line(f"{name}_window.quiet = True")
        elif self.builder.fragment.keyed and not (
            self.query.partition or select.aggregates or self.query.select.group_by
        ):
            w.line(f"{name}_window.apart = True")
        if self._slides(window, select):
            self.sliding = select
        self.windowed = select
        self.window_node = self.builder.node(f"{name}_timer")
        w.line()
        w.lines += entry
        w.line()
        with w.block(f"def {name}_timer(S, due, payload)"):
            w.line("out = []")
            w.line(f"{name}_window.timer(S, due, payload, out)")
            with w.block("if out"):
                w.line(f"{name}_select(S, out)")
