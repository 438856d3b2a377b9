"""What a query does with its rows, as text: rate limit, tap, target."""

from __future__ import annotations

from edgewise.engines.kernel.exprs import Code, Exprs
from edgewise.engines.kernel.page import TAP, Page, Scope
from edgewise.engines.kernel.tables import in_table, table_name, table_resolve, test_text
from edgewise.engines.kernel.writer import local
from edgewise.plan.exprs import Agg, Expr, InTable, OutField, walk
from edgewise.plan.nodes import (
    DeleteFrom,
    EventType,
    InsertInto,
    Query,
    RateKind,
    RateLimit,
    Return,
    SetColumn,
    StateInput,
    StreamInput,
    UpdateOrInsert,
    UpdateTable,
)


class OutputCode:
    def __init__(self, page: Page, query: Query, name: str, scope: Scope) -> None:
        self.page = page
        self.query = query
        self.name = name
        self.scope = scope
        self.writer = page.writer

    def write(self) -> None:
        """`_out(S, chunk)`, behind a rate limit where there is one."""
        w, name, rate = self.writer, self.name, self.query.rate
        w.line()
        with w.block(f"def {name}_{'send' if rate else 'out'}(S, chunk)"):
            if rate is not None and rate.kind is RateKind.SNAPSHOT:
                self._only_wanted()
            if self.query.name in self.page.taps:
                w.line(f"emit({TAP + self.query.name!r}, chunk)")
            self._target()
        if rate is not None:
            self._limit(rate)

    def _only_wanted(self) -> None:
        events = self.query.output.events
        if events is not EventType.ALL:
            kind = 0 if events is EventType.CURRENT else 1
            self.writer.line(f"chunk = [r for r in chunk if r[0] == {kind}]")
            with self.writer.block("if not chunk"):
                self.writer.line("return")

    def _limit(self, rate: RateLimit) -> None:
        w, name = self.writer, self.name
        kind = f"{rate.kind.value}_{'events' if rate.events is not None else 'time'}"
        grouped = bool(self.query.select.group_by)
        size = rate.events if rate.events is not None else rate.every_ms
        more = ""
        if rate.kind is RateKind.SNAPSHOT:
            more = f", windowed={self._windowed()}, aggregates={self._aggregated()!r}"
        head = f"rt, {self.page.next_node}, {self.scope.next_cell}, {name}_send"
        w.line(f"{name}_rate = rate.LIMITS[{kind!r}]({head}, {size}, grouped={grouped}{more})")
        w.line(f"{name}_out = {name}_rate.push")
        self.scope.cell(f"{name}_rate.fresh()")
        self.scope.created.append(f"{name}_rate.created(S)")
        self.page.node(f"{name}_rate.timer")

    def _windowed(self) -> bool:
        source = self.query.input
        if isinstance(source, StreamInput):
            return source.window is not None or self.page.app.window(source.stream) is not None
        return not isinstance(source, StateInput)

    def _aggregated(self) -> tuple[int, ...]:
        """Places of the select list that hold aggregates."""
        return tuple(
            i
            for i, item in enumerate(self.query.select.items)
            if any(isinstance(n, Agg) for n in walk(item.expr))
        )

    def _target(self) -> None:
        match self.query.output:
            case InsertInto():
                self._insert(self.query.output)
            case DeleteFrom() | UpdateTable() | UpdateOrInsert():
                self._change(self.query.output)
            case Return():
                if self.query.name not in self.page.taps:
                    self.writer.line("pass")

    def _insert(self, output: InsertInto) -> None:
        w, page, target = self.writer, self.page, output.target
        if page.app.table(target) is not None:
            with w.block("for r in chunk"):
                w.line(f"{table_name(target)}.insert(r[2])")
            return
        plain = output.events is EventType.CURRENT and self.query.rate is None
        chunk = "chunk" if plain else "[(0, r[1], r[2]) for r in chunk]"
        if page.app.window(target) is not None:
            w.line(f"window_{local(target)}_in(rt.root, {chunk})")
            return
        if target in page.read():
            state = "S" if target.startswith("#") else "rt.root"
            state = "S" if not self.query.partition else state
            w.line(f"{page.stream_name(target, self.query.partition)}({state}, {chunk})")
        if not target.startswith("#"):
            w.line(f"emit({target!r}, chunk)")
        elif target not in page.read():
            w.line("pass")

    def _out_field(self, expr: Expr) -> Code:
        if isinstance(expr, OutField):
            names = [item.name for item in self.query.select.items]
            return Code(f"data[{names.index(expr.name)}]")
        raise LookupError(f"{expr!r} has no value in a table's condition")

    def _change(self, output: DeleteFrom | UpdateTable | UpdateOrInsert) -> None:
        w, page, target = self.writer, self.page, output.target
        table = table_name(target)
        test, key = test_text(page, target, output.on, self._out_field)
        with w.block("for r in chunk"):
            w.line("data = r[2]")
            if isinstance(output, DeleteFrom):
                w.line(f"{table}.delete({test}, {key})")
                return
            change = changed_row(page, target, output.assignments, self._out_field)
            call = f"{table}.update({test}, {change}, {key})"
            if isinstance(output, UpdateTable):
                w.line(call)
                return
            with w.block(f"if not {call}"):
                w.line(f"{table}.insert(data)")


def changed_row(
    page: Page, table: str, assignments: tuple[SetColumn, ...], resolve: object
) -> str:
    """A lambda from a row to the row after the assignments."""
    assert callable(resolve)
    inner = table_resolve(page, table, "t", resolve)

    def nested(expr: InTable, outer: object) -> str:
        assert callable(outer)
        return in_table(page, expr, outer)

    exprs = Exprs(page.writer, inner, nested)
    schema = page.schema(table)
    values = [f"t[{i}]" for i in range(len(schema.attributes))]
    for assignment in assignments:
        values[schema.index(assignment.column)] = exprs.value(assignment.value)
    return f"lambda t: ({', '.join(values)},)"
