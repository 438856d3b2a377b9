"""Write the selector: group, aggregate, project, having, order, limit, one chunk at a time.

With an aggregate one chunk gives only its last row, with `group by` the last row of each group in
order of first appearance; without either, every row passes. An expired row shows its aggregates
after the subtraction. A group that holds nothing any more is dropped.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from edgewise.kernel.codegen.aggregates import AggregateText, aggregate
from edgewise.kernel.codegen.code_writer import CodeWriter, tuple_text
from edgewise.kernel.codegen.expr_text import ExprText, ExprWriter, Tables
from edgewise.kernel.codegen.name_allocator import Local, LocalNames
from edgewise.kernel.codegen.row_layout import RowLayout
from edgewise.kernel.codegen.row_text import RowSink
from edgewise.kernel.runtime import CURRENT, EXPIRED, Chunk
from edgewise.plan.exprs import Agg, Expr, Field, OutField, walk
from edgewise.plan.nodes import EventType, OrderBy, Select


@dataclass(slots=True)
class SelectWriter:
    """Writes the body of a selector's loop. `cell` is where its groups live."""

    writer: CodeWriter
    select: Select
    names: RowLayout
    events: EventType
    cell: int
    only_current: bool  # no window: nothing ever expires
    tables: Tables
    carried: tuple[Expr, ...] = ()  # stands behind the items, for the output
    keep_group: bool = False  # rows carry their group, for a rate limit that counts by group
    each_row: bool = False  # every row of a chunk comes out, not only the last
    in_turn: bool = False  # rows leave in the order they came
    uneven: bool = False  # what leaves need not be what came: joins look at what is there then
    aggs: dict[Agg, AggregateText] = field(default_factory=dict)
    outputs: LocalNames = field(default_factory=lambda: LocalNames(Local.OUTPUT))

    @property
    def aggregates(self) -> bool:
        return bool(self._found())

    @property
    def stateful(self) -> bool:
        return self.aggregates

    def _found(self) -> list[Agg]:
        exprs = [i.expr for i in self.select.items]
        if self.select.having is not None:
            exprs.append(self.select.having)
        return list(dict.fromkeys(n for e in exprs for n in walk(e) if isinstance(n, Agg)))

    def expressions(self) -> list[Expr]:
        select = self.select
        having = [select.having] if select.having is not None else []
        return [*self._values(), *select.group_by, *having]

    def _values(self) -> list[Expr]:
        """What a row holds: the items, what its output reads beside them, what orders it."""
        return [*(i.expr for i in self.select.items), *self.carried, *self._hidden()]

    def _hidden(self) -> list[Field]:
        """What rows are ordered by and do not show; it stands behind the items till then."""
        shown = [i.expr for i in self.select.items]
        found = (o.field for o in self.select.order_by if isinstance(o.field, Field))
        return [f for f in dict.fromkeys(found) if f not in shown]

    def before_loop(self) -> None:
        w = self.writer
        if self.aggregates:
            w.line(f"{'groups' if self.select.group_by else 'G'} = S[{self.cell}]")
        if self.each_row:
            w.line("out = []")
        elif self.select.group_by:
            w.line("out = {}")
        elif self.aggregates:
            w.line("out = None")
        else:
            w.line("out = []")

    def reset(self) -> None:
        """What a reset does, inside the loop."""
        if not self.aggregates:
            return
        self._prepare()
        w = self.writer
        if self.select.group_by:
            w.line("groups.clear()")
        else:
            self._clear_cells()

    def _clear_cells(self) -> None:
        at = 1
        self.writer.line("G[0] = 0")
        for code in self.aggs.values():
            for i, start in enumerate(code.start):
                self.writer.line(f"G[{at + i}] = {start}")
            at += len(code.start)

    def start_cells(self) -> str:
        self._prepare()
        return f"[{', '.join(['0', *(s for c in self.aggs.values() for s in c.start)])}]"

    def _prepare(self) -> None:
        """Cell 0 of a group counts the rows inside; aggregates follow."""
        if self.aggs:
            return
        at = 1
        exprs = ExprWriter(self.writer, self._resolve, self.tables)
        for agg in self._found():
            args = tuple(exprs.value(a) for a in agg.args)
            named = tuple(a if a.isidentifier() else f"arg{at}_{i}" for i, a in enumerate(args))
            self.aggs[agg] = aggregate(
                self.writer,
                agg,
                named,
                at,
                uneven=self.uneven,
                in_turn=self.in_turn,
                only_added=self.only_current,
            )
            at += len(self.aggs[agg].start)

    def body(self) -> None:
        """One row: `kind`, `ts` and the unpacked attributes are there."""
        w, select = self.writer, self.select
        exprs = ExprWriter(w, self._resolve, self.tables)
        if select.group_by:
            keys = [self.names.code(f).text for f in select.group_by]
            w.line(f"group = {keys[0] if len(keys) == 1 else tuple_text(keys)}")
        if self.aggregates:
            self._accumulate(exprs)
        items = [exprs.value(e) for e in self._values()]
        guards = [*self._guards(), *self._having(exprs, items)]
        data = tuple_text(items)
        kind = "0" if self.only_current else "kind"
        group = (", group" if select.group_by else ", None") if self.keep_group else ""
        made = f"({kind}, ts, {data}{group})"
        if self.each_row:
            text = f"out.append({made})"
        elif select.group_by:
            text = f"out[group] = {made}"
        elif self.aggregates:
            text = f"out = {made}"
        else:
            text = f"out.append({made})"
        if guards:
            with w.block(f"if {' and '.join(guards)}"):
                w.line(text)
        else:
            w.line(text)
        if self.aggregates and select.group_by and not self.only_current:
            self._forget()

    def _having(self, exprs: ExprWriter, items: list[str]) -> list[str]:
        """The condition, with locals for the items it reads."""
        having = self.select.having
        if having is None:
            return []
        outs = {n.name for n in walk(having) if isinstance(n, OutField)}
        for i, item in enumerate(self.select.items):
            if item.name in outs:
                name = self._output(item.name)
                self.writer.line(f"{name} = {items[i]}")
                items[i] = name
        return [exprs.condition(having)]

    def _guards(self) -> list[str]:
        if self.only_current or self.events is EventType.ALL:
            return [] if self.events is not EventType.EXPIRED else ["False"]
        return ["kind == 0" if self.events is EventType.CURRENT else "kind == 1"]

    def _accumulate(self, exprs: ExprWriter) -> None:
        self._prepare()
        w = self.writer
        if self.select.group_by:
            w.line("G = groups.get(group)")
            with w.block("if G is None"):
                w.line(f"G = groups[group] = {self.start_cells()}")
        self._arguments(exprs)
        if self.only_current:
            self._lines("add")
            return
        with w.block("if kind == 0"):
            w.line("G[0] += 1")
            self._lines("add")
        with w.block("else"):
            w.line("G[0] -= 1")
            self._lines("subtract")

    @property
    def may_gather(self) -> bool:
        """Groups with aggregates, current rows only, nothing that looks at each row."""
        return (
            self.aggregates
            and bool(self.select.group_by)
            and self.select.having is None
            and self.events is EventType.CURRENT
            and not self.each_row
            and not self.keep_group
        )

    def grouping(self) -> list[Expr]:
        """What must be known of each row; the rest is read from the last of a group."""
        return [*self.select.group_by, *(a for agg in self._found() for a in agg.args)]

    def gather(self) -> None:
        """One row into its group; the last current row of each is remembered."""
        w = self.writer
        keys = [self.names.code(f).text for f in self.select.group_by]
        w.line(f"group = {keys[0] if len(keys) == 1 else tuple_text(keys)}")
        self._accumulate(ExprWriter(w, self._resolve, self.tables))
        with w.block("if kind == 0"):
            w.line("out[group] = (ts, row)")
        if not any(code.forever for code in self.aggs.values()):
            with w.block("elif not G[0]"):
                w.line("del groups[group]")

    def project(self) -> None:
        """The row of a group, from its last current row and all it gathered."""
        w = self.writer
        exprs = ExprWriter(w, self._resolve, self.tables)
        w.line("G = groups[group]")
        items = [exprs.value(e) for e in self._values()]
        w.line(f"out[group] = (0, ts, {tuple_text(items)})")

    def step(self, verb: str) -> None:
        """Straight-line: one row added to, or subtracted from, its group."""
        w, select = self.writer, self.select
        exprs = ExprWriter(w, self._resolve, self.tables)
        if select.group_by:
            keys = [self.names.code(f).text for f in select.group_by]
            w.line(f"group = {keys[0] if len(keys) == 1 else tuple_text(keys)}")
            w.line("G = groups.get(group)")
            if verb == "add":
                with w.block("if G is None"):
                    w.line(f"G = groups[group] = {self.start_cells()}")
        self._arguments(exprs)
        w.line(f"G[0] {'+' if verb == 'add' else '-'}= 1")
        self._lines(verb)
        if verb == "subtract" and select.group_by:
            self._forget()

    def emit(self, sink: RowSink) -> None:
        """Straight-line: the row that was just added."""
        w = self.writer
        items, guards = self.row_values()
        made = sink.write(tuple_text(items))
        if guards:
            with w.block(f"if {' and '.join(guards)}"):
                w.line(made)
        else:
            w.line(made)

    def row_values(self) -> tuple[list[str], list[str]]:
        """The texts of the row that was just added, and of the conditions on it."""
        exprs = ExprWriter(self.writer, self._resolve, self.tables)
        items = [exprs.value(i.expr) for i in self.select.items]
        return items, self._having(exprs, items)

    def _arguments(self, exprs: ExprWriter) -> None:
        at = 1
        for agg, code in self.aggs.items():
            for i, arg in enumerate(agg.args):
                text = exprs.value(arg)
                if not text.isidentifier():
                    self.writer.line(f"arg{at}_{i} = {text}")
            at += len(code.start)

    def _lines(self, verb: str) -> None:
        for code in self.aggs.values():
            for text in code.add if verb == "add" else code.subtract:
                self.writer.line(text)

    def _forget(self) -> None:
        if any(code.forever for code in self.aggs.values()):
            return
        empty = f"G[1:] == {self.start_cells()}[1:]" if self.uneven else "not G[0]"
        with self.writer.block(f"if {empty}"):
            self.writer.line("del groups[group]")

    def after_loop(self, deliver: str) -> None:
        """Hand the chunk on as `deliver(S, rows)`."""
        w, select = self.writer, self.select
        rows = "out"
        if self.each_row:
            pass
        elif select.group_by:
            rows = "list(out.values())"
        elif self.aggregates:
            rows = "[out]"
        if select.order_by or select.limit is not None or select.offset is not None:
            order = tuple(self._order(o) for o in select.order_by)
            width = f", {len(select.items) + len(self.carried)}" if self._hidden() else ""
            rows = f"arrange({rows}, {order!r}, {select.limit!r}, {select.offset!r}{width})"
        with w.block("if out"):
            w.line(f"{deliver}(S, {rows})")

    def _order(self, order: OrderBy) -> tuple[int, bool]:
        if isinstance(order.field, OutField):
            names = [i.name for i in self.select.items]
            return names.index(order.field.name), order.descending
        return self._values().index(order.field), order.descending

    def _output(self, name: str) -> str:
        """The local of a select item."""
        return self.outputs.allocate(name, name)

    def _resolve(self, expr: Expr) -> ExprText:
        match expr:
            case OutField():
                return ExprText(self._output(expr.name))
            case Agg():
                return ExprText(self.aggs[expr].value)
            case _:
                return self.names.code(expr)


