"""Write what a query does with its rows: rate limit, tap, target."""

from __future__ import annotations

from edgewise.kernel.codegen.code_writer import tuple_text
from edgewise.kernel.codegen.expr_text import ExprText, ExprWriter, Resolve
from edgewise.kernel.codegen.fragment_builder import TAP, FragmentBuilder, StateScope
from edgewise.kernel.codegen.row_layout import key_of
from edgewise.kernel.codegen.table_access import in_table, table_resolve, test_text
from edgewise.plan.exprs import Agg, Expr, InTable, OutField, SlotTime, walk
from edgewise.plan.nodes import (
    DeleteFrom,
    EventType,
    InsertInto,
    JoinInput,
    Query,
    RateKind,
    RateLimit,
    Return,
    SetColumn,
    StateInput,
    StreamInput,
    UpdateOrInsert,
    UpdateTable,
    state_leaves,
)


class OutputWriter:
    def __init__(
        self, builder: FragmentBuilder, query: Query, name: str, scope: StateScope
    ) -> None:
        self.builder = builder
        self.query = query
        self.name = name
        self.scope = scope
        self.writer = builder.writer

    def write(self) -> None:
        """`_out(S, chunk)`, behind a rate limit where there is one."""
        w, name, rate = self.writer, self.name, self.query.rate
        w.line()
        with w.block(f"def {name}_{'send' if rate else 'out'}(S, chunk)"):
            if rate is not None and rate.kind is RateKind.SNAPSHOT:
                self._only_wanted()
            if self.query.name in self.builder.taps:
                shown = "chunk"
                if carried(self.query):
                    shown = f"[(r[0], r[1], r[2][:{self._width}]) for r in chunk]"
                w.line(f"emit({TAP + self.query.name!r}, {shown})")
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
        head = f"rt, {self.builder.next_node}, {self.scope.next_cell}, {name}_send"
        w.line(f"{name}_rate = rate.LIMITS[{kind!r}]({head}, {size}, grouped={grouped}{more})")
        w.line(f"{name}_out = {name}_rate.push")
        self.scope.cell(f"{name}_rate.fresh()")
        self.scope.created.append(f"{name}_rate.created(S)")
        self.builder.node(f"{name}_rate.timer")

    def _windowed(self) -> bool:
        source = self.query.input
        if isinstance(source, StreamInput):
            return source.window is not None or self.builder.app.window(source.stream) is not None
        return not isinstance(source, StateInput)

    def _aggregated(self) -> tuple[int, ...]:
        """Places of the select list that hold aggregates.

        Where all do, what is carried behind them is of the newest row as they are.
        """
        found = [
            i
            for i, item in enumerate(self.query.select.items)
            if any(isinstance(n, Agg) for n in walk(item.expr))
        ]
        if len(found) == self._width:
            found += range(self._width, self._width + len(carried(self.query)))
        return tuple(found)

    @property
    def _width(self) -> int:
        return len(self.query.select.items)

    def _target(self) -> None:
        match self.query.output:
            case InsertInto():
                self._insert(self.query.output)
            case DeleteFrom() | UpdateTable() | UpdateOrInsert():
                self._change(self.query.output)
            case Return():
                if self.query.name not in self.builder.taps:
                    self.writer.line("pass")

    def _insert(self, output: InsertInto) -> None:
        w, builder, target = self.writer, self.builder, output.target
        if builder.app.table(target) is not None:
            with w.block("for r in chunk"):
                w.line(f"{builder.store_name(target)}.insert(r[2])")
            return
        plain = output.events is EventType.CURRENT and self.query.rate is None
        chunk = "chunk" if plain else "[(0, r[1], r[2]) for r in chunk]"
        if builder.app.window(target) is not None:
            w.line(f"{builder.store_name(target)}_in(rt.root, {chunk})")
            return
        if target.startswith("#"):
            if builder.reads_inside(target, self.query.partition):
                w.line(f"{builder.stream_name(target, self.query.partition)}(S, {chunk})")
            else:
                w.line("return")
            return
        if target in builder.read():
            state = "rt.root" if self.query.partition else "S"
            w.line(f"{builder.stream_name(target)}({state}, {chunk})")
        w.line(f"emit({target!r}, chunk)")

    def _read_row(self, expr: Expr) -> ExprText:
        """A value of the query's row `data`: of its select list, or carried behind it."""
        if isinstance(expr, SlotTime) and not expr.slot:
            return ExprText("ts", nullable=False)
        items = self.query.select.items
        held = [i.name if isinstance(expr, OutField) else i.expr for i in items]
        held += carried(self.query)
        return ExprText(f"data[{held.index(expr.name if isinstance(expr, OutField) else expr)}]")

    def _change(self, output: DeleteFrom | UpdateTable | UpdateOrInsert) -> None:
        w, builder, target = self.writer, self.builder, output.target
        table = builder.store_name(target)
        test, key = test_text(builder, target, output.on, self._read_row)
        with w.block("for r in chunk"):
            w.line("ts, data = r[1], r[2]")
            if isinstance(output, DeleteFrom):
                w.line(f"{table}.delete({test}, {key})")
                return
            change = changed_row(builder, target, output.assignments, self._read_row)
            call = f"{table}.update({test}, {change}, {key})"
            if isinstance(output, UpdateTable):
                w.line(call)
                return
            with w.block(f"if not {call}"):
                shown = f"data[:{self._width}]" if carried(self.query) else "data"
                w.line(f"{table}.insert({shown})")


def carried(query: Query) -> tuple[Expr, ...]:
    """What the condition and assignments of a table read of the input beside the select list.

    It stands behind the items of a row until the table is changed: `from S select k update T set
    T.v = S.v on T.k == k`.
    """
    match query.output:
        case DeleteFrom(on=on):
            exprs = [on]
        case UpdateTable(on=on, assignments=sets) | UpdateOrInsert(on=on, assignments=sets):
            exprs = [on, *(s.value for s in sets)]
        case _:
            return ()
    slots = _input_slots(query) - {query.output.target}
    shown = [item.expr for item in query.select.items]
    found = [n for e in exprs if e is not None for n in walk(e) if n not in shown]
    keys = [(n, key_of(n)) for n in found]
    return tuple(dict.fromkeys(n for n, key in keys if key is not None and key[0] in slots))


def _input_slots(query: Query) -> set[str]:
    match query.input:
        case StreamInput(slot=slot):
            return {slot}
        case JoinInput(left=left, right=right):
            return {left.input.slot, right.input.slot}
        case StateInput(state=state):
            return {leaf.slot for leaf in state_leaves(state)}


def changed_row(
    builder: FragmentBuilder, table: str, assignments: tuple[SetColumn, ...], resolve: Resolve
) -> str:
    """A lambda from a row to the row after the assignments."""
    row = builder.writer.temporary()
    inner = table_resolve(builder, table, row, resolve)

    def nested(expr: InTable, outer: Resolve) -> str:
        return in_table(builder, expr, outer)

    exprs = ExprWriter(builder.writer, inner, nested)
    schema = builder.schema(table)
    values = [f"{row}[{i}]" for i in range(len(schema.attributes))]
    for assignment in assignments:
        values[schema.index(assignment.column)] = exprs.value(assignment.value)
    return f"lambda {row}: {tuple_text(values)}"
