"""Write joins: each side has a window (or is a store), and its rows probe the other side.

An event first enters its own window; what leaves the window, current and expired, then probes
what the other side holds at that moment. A side without a window holds nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from edgewise.kernel.codegen.expr_text import ExprText, ExprWriter, Resolve
from edgewise.kernel.codegen.fragment_builder import FragmentBuilder
from edgewise.kernel.codegen.query_output import carried
from edgewise.kernel.codegen.row_layout import IS_NULL, TIME, RowLayout, keys_of
from edgewise.kernel.codegen.stream_query import QueryWriter
from edgewise.kernel.codegen.table_access import is_stored, where_text
from edgewise.kernel.codegen.window_calls import KEEPERS, make_window
from edgewise.plan.exprs import Expr, Field, SlotIsNull, SlotTime
from edgewise.plan.nodes import EventType, JoinInput, JoinKind, JoinSide, Query, StoreKind, Window

_NOTHING = Window("nothing", ())  # a side without a window: it can trigger, and holds nothing


@dataclass(frozen=True, slots=True)
class SideLayout:
    """`content` is the text of what it holds."""

    side: JoinSide
    names: RowLayout
    label: str
    content: str

    @property
    def width(self) -> int:
        return self.names.width


class JoinQueryWriter(QueryWriter):
    def __init__(self, builder: FragmentBuilder, query: Query, source: JoinInput) -> None:
        self.source = source
        sides = (source.left, source.right)
        keys = [
            (s.input.slot, n, None)
            for s in sides
            for n in builder.schema(s.input.stream, query.partition).names
        ]
        super().__init__(builder, query, RowLayout(keys))
        select = query.select
        items = [i.expr for i in select.items]
        used = set(keys_of(*items, *select.group_by, select.having, *carried(query)))
        self.extras = sorted(k for k in used if k[1] in {IS_NULL, TIME} and k[0])
        for key in self.extras:
            self.names.append(key)
        self.sides = tuple(self._side(s, label) for s, label in zip(sides, "lr", strict=True))

    def _side(self, side: JoinSide, label: str) -> SideLayout:
        schema = self.builder.schema(side.input.stream, self.query.partition)
        names = RowLayout((side.input.slot, n, None) for n in schema.names)
        match side.kind:
            case StoreKind.TABLE:
                content = f"{self.builder.store_name(side.input.stream)}.content(S)"
            case StoreKind.WINDOW:
                content = f"{self.builder.store_name(side.input.stream)}.content(rt.root)"
            case StoreKind.AGGREGATION:
                content = f"{self.builder.store_name(side.input.stream)}.rows({self._range()})"
            case _ if self._forgets(side.input.window):
                content = "()"
            case _:
                content = f"{self.name}_{label}_window.content(S)"
        return SideLayout(side, names, label, content)

    def _forgets(self, window: Window | None) -> bool:
        """`batch()` keeps nothing where no X are wanted."""
        wanted = self.query.output.events
        return (
            window is not None and window.name.lower() == "batch" and wanted is EventType.CURRENT
        )

    def _range(self) -> str:
        """`within` and `per` of an aggregation, over the event at hand."""
        slot, kind = self.source.left.input.slot, self.source.left.kind
        if kind is StoreKind.AGGREGATION:
            slot = self.source.right.input.slot
        names = [k[1] for k in self.names.positions if k[0] == slot]

        def resolve(expr: Expr) -> ExprText:
            assert isinstance(expr, Field), "within and per read the event"
            return ExprText(f"row[{names.index(expr.name)}]")

        exprs = ExprWriter(self.writer, resolve)
        within = ", ".join(exprs.value(e) for e in self.source.within)
        per = exprs.value(self.source.per) if self.source.per is not None else "'seconds'"
        return f"({within},), {per}"

    def write(self) -> None:
        self.output.write()
        select = self.selector(only_current=False)
        select.uneven = True
        self.select_function(select, (), "")
        for side in self.sides:
            if side.side.kind is StoreKind.STREAM:
                self._window(side)
        left, right = self.sides
        for mine, other in ((left, right), (right, left)):
            if mine.side.kind in {StoreKind.STREAM, StoreKind.WINDOW}:
                self._probe(mine, other)
                self._entry(mine)

    def entries(self, stream: str) -> list[str]:
        left, right = (side.side for side in self.sides)
        if left.kind is right.kind is StoreKind.WINDOW and left.input.stream == right.input.stream:
            return [f"{self.name}_l_in"]  # one window, asked once
        return [
            f"{self.name}_{side.label}_in"
            for side in self.sides
            if side.side.input.stream == stream
            and side.side.kind in {StoreKind.STREAM, StoreKind.WINDOW}
        ]

    def _window(self, side: SideLayout) -> None:
        window = side.side.input.window or _NOTHING
        cell = self.scope.next_cell
        name = f"{self.name}_{side.label}"
        slot = side.side.input.slot
        text = make_window(self.builder, window, slot, side.names, cell, self.query.span)
        self.writer.line(f"{name}_window = {text}")
        if window.name.lower() in KEEPERS and self.query.output.events is EventType.CURRENT:
            self.writer.line(f"{name}_window.keeps = True")
        self.scope.cell(f"{name}_window.fresh()")
        self.builder.node(f"{name}_timer")

    def _entry(self, side: SideLayout) -> None:
        """Filters, then the window, then the probe."""
        w, name, source = self.writer, f"{self.name}_{side.label}", side.side.input
        whole, self.names = self.names, side.names
        probe = f"{name}_probe" if side.side.triggers else ""
        w.line()
        with w.block(f"def {name}_in(S, chunk)"):
            w.line("out = []")
            with w.block("for kind, ts, row in chunk"):
                done: set[str] = set()
                self.handlers((*source.before, *source.after), source.slot, done)
                if side.side.kind is StoreKind.WINDOW:
                    w.line("out.append((kind, ts, row))")
                elif source.window is None:
                    if probe:  # it comes and goes at once, in chunks of its own
                        w.line(f"{probe}(S, [(0, ts, row)])")
                        w.line(f"{probe}(S, [(1, rt.now, row)])")
                else:
                    w.line(f"{name}_window.push(S, ts, row, out)")
            if side.side.kind is StoreKind.STREAM:
                w.line(f"{name}_window.end(S, out)")
            if probe:
                with w.block("if out"):
                    w.line(f"{probe}(S, out)")
        self.names = whole
        if side.side.kind is StoreKind.STREAM:
            with w.block(f"def {name}_timer(S, due, payload)"):
                w.line("out = []")
                w.line(f"{name}_window.timer(S, due, payload, out)")
                if probe:
                    with w.block("if out"):
                        w.line(f"{probe}(S, out)")

    def _probe(self, mine: SideLayout, other: SideLayout) -> None:
        """What one event finds is a chunk of its own, selected once all have looked."""
        w = self.writer
        outer = self.source.kind is JoinKind.FULL or self.source.kind is (
            JoinKind.LEFT if mine.label == "l" else JoinKind.RIGHT
        )
        w.line()
        with w.block(f"def {self.name}_{mine.label}_probe(S, chunk)"):
            w.line("chunks = []")
            with w.block("for kind, ts, row in chunk"):
                with w.block("if kind == 2"):
                    w.line("chunks.append([(2, ts, row)])")
                    w.line("continue")
                w.line("out = []")
                with w.block(f"for other_ts, other in {self._content(mine, other)}"):
                    if self.source.on is not None:
                        with w.block(f"if not {self._condition(mine, other, self.source.on)}"):
                            w.line("continue")
                    w.line(f"out.append((kind, ts, {self._joined(mine, 'other')}))")
                if outer:
                    with w.block("if not out"):
                        w.line(f"out.append((kind, ts, {self._joined(mine, None, other)}))")
                w.line("chunks.append(out)")
            with w.block("for out in chunks"), w.block("if out"):
                w.line(f"{self.name}_select(S, out)")

    def _content(self, mine: SideLayout, other: SideLayout) -> str:
        """What the event at hand meets; a database gives only rows that the condition may take."""
        table = other.side.input.stream
        if other.side.kind is not StoreKind.TABLE or not is_stored(self.builder, table):
            return other.content
        resolve = self._resolve_sides(mine, other)
        slot = other.side.input.slot
        where = where_text(self.builder, table, slot, self.source.on, resolve)
        return f"{self.builder.store_name(table)}.content(S, {where})"

    def _joined(self, mine: SideLayout, found: str | None, other: SideLayout | None = None) -> str:
        rest = found or f"(None,) * {other.width if other else 0}"
        parts = ["row", rest] if mine.label == "l" else [rest, "row"]
        extras = []
        for slot, what, _ in self.extras:
            own = slot == mine.side.input.slot
            if what == IS_NULL:
                extras.append(str(not own and found is None))
            else:
                extras.append("ts" if own else ("other_ts" if found else "None"))
        if extras:
            parts.append(f"({', '.join(extras)},)")
        return " + ".join(parts)

    def _condition(self, mine: SideLayout, other: SideLayout, on: Expr) -> str:
        return ExprWriter(self.writer, self._resolve_sides(mine, other), self.tables).condition(on)

    def _resolve_sides(self, mine: SideLayout, other: SideLayout) -> Resolve:
        def resolve(expr: Expr) -> ExprText:
            if isinstance(expr, Field):
                source = "row" if expr.slot == mine.side.input.slot else "other"
                names = mine.names if source == "row" else other.names
                return ExprText(f"{source}[{names.positions[expr.slot, expr.name, None]}]")
            if isinstance(expr, SlotTime):
                return ExprText("ts" if expr.slot == mine.side.input.slot else "other_ts")
            if isinstance(expr, SlotIsNull):
                return ExprText("False", nullable=False)
            raise LookupError(f"no value for {expr!r}")

        return resolve
