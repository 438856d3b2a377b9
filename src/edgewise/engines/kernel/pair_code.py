"""The commonest pattern as straight-line code: `every e1 -> e2 [within t]`, kept by key.

It is chosen where a key is known: the partition's attribute, or an equality `e2.k == e1.k` in the
filter of e2. First events then wait in a dictionary by key, so an event looks only at those it can
match, however many wait in all. Everything else runs on the general machine in `patterns`.

State: [key -> list of (ts, row), deque of (ts, key) in order of arrival for what grows too old].
A list, for most keys hold one: a deque would take ten times the memory.
"""

from __future__ import annotations

from dataclasses import dataclass

from edgewise.engines.kernel.exprs import Code, Exprs, Resolve
from edgewise.engines.kernel.names import Names
from edgewise.engines.kernel.page import Page
from edgewise.engines.kernel.queries import QueryCode
from edgewise.plan.exprs import Agg, And, Call, Compare, Expr, Field, InTable, SlotTime, walk
from edgewise.plan.nodes import (
    ChainState,
    EventType,
    EveryState,
    Filter,
    InsertInto,
    Query,
    StateInput,
    StateKind,
    StreamState,
)


@dataclass(frozen=True, slots=True)
class Pair:
    """Two elements, the attribute that keys each, and what is left of their filters."""

    first: StreamState
    second: StreamState
    first_key: str
    second_key: str
    first_filter: tuple[Expr, ...]
    own_filter: tuple[Expr, ...]  # of the second, without the first
    cross_filter: tuple[Expr, ...]  # of the second, with the first


def pair_of(page: Page, query: Query) -> Pair | None:
    """The query as a keyed pair, None where it is something else."""
    source, select = query.input, query.select
    if not isinstance(source, StateInput) or source.kind is not StateKind.PATTERN:
        return None
    match source.state:
        case ChainState(
            states=(EveryState(state=StreamState() as first), StreamState() as second)
        ):
            pass
        case _:
            return None
    simple = not select.group_by and select.having is None and not select.order_by
    simple = simple and select.limit is None and select.offset is None and query.rate is None
    simple = simple and isinstance(query.output, InsertInto)
    simple = simple and query.output.events is EventType.CURRENT
    handlers = (*first.handlers, *second.handlers)
    if not simple or not all(isinstance(h, Filter) for h in handlers):
        return None
    items = [i.expr for i in select.items]
    parts = [c for h in second.handlers if isinstance(h, Filter) for c in _conjuncts(h.condition)]
    ones = [c for h in first.handlers if isinstance(h, Filter) for c in _conjuncts(h.condition)]
    if any(isinstance(n, Agg | InTable | SlotTime | Call) for e in (*items, *parts, *ones)
           for n in walk(e)):  # fmt: skip
        return None
    return _keyed(page, query, first, second, ones, parts)


def _keyed(
    page: Page,
    query: Query,
    first: StreamState,
    second: StreamState,
    ones: list[Expr],
    parts: list[Expr],
) -> Pair | None:
    if query.partition:
        keys = _partition_keys(page, query, first, second)
    else:
        keys = _equal_keys(first, second, parts)
    if keys is None:
        return None
    own = tuple(c for c in parts if not _reads(c, first.slot))
    cross = tuple(
        c for c in parts if _reads(c, first.slot) and not _is_key(c, keys, first, second)
    )
    return Pair(first, second, *keys, tuple(ones), own, cross)


def _conjuncts(expr: Expr) -> list[Expr]:
    if isinstance(expr, And):
        return [*_conjuncts(expr.left), *_conjuncts(expr.right)]
    return [expr]


def _reads(expr: Expr, slot: str) -> bool:
    return any(isinstance(n, Field) and n.slot == slot for n in walk(expr))


def _partition_keys(
    page: Page, query: Query, first: StreamState, second: StreamState
) -> tuple[str, str] | None:
    partition = page.app.partition(query.partition)
    alone = sum(q.partition == query.partition for q in page.queries) == 1
    if partition is None or not alone or partition.idle_ms is not None:
        return None
    keys = {k.stream: k.value for k in partition.keys}
    one, two = keys.get(first.stream), keys.get(second.stream)
    if isinstance(one, Field) and isinstance(two, Field) and one.type is two.type:
        return one.name, two.name
    return None


def _equal_keys(
    first: StreamState, second: StreamState, parts: list[Expr]
) -> tuple[str, str] | None:
    for part in parts:
        found = _equality(part, first, second)
        if found is not None:
            return found
    return None


