"""Pattern and sequence queries as text: the tests of elements, their wiring, a match as a row."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from itertools import pairwise

from edgewise.engines.kernel.exprs import Code, Exprs
from edgewise.engines.kernel.names import IS_NULL, TIME, Key, Names, key_of, keys_of
from edgewise.engines.kernel.page import Page
from edgewise.engines.kernel.queries import QueryCode
from edgewise.engines.kernel.writer import local
from edgewise.event.types import AttrType
from edgewise.plan.exprs import And, Expr, Field, SlotIsNull, SlotTime
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


@dataclass(frozen=True, slots=True)
class Group:
    """The first and last element of a part of the tree, by place."""

    first: int
    last: int


class PatternQuery(QueryCode):
    def __init__(self, page: Page, query: Query, source: StateInput) -> None:
        self.source = source
        leaves = state_leaves(source.state)
        self.schemas = {leaf.slot: page.schema(leaf.stream, query.partition) for leaf in leaves}
        self.counted = {s.state.slot for s in _parts(source.state) if isinstance(s, CountState)}
        select = query.select
        wanted = dict.fromkeys(
            keys_of(*(i.expr for i in select.items), *select.group_by, select.having)
        )
        super().__init__(page, query, Names(wanted))
        self.places: dict[str, int] = {}  # slot -> place, in the order elements are made
        self.lines: list[str] = []
        self.order: list[int] = []
        self.streams: dict[str, list[int]] = {}
        self.starts: list[int] = []
        self.timeouts = query.output.events is EventType.TIMEOUT
        if self.timeouts:  # told of as they happen: from here on they are rows like any other
            output = dataclasses.replace(query.output, events=EventType.CURRENT)
            self.query = self.output.query = dataclasses.replace(query, output=output)

    def write(self) -> None:
        w, name, source = self.writer, self.name, self.source
        self.output.write()
        select = self.selector(only_current=False)
        self.select_function(select, (), "")
        w.line()
        sequence = source.kind is StateKind.SEQUENCE
        node, cell = self.page.next_node, self.scope.next_cell
        within = f"within={source.within_ms!r}"
        if source.within_ms is not None and self.page.given(streams_of(source)):
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
            w.line("m.tell_timeouts()")
        self._bounds()
        w.line(f"m.order = [e[i] for i in {self.order!r}]")
        streams = ", ".join(
            f"{s!r}: [e[i] for i in {places!r}]" for s, places in self.streams.items()
        )
        w.line(f"m.by_stream = {{{streams}}}")
        with w.block("for x in e"):
            w.line("x.wired()")
        if self.scope.partition is None:
            w.line(f"rt.idle[{cell}] = {name}_machine.idle")
        self.scope.cell(f"{name}_machine.fresh()")
        self.scope.created.append(f"{name}_machine.created(S)")
        self.page.node(f"{name}_machine.timer")
        for stream in self.streams:
            w.line()
            with (
                w.block(f"def {name}_in_{_plain(stream)}(S, chunk)"),
                w.block("for _, ts, row in chunk"),
            ):
                w.line(f"{name}_machine.event(S, {stream!r}, ts, row)")

    def _bounds(self) -> None:
        """What is declared; and the keys of a fragment free themselves."""
        kept, wanted = self.query.state, []
        if kept is not None:
            wanted = [f"limit={kept.limit!r}", f"idle={kept.idle_ms!r}"]
        own_key = self.page.fragment.keyed and self.scope.partition is None
        if own_key and self.source.within_ms is not None and not self.timeouts:
            wanted.append("prune=True")
        if wanted:
            self.writer.line(f"bounds.Bounds(m, {self.query.name!r}, {', '.join(wanted)})")

    def entry(self, stream: str) -> str:
        return f"{self.name}_in_{_plain(stream)}"

    def _number(self, state: State) -> None:
        """Places in the order elements are made."""
        for part in _parts(state):
            match part:
                case StreamState() | AbsentState():
                    self.places.setdefault(part.slot, len(self.places))
                case LogicalState():
                    for side in _sides(part):
                        self.places.setdefault(side.slot, len(self.places))
        self.lines.append("e = m.elements")

    def _wire(self, state: State, *, start: bool) -> Group:
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
                inside = [self.places[leaf.slot] for leaf in state_leaves(state.state)]
                for place in inside:
                    self.lines.append(f"e[{place}].around = e[{group.first}]")
                return group
            case ChainState():
                return self._chain(state, start=start)

    def _every(self, group: Group) -> None:
        for last in self._twins(group.last):
            self.lines.append(f"e[{last}].every = e[{group.first}]")

    def _twins(self, place: int) -> list[int]:
        """An element, or both sides of a logical pair."""
        for part in _parts(self.source.state):
            if isinstance(part, LogicalState):
                pair = [self.places[side.slot] for side in _sides(part)]
                if place in pair:
                    return pair
        return [place]

    def _chain(self, state: ChainState, *, start: bool) -> Group:
        groups = [self._wire(s, start=start and i == 0) for i, s in enumerate(state.states)]
        for before, after in pairwise(groups):
            for last in self._twins(before.last):
                self.lines.append(f"e[{last}].next = e[{after.first}]")
        return Group(groups[0].first, groups[-1].last)

    def _logical(self, state: LogicalState, *, start: bool) -> Group:
        for side in _sides(state):
            kind, more = "el.Logical", f", op={state.op!r}"
            if isinstance(side, AbsentState):
                kind, more = "ab.AbsentLogical", f"{more}, waiting={side.waiting_ms!r}"
            self._make(side, f"{kind}(m, {{test}}, start={{start}}{more})", start=start)
        right, left = (self.places[side.slot] for side in _sides(state))
        self.lines.append(f"e[{left}].partner, e[{right}].partner = e[{right}], e[{left}]")
        self.order.remove(left)  # the right side begins, resets and updates both
        return Group(left, right)

    def _make(self, leaf: StreamState | AbsentState, text: str, *, start: bool) -> Group:
        place = self.places[leaf.slot]
        test = self._test(leaf)
        self.lines.append(text.format(test=test, start=start))
        if self._is_last(leaf):
            self.lines.append(f"e[{place}].last = True")
        self.order.append(place)
        self.streams.setdefault(leaf.stream, []).append(place)
        if start:
            self.starts.append(place)
        return Group(place, place)

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

    def _test(self, leaf: StreamState | AbsentState) -> str:
        """The name of the function that says whether an event suits an element."""
        conditions = [h.condition for h in leaf.handlers if isinstance(h, Filter)]
        if not conditions:
            return "pat.always"
        condition: Expr = conditions[0]
        for more in conditions[1:]:
            condition = And(condition, more)
        name = f"{self.name}_test{self.places[leaf.slot]}"
        w, lines = self.writer, []
        names: dict[Key, str] = {}

        def resolve(expr: Expr) -> Code:
            key = key_of(expr)
            if key is None:
                return Code("ts", nullable=False)
            if key not in names:
                names[key] = f"x{len(names)}"
                lines.append(f"{names[key]} = {self._value(expr, leaf.slot)}")
            return Code(names[key], nullable=not isinstance(expr, SlotIsNull | SlotTime))

        text = Exprs(w, resolve, self.tables).condition(condition)
        with w.block(f"def {name}(slots, ts, row)"):
            for line in lines:
                w.line(line)
            w.line(f"return {text}")
        return name

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
        taken = f"slots[{self.places[slot]}]"
        if index is None and slot in self.counted and isinstance(expr, Field):
            return f"pat.values({taken}, {self.schemas[slot].index(expr.name)})"
        event = f"pat.at({taken}, {index or 0})"
        if isinstance(expr, SlotIsNull):
            return f"({event} is None)"
        picks = (
            "[0]" if isinstance(expr, SlotTime) else f"[1][{self.schemas[slot].index(expr.name)}]"
        )
        if index in {None, 0}:
            return f"({taken}[0]{picks} if {taken} else None)"
        return f"(x_{picks} if (x_ := {event}) else None)"

    def _match_row(self) -> None:
        """What the selector sees: every value of a match that the query uses."""
        w = self.writer
        values = [self._value(_expr(key)) for key in self.names.places]
        with w.block(f"def {self.name}_row(slots)"):
            w.line(f"return ({', '.join(values)}{',' if len(values) == 1 else ''})")


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


def _plain(stream: str) -> str:
    return local(stream.replace("#", "inner_").replace("!", "fault_"))
