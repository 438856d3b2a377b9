"""Write pattern and sequence queries: tests of elements, their wiring, a match as a row."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

from edgewise.event.types import AttrType
from edgewise.kernel.codegen.code_writer import tuple_text
from edgewise.kernel.codegen.expr_text import ExprText, ExprWriter
from edgewise.kernel.codegen.fragment_builder import FragmentBuilder
from edgewise.kernel.codegen.query_output import carried
from edgewise.kernel.codegen.row_layout import IS_NULL, TIME, Key, RowLayout, key_of, keys_of
from edgewise.kernel.codegen.stream_query import QueryWriter
from edgewise.plan.exprs import Expr, Field, SlotIsNull, SlotTime
from edgewise.plan.nodes import (
    AbsentState,
    ChainState,
    CountState,
    EventType,
    EveryState,
    Filter,
    LogicalState,
    Query,
    State,
    StateInput,
    StateKind,
    StreamState,
    state_leaves,
    streams_of,
)
from edgewise.plan.rules.pattern_conditions import ElementCondition, split_conditions


@dataclass(frozen=True, slots=True)
class ElementRange:
    """The first and last element of a part of the tree, by position."""

    first: int
    last: int


class PatternQueryWriter(QueryWriter):
    def __init__(self, builder: FragmentBuilder, query: Query, source: StateInput) -> None:
        self.source = source
        leaves = state_leaves(source.state)
        self.schemas = {leaf.slot: builder.schema(leaf.stream, query.partition) for leaf in leaves}
        self.counted = {s.state.slot for s in _parts(source.state) if isinstance(s, CountState)}
        select = query.select
        items = [i.expr for i in select.items]
        wanted = dict.fromkeys(keys_of(*items, *select.group_by, select.having, *carried(query)))
        super().__init__(builder, query, RowLayout(wanted))
        self.positions: dict[str, int] = {}  # slot -> position, in the order elements are made
        self.lines: list[str] = []
        self.order: list[int] = []
        self.streams: dict[str, list[int]] = {}
        self.starts: list[int] = []
        self.conditions = split_conditions(source.state)
        self.timeouts = query.output.events is EventType.TIMEOUT
        if self.timeouts:  # delivered as they happen: from here on they are rows like any other
            output = dataclasses.replace(query.output, events=EventType.CURRENT)
            self.query = self.output.query = dataclasses.replace(query, output=output)

    def write(self) -> None:
        w, name, source = self.writer, self.name, self.source
        self.output.write()
        select = self.selector(only_current=False)
        self.select_function(select, (), "")
        w.line()
        sequence = source.kind is StateKind.SEQUENCE
        node, cell = self.builder.next_node, self.scope.next_cell
        within = f"within={source.within_ms!r}"
        if source.within_ms is not None and self.builder.given(streams_of(source)):
            within += ", by_clock=True"
        w.line(
            f"{name}_machine = m = pat.Machine(rt, {node}, {cell}, sequence={sequence}, {within})"
        )
        self._number(source.state)
        group = self._wire(source.state, start=True)
        self.lines.append(f"e[{group.first}].answers = e[{group.last}]")
        for line in self.lines:
            w.line(line)
        self._match_row()
        with w.block(f"def {name}_whole(S, ts, slots)"):
            w.line(f"{name}_select(S, [(0, ts, {name}_row(slots))])")
        w.line(f"m.starts, m.deliver = {self.starts!r}, {name}_whole")
        if self.timeouts:
            w.line("m.deliver_timeouts()")
        self._bounds()
        w.line(f"m.order = [e[i] for i in {self.order!r}]")
        streams = ", ".join(
            f"{s!r}: [e[i] for i in {positions!r}]" for s, positions in self.streams.items()
        )
        w.line(f"m.by_stream = {{{streams}}}")
        with w.block("for x in e"):
            w.line("x.wired()")
        if self.scope.partition is None:
            w.line(f"rt.idle[{cell}] = {name}_machine.idle")
        self.scope.cell(f"{name}_machine.fresh_cells()")
        self.scope.created.append(f"{name}_machine.created(S)")
        self.builder.node(f"{name}_machine.timer")
        for stream in self.streams:
            w.line()
            with (
                w.block(f"def {self.entry(stream)}(S, chunk)"),
                w.block("for _, ts, row in chunk"),
            ):
                self._skip_useless(stream)
                w.line(f"{name}_machine.event(S, {stream!r}, ts, row)")

    def _skip_useless(self, stream: str) -> None:
        """An event that suits no element by itself changes nothing."""
        wanted = self.suits(stream)
        if wanted is None:
            return
        names = self.builder.schema(stream, self.query.partition).names
        read = [n for n in names if n in {k[1] for own in wanted for k in keys_of(*own)}]
        values = {n: f"x{i}" for i, n in enumerate(read)}
        self.writer.assign(values.values(), (f"row[{names.index(n)}]" for n in read))
        with self.writer.block(f"if not ({self.suits_text(wanted, values)})"):
            self.writer.line("continue")

    def suits(self, stream: str) -> list[tuple[Expr, ...]] | None:
        """Conditions of which an event must meet one to be of use; None where any event may be.

        Where `every (..)` starts again because its match grew old, any event may say that it did.
        """
        if self.source.kind is StateKind.SEQUENCE or self.timeouts:
            return None
        parts = _parts(self.source.state)
        if self.source.within_ms is not None and any(_may_restart(p) for p in parts):
            return None
        leaves = state_leaves(self.source.state)
        if any(isinstance(leaf, AbsentState) for leaf in leaves if self._starts(leaf)):
            return None
        found = [self.conditions[leaf.slot] for leaf in leaves if leaf.stream == stream]
        plain = all(isinstance(h, Filter) for leaf in leaves for h in leaf.handlers)
        if not plain or not all(c.own and c.pure for c in found):
            return None
        return [c.own for c in found]

    def suits_text(self, wanted: list[tuple[Expr, ...]], values: Mapping[str, str]) -> str:
        """The test of `suits`, over these names of the event's values."""

        def resolve(expr: Expr) -> ExprText:
            assert isinstance(expr, Field)
            return ExprText(values[expr.name])

        exprs = ExprWriter(self.writer, resolve, self.tables)
        tests = [" and ".join(exprs.condition(c) for c in own) for own in dict.fromkeys(wanted)]
        return " or ".join(tests)

    def _starts(self, leaf: StreamState | AbsentState) -> bool:
        return self.positions[leaf.slot] in self.starts

    def _bounds(self) -> None:
        """What is declared; and the keys of a fragment free themselves."""
        kept, wanted = self.query.state, []
        if kept is not None:
            wanted = [f"limit={kept.limit!r}", f"idle={kept.idle_ms!r}"]
        own_key = self.builder.fragment.keyed and self.scope.partition is None
        if own_key and self.source.within_ms is not None and not self.timeouts:
            wanted.append("prune=True")
        if wanted:
            self.writer.line(f"bounds.Bounds(m, {self.query.name!r}, {', '.join(wanted)})")

    def entry(self, stream: str) -> str:
        return f"{self.name}_in_{[*self.streams].index(stream)}"

    def _number(self, state: State) -> None:
        """Places in the order elements are made."""
        for part in _parts(state):
            match part:
                case StreamState() | AbsentState():
                    self.positions.setdefault(part.slot, len(self.positions))
                case LogicalState():
                    for side in _sides(part):
                        self.positions.setdefault(side.slot, len(self.positions))
        self.lines.append("e = m.elements")

    def _wire(self, state: State, *, start: bool) -> ElementRange:
        match state:
            case StreamState():
                return self._make(state, "pat.Element(m, {test}, start={start})", start=start)
            case AbsentState():
                text = f"ab.Absent(m, {{test}}, start={{start}}, waiting={state.waiting_ms})"
                return self._make(state, text, start=start)
            case CountState():
                limits = f"least={state.least}, most={state.most!r}"
                text = f"el.Counted(m, {{test}}, start={{start}}, {limits})"
                return self._make(state.state, text, start=start)
            case LogicalState():
                return self._logical(state, start=start)
            case EveryState():
                group = self._wire(state.state, start=start)
                self._every(group)
                inside = [self.positions[leaf.slot] for leaf in state_leaves(state.state)]
                for position in inside:
                    self.lines.append(f"e[{position}].around = e[{group.first}]")
                return group
            case ChainState():
                return self._chain(state, start=start)

    def _every(self, group: ElementRange) -> None:
        for last in self._twins(group.last):
            self.lines.append(f"e[{last}].every = e[{group.first}]")

    def _twins(self, position: int) -> list[int]:
        """An element, or both sides of a logical pair."""
        for part in _parts(self.source.state):
            if isinstance(part, LogicalState):
                pair = [self.positions[side.slot] for side in _sides(part)]
                if position in pair:
                    return pair
        return [position]

    def _chain(self, state: ChainState, *, start: bool) -> ElementRange:
        groups = [self._wire(s, start=start and i == 0) for i, s in enumerate(state.states)]
        for before, after in pairwise(groups):
            for last in self._twins(before.last):
                self.lines.append(f"e[{last}].next = e[{after.first}]")
        return ElementRange(groups[0].first, groups[-1].last)

    def _logical(self, state: LogicalState, *, start: bool) -> ElementRange:
        for side in _sides(state):
            kind, more = "el.Logical", f", op={state.op!r}"
            if isinstance(side, AbsentState):
                kind, more = "ab.AbsentLogical", f"{more}, waiting={side.waiting_ms!r}"
            self._make(side, f"{kind}(m, {{test}}, start={{start}}{more})", start=start)
        right, left = (self.positions[side.slot] for side in _sides(state))
        self.lines.append(f"e[{left}].partner, e[{right}].partner = e[{right}], e[{left}]")
        self.order.remove(left)  # the right side begins, resets and updates both
        return ElementRange(left, right)

    def _make(self, leaf: StreamState | AbsentState, text: str, *, start: bool) -> ElementRange:
        position = self.positions[leaf.slot]
        condition = self.conditions[leaf.slot]
        if self.source.kind is StateKind.SEQUENCE or "ab.AbsentLogical" in text:
            condition = ElementCondition(cross=(*condition.own, *condition.cross))
        test = self._function(leaf, "test", "slots, ts, row", condition.cross)
        self.lines.append(text.format(test=test or "pat.always", start=start))
        own = self._function(leaf, "own", "ts, row", condition.own)
        if own:
            self.lines.append(f"e[{position}].own = {own}")
        if condition.keys or condition.bounds:
            self.lines.append(f"e[{position}].lookup = {self._lookup(leaf, condition)}")
        if self._is_last(leaf):
            self.lines.append(f"e[{position}].last = True")
        self.order.append(position)
        self.streams.setdefault(leaf.stream, []).append(position)
        if start:
            self.starts.append(position)
        return ElementRange(position, position)

    def _lookup(self, leaf: StreamState | AbsentState, condition: ElementCondition) -> str:
        """Where the matches that an event may suit are found."""
        given = []
        if condition.keys:
            mine, theirs = zip(*condition.keys, strict=True)
            given.append(f"match_key={self._values(leaf, 'match_key', 'match', theirs)}")
            given.append(f"event_key={self._values(leaf, 'event_key', 'ts, row', mine)}")
        if condition.value is not None:
            value = self._values(leaf, "match_value", "match", (condition.value,))
            given.append(f"match_value={value}")
            bounds = [
                f"({op!r}, {self._values(leaf, f'bound{i}', 'ts, row', (expr,))})"
                for i, (op, expr) in enumerate(condition.bounds)
            ]
            given.append(f"bounds={tuple_text(bounds)}")
        return f"wait.Lookup({', '.join(given)})"

    def _is_last(self, leaf: StreamState | AbsentState) -> bool:
        state: State = self.source.state
        while True:
            match state:
                case ChainState():
                    state = state.states[-1]
                case EveryState() | CountState():
                    state = state.state
                case LogicalState():
                    return leaf in {state.left, state.right}
                case _:
                    return leaf == state

    def _function(
        self, leaf: StreamState | AbsentState, kind: str, args: str, parts: tuple[Expr, ...]
    ) -> str:
        """The name of a function that says whether all of these conditions hold; '' for none."""
        if not parts:
            return ""
        name = f"{self.name}_{kind}{self.positions[leaf.slot]}"
        lines, exprs = self._reading(leaf)
        text = " and ".join(exprs.condition(c) for c in parts)
        with self.writer.block(f"def {name}({args})"):
            for line in lines:
                self.writer.line(line)
            self.writer.line(f"return {text}")
        return name

    def _values(
        self, leaf: StreamState | AbsentState, kind: str, args: str, parts: tuple[Expr, ...]
    ) -> str:
        """The name of a function that gives these values; None where one of them is null."""
        name, w = f"{self.name}_{kind}{self.positions[leaf.slot]}", self.writer
        lines, exprs = self._reading(leaf)
        values = [exprs.value(e) for e in parts]
        with w.block(f"def {name}({args})"):
            if args == "match":
                w.line("slots = match.slots")
            for line in lines:
                w.line(line)
            if len(values) == 1:
                w.line(f"return {values[0]}")
            else:
                w.line(f"key = {tuple_text(values)}")
                w.line("return None if None in key else key")
        return name

    def _reading(self, leaf: StreamState | AbsentState) -> tuple[list[str], ExprWriter]:
        """A writer of expressions, and the lines that set what they read."""
        names: dict[Key, str] = {}
        lines: list[str] = []

        def resolve(expr: Expr) -> ExprText:
            key = key_of(expr)
            if key is None:
                return ExprText("ts", nullable=False)
            if key not in names:
                names[key] = f"x{len(names)}"
                lines.append(f"{names[key]} = {self._value(expr, leaf.slot)}")
            return ExprText(names[key], nullable=not isinstance(expr, SlotIsNull | SlotTime))

        return lines, ExprWriter(self.writer, resolve, self.tables)

    def _value(self, expr: Expr, own: str = "") -> str:
        """The text of a value of a match. Inside its own test an element's event is `row`."""
        assert isinstance(expr, Field | SlotIsNull | SlotTime)
        slot = expr.slot
        if slot == own and expr.index is None and isinstance(expr, Field):
            return f"row[{self.schemas[slot].index(expr.name)}]"
        if slot == own and expr.index is None and isinstance(expr, SlotTime):
            return "ts"
        index = expr.index
        if slot == own and index is not None and index < 0:
            index -= 1  # the event at hand is already in
        taken = f"slots[{self.positions[slot]}]"
        if index is None and slot in self.counted and isinstance(expr, Field):
            return f"wait.values({taken}, {self.schemas[slot].index(expr.name)})"
        event = f"wait.at({taken}, {index or 0})"
        if isinstance(expr, SlotIsNull):
            return f"({event} is None)"
        picks = (
            "[0]" if isinstance(expr, SlotTime) else f"[1][{self.schemas[slot].index(expr.name)}]"
        )
        if index in {None, 0}:
            return f"({taken}[0]{picks} if {taken} else None)"
        return f"(event{picks} if (event := {event}) else None)"

    def _match_row(self) -> None:
        """What the selector sees: every value of a match that the query uses."""
        w = self.writer
        values = [self._value(_expr(key)) for key in self.names.positions]
        with w.block(f"def {self.name}_row(slots)"):
            w.line(f"return {tuple_text(values)}")


def _expr(key: Key) -> Expr:
    slot, name, index = key
    if name == IS_NULL:
        return SlotIsNull(slot, index)
    if name == TIME:
        return SlotTime(slot, index)
    return Field(AttrType.OBJECT, slot, name, index)


def _sides(state: LogicalState) -> tuple[StreamState | AbsentState, StreamState | AbsentState]:
    """The side made first and the one that takes what comes before: the absent one, if any."""
    if isinstance(state.right, AbsentState) and not isinstance(state.left, AbsentState):
        return state.left, state.right
    return state.right, state.left


def _parts(state: State) -> list[State]:
    """The tree, parents first; sides of a logical pair are not taken apart."""
    match state:
        case ChainState():
            return [state, *(p for s in state.states for p in _parts(s))]
        case EveryState() | CountState():
            return [state, *_parts(state.state)]
        case _:
            return [state]


def _may_restart(part: State) -> bool:
    """A group, or a count, that waits under `every` for more events than one."""
    return isinstance(part, EveryState) and not isinstance(part.state, StreamState)