def arrange(
    rows: Chunk,
    order: tuple[tuple[int, bool], ...],
    limit: int | None,
    offset: int | None,
    width: int | None = None,
) -> Chunk:
    """Order by, offset and limit inside one chunk; rows are cut to `width` once they are ordered.

    Rows of one kind that stand together are sorted together. Expired rows count against the limit
    and are never cut by it.
    """
    if order:
        rows = _sorted_runs(rows, order)
    if width is not None:
        rows = [(row[0], row[1], row[2][:width], *row[3:]) for row in rows]
    if offset:
        rows = rows[offset:]
    if limit is None:
        return rows
    kept: Chunk = []
    for row in rows:
        if row[0] == EXPIRED or len(kept) < limit:
            kept.append(row)
    return kept


def _sorted_runs(rows: Chunk, order: tuple[tuple[int, bool], ...]) -> Chunk:
    done: Chunk = []
    run: Chunk = []
    for row in rows:
        if run and run[0][0] != row[0]:
            done += _sorted(run, order)
            run = []
        run.append(row)
    return done + _sorted(run, order)


def _sorted(run: Chunk, order: tuple[tuple[int, bool], ...]) -> Chunk:
    """Stable, by the last term first; null comes before every value."""
    for position, descending in reversed(order):
        run = sorted(
            run,
            key=lambda r: (r[2][position] is not None, r[2][position]),
            reverse=descending,
        )
    return run


assert CURRENT == 0, "generated text writes kinds as numbers"