def _equality(part: Expr, first: StreamState, second: StreamState) -> tuple[str, str] | None:
    if not isinstance(part, Compare) or part.op != "==":
        return None
    for mine, other in ((part.left, part.right), (part.right, part.left)):
        if (
            isinstance(mine, Field)
            and isinstance(other, Field)
            and (mine.slot, other.slot) == (second.slot, first.slot)
            and mine.type is other.type
            and mine.index is None
            and other.index is None
        ):
            return other.name, mine.name
    return None


def _is_key(expr: Expr, keys: tuple[str, str], first: StreamState, second: StreamState) -> bool:
    return _equality(expr, first, second) == keys


class PairQuery(QueryCode):
    """`_in_<n>(S, chunk)` per stream; state lives outside the partition it stands for."""

    def __init__(self, page: Page, query: Query, pair: Pair) -> None:
        super().__init__(page, query, Names())
        self.pair = pair
        source = query.input
        assert isinstance(source, StateInput)
        self.within = source.within_ms
        self.schemas = {s.slot: page.schema(s.stream) for s in (pair.first, pair.second)}
        self.streams = tuple(dict.fromkeys((pair.first.stream, pair.second.stream)))

    def write(self) -> None:
        w = self.writer
        self.output.write()
        self.cell = self.page.root.cell("[{}, deque()]")
        for n, stream in enumerate(self.streams):
            w.line()
            with w.block(f"def {self.name}_in_{n}(S, chunk)"):
                w.line("out = []")
                w.line(f"pend, order = rt.root[{self.cell}]")
                with w.block("for _, ts, row in chunk"):
                    self.event(stream, "out.append((0, ts, {data}))")
                with w.block("if out"):
                    w.line(f"{self.name}_out(S, out)")

    def entry(self, stream: str) -> str:
        return f"{self.name}_in_{self.streams.index(stream)}"

    def event(self, stream: str, emit: str) -> None:
        """One event as `ts` and `row`; the second element is tried first."""
        w, pair = self.writer, self.pair
        if self.within is not None:
            with w.block(f"while order and ts - order[0][0] > {self.within}"):
                w.line("key = order.popleft()[1]")
                w.line("held = pend.get(key)")
                with w.block(f"while held and ts - held[0][0] > {self.within}"):
                    w.line("del held[0]")
                with w.block("if held is not None and not held"):
                    w.line("del pend[key]")
        if stream == pair.second.stream:
            self._second(emit)
        if stream == pair.first.stream:
            self._first()

    def _condition(self, conditions: tuple[Expr, ...], own: str) -> str:
        exprs = Exprs(self.writer, self._resolve(own), self.tables)
        return " and ".join(exprs.condition(c) for c in conditions)

    def _resolve(self, own: str) -> Resolve:
        def resolve(expr: Expr) -> Code:
            assert isinstance(expr, Field)
            place = self.schemas[expr.slot].index(expr.name)
            return Code(f"row[{place}]" if expr.slot == own else f"one[{place}]")

        return resolve

    def _second(self, emit: str) -> None:
        w, pair = self.writer, self.pair
        slot = pair.second.slot
        place = self.schemas[slot].index(pair.second_key)
        guards = [f"(key := row[{place}]) in pend"]
        if pair.own_filter:
            guards.insert(0, self._condition(pair.own_filter, slot))
        exprs = Exprs(w, self._resolve(slot), self.tables)
        items = [exprs.value(i.expr) for i in self.query.select.items]
        data = f"({', '.join(items)}{',' if len(items) == 1 else ''})"
        with w.block(f"if {' and '.join(guards)}"):
            if pair.cross_filter:
                w.line("kept = []")
            with w.block("for waiting in pend[key]"):
                w.line("one = waiting[1]")
                old = f"abs(waiting[0] - ts) > {self.within}"
                if self.within is not None:
                    with w.block(f"if {old}"):
                        w.line("continue")
                if pair.cross_filter:
                    with w.block(f"if not ({self._condition(pair.cross_filter, slot)})"):
                        w.line("kept.append(waiting)")
                        w.line("continue")
                w.line(emit.format(data=data))
            if pair.cross_filter:
                with w.block("if kept"):
                    w.line("pend[key] = kept")
                with w.block("else"):
                    w.line("del pend[key]")
            else:
                w.line("del pend[key]")

    def _first(self) -> None:
        w, pair = self.writer, self.pair
        slot = pair.first.slot
        place = self.schemas[slot].index(pair.first_key)
        guards = [self._condition(pair.first_filter, slot)] if pair.first_filter else []
        guards.append(f"(key := row[{place}]) is not None")
        with w.block(f"if {' and '.join(guards)}"):
            w.line("held = pend.get(key)")
            with w.block("if held is None"):
                w.line("pend[key] = [(ts, row)]")
            with w.block("else"):
                w.line("held.append((ts, row))")
            if self.within is not None:
                w.line("order.append((ts, key))")
