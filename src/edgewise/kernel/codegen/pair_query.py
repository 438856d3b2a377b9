"""Write the commonest pattern as straight-line code: `every e1 -> e2 [within t]`, kept by key.

It is chosen where a key is known: the partition's attribute, or an equality `e2.k == e1.k` in the
filter of e2. First events then wait in a dictionary by key, so an event looks only at those it can
match, however many wait in all. Everything else runs on the general machine in
`operators.patterns`.

    pend    key -> [(ts, what is read of e1 later), ...]     e1 events that wait for their e2
    order   deque of (ts, key), by arrival                   where to find what is too old

    e1 k=x at 10     pend {x: [(10, ..)]}    order [(10, x)]
    e1 k=y at 20     pend {x: .., y: ..}     order [(10, x), (20, y)]
    e2 k=x at 30     a row for each e1 in pend[x], and pend {y: ..}; order is pruned lazily

`pend` holds lists, for most keys hold one event: a deque would take ten times the memory. Whether
two events are a pair depends on them and the app's clock alone, never on events of other keys, so
kernels that hold some of the keys give what one gives that holds all.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from edgewise.kernel.codegen.code_writer import tuple_text
from edgewise.kernel.codegen.column_masks import all_of
from edgewise.kernel.codegen.expr_text import ExprText, ExprWriter
from edgewise.kernel.codegen.fragment_builder import FragmentBuilder
from edgewise.kernel.codegen.row_layout import RowLayout, keys_of
from edgewise.kernel.codegen.row_text import RowSink, chunk_sink
from edgewise.kernel.codegen.stream_query import QueryWriter
from edgewise.kernel.operators.pattern_bounds import PRUNE_AFTER_MS
from edgewise.plan.exprs import Agg, Call, Compare, Expr, Field, InTable, SlotTime, conjuncts, walk
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


def pair_of(builder: FragmentBuilder, query: Query) -> Pair | None:
    """The query as a keyed pair, None where it is something else."""
    source = query.input
    if not isinstance(source, StateInput) or source.kind is not StateKind.PATTERN:
        return None
    match source.state:
        case ChainState(
            states=(EveryState(state=StreamState() as first), StreamState() as second)
        ):
            pass
        case _:
            return None
    handlers = (*first.handlers, *second.handlers)
    if not is_plain(query) or not all(isinstance(h, Filter) for h in handlers):
        return None
    items = [i.expr for i in query.select.items]
    parts = [c for h in second.handlers if isinstance(h, Filter) for c in conjuncts(h.condition)]
    ones = [c for h in first.handlers if isinstance(h, Filter) for c in conjuncts(h.condition)]
    if any(isinstance(n, Agg | InTable | SlotTime | Call) for e in (*items, *parts, *ones)
           for n in walk(e)):  # fmt: skip
        return None
    return _keyed(builder, query, first, second, ones, parts)


def is_plain(query: Query) -> bool:
    """Each match is one row for a stream, and nothing looks at two of them."""
    select, output = query.select, query.output
    return (
        not select.group_by
        and select.having is None
        and not select.order_by
        and select.limit is None
        and select.offset is None
        and query.rate is None
        and query.state is None
        and isinstance(output, InsertInto)
        and output.events is EventType.CURRENT
    )


def _keyed(
    builder: FragmentBuilder,
    query: Query,
    first: StreamState,
    second: StreamState,
    ones: list[Expr],
    parts: list[Expr],
) -> Pair | None:
    if query.partition:
        fields = partition_fields(builder, query, [first.stream, second.stream])
        keys = None if fields is None else (fields[first.stream], fields[second.stream])
    else:
        keys = _equal_keys(first, second, parts)
    if keys is None:
        return None
    own = tuple(c for c in parts if not _reads(c, first.slot))
    cross = tuple(
        c for c in parts if _reads(c, first.slot) and not _is_key(c, keys, first, second)
    )
    return Pair(first, second, *keys, tuple(ones), own, cross)


def _reads(expr: Expr, slot: str) -> bool:
    return any(isinstance(n, Field) and n.slot == slot for n in walk(expr))


def partition_fields(
    builder: FragmentBuilder, query: Query, streams: list[str]
) -> dict[str, str] | None:
    """The attribute that keys each stream, where the partition holds this query alone."""
    partition = builder.app.partition(query.partition)
    alone = sum(q.partition == query.partition for q in builder.queries) == 1
    if partition is None or not alone or partition.state is not None:
        return None
    values = {k.stream: k.value for k in partition.keys}
    fields = {s: v for s in streams if isinstance(v := values.get(s), Field)}
    if set(fields) != set(streams) or len({f.type for f in fields.values()}) > 1:
        return None
    return {stream: field.name for stream, field in fields.items()}


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


def keys_of_pair(pair: Pair) -> dict[str, str]:
    """The attribute that keys each stream; none where one stream has two."""
    if pair.first.stream == pair.second.stream and pair.first_key != pair.second_key:
        return {}
    return {pair.first.stream: pair.first_key, pair.second.stream: pair.second_key}


@dataclass(frozen=True, slots=True)
class EventTest:
    """A test of single events: the attributes it reads, and its text for one and for columns."""

    names: list[str]
    test: str
    mask: str


class KeyedQueryWriter(QueryWriter):
    """`_in_<n>(S, chunk)` per stream; state lives outside the partition it stands for."""

    fresh = opened = ""  # its state when new, and the locals that hold it

    def __init__(self, builder: FragmentBuilder, query: Query, streams: Iterable[str]) -> None:
        super().__init__(builder, query, RowLayout())
        self.tracks = builder.by_key is not None
        self.streams = tuple(dict.fromkeys(streams))
        self.locals = {stream: builder.event_locals(stream) for stream in self.streams}
        source = query.input
        assert isinstance(source, StateInput)
        self.within = source.within_ms
        # What is too old is so by this: rows of queries may be far behind the clock.
        by_clock = self.within is not None and builder.given(self.streams)
        self.now = "clock" if by_clock else "ts"
        self.cell = 0

    def write(self) -> None:
        w = self.writer
        self.output.write()
        self.cell = self.builder.root.cell(self.fresh)
        if self.tracks:
            self.builder.by_key = self.cell
            w.line("dirty = rt.dirty")
        self.before()
        for n, stream in enumerate(self.streams):
            names, used = self.builder.schema(stream).names, self.used(stream)
            w.line()
            with w.block(f"def {self.name}_in_{n}(S, chunk)"):
                w.line("out, clock = [], rt.now" if self.now == "clock" else "out = []")
                w.line(f"{self.opened} = rt.root[{self.cell}]")
                with w.block("for _, ts, row in chunk"):
                    values = self.locals[stream]
                    w.assign((values[a] for a in used), (f"row[{names.index(a)}]" for a in used))
                    self.event(stream, chunk_sink())
                with w.block("if out"):
                    w.line(f"{self.name}_out(S, out)")

    def touch(self, key: str) -> None:
        """The state of this key is no longer what was saved."""
        if self.tracks:
            self.writer.line(f"dirty.add({key})")

    def entry(self, stream: str) -> str:
        return f"{self.name}_in_{self.streams.index(stream)}"

    def before(self) -> None:
        """Functions that the code of an event calls."""

    def used(self, stream: str) -> list[str]:
        """The attributes of an event of this stream that the code reads, in order."""
        raise NotImplementedError

    def event(self, stream: str, sink: RowSink) -> None:
        """One event, as `ts` and the locals of its stream, in a loop; its rows go to the sink."""
        raise NotImplementedError

    def suits(self, _stream: str) -> EventTest | None:
        """Whether an event may be of use at all; None where any may."""
        return None

    def at_last(self) -> None:
        """After a run of which only events that suit were looked at."""


class PairQueryWriter(KeyedQueryWriter):
    fresh, opened = "[{}, deque()]", "pend, order"

    def __init__(self, builder: FragmentBuilder, query: Query, pair: Pair) -> None:
        super().__init__(builder, query, (pair.first.stream, pair.second.stream))
        self.pair = pair
        # Rows of queries come in any order of keys: those of this key may be a while behind.
        self.forget_ms = (self.within or 0) + (PRUNE_AFTER_MS if self.now == "ts" else 0)
        items = [i.expr for i in query.select.items]
        self.kept = [  # of the first event, behind its time
            n
            for n in builder.schema(pair.first.stream).names
            if (pair.first.slot, n) in {k[:2] for k in keys_of(*items, *pair.cross_filter)}
        ]

    def used(self, stream: str) -> list[str]:
        pair, found = self.pair, set[str]()
        if stream == pair.first.stream:
            found |= {pair.first_key, *self.kept, *(k[1] for k in keys_of(*pair.first_filter))}
        if stream == pair.second.stream:
            items = [i.expr for i in self.query.select.items]
            read = keys_of(*items, *pair.own_filter, *pair.cross_filter)
            found |= {pair.second_key, *(k[1] for k in read if k[0] == pair.second.slot)}
        return [n for n in self.builder.schema(stream).names if n in found]

    def before(self) -> None:
        """What is too old is forgotten, in the order it came."""
        w = self.writer
        if self.within is None:
            return
        w.line()
        with (
            w.block(f"def {self.name}_forget(pend, order, now)"),
            w.block(f"while order and now - order[0][0] > {self.forget_ms}"),
        ):
            w.line("key = order.popleft()[1]")
            w.line("held = pend.get(key)")
            with w.block(f"while held and now - held[0][0] > {self.forget_ms}"):
                w.line("del held[0]")
                self.touch("key")
            with w.block("if held is not None and not held"):
                w.line("del pend[key]")

    def event(self, stream: str, sink: RowSink) -> None:
        """The second element is tried first."""
        w, pair = self.writer, self.pair
        if self.within is not None:
            with w.block(f"if order and {self.now} - order[0][0] > {self.forget_ms}"):
                w.line(f"{self.name}_forget(pend, order, {self.now})")
        if stream == pair.second.stream:
            self._second(sink)
        if stream == pair.first.stream:
            self._first()

    def suits(self, stream: str) -> EventTest | None:
        pair = self.pair
        wanted = [pair.own_filter] if stream == pair.second.stream else []
        wanted += [pair.first_filter] if stream == pair.first.stream else []
        if not all(wanted):
            return None
        read = {k[1] for filters in wanted for k in keys_of(*filters)}
        names = [n for n in self.builder.schema(stream).names if n in read]
        test = " or ".join(self._condition(filters) for filters in wanted)
        arrays = self.builder.array_locals(stream)
        masks = [all_of(filters, arrays) for filters in wanted]
        return EventTest(names, test, " | ".join(masks) if all(masks) else "")

    def at_last(self) -> None:
        if self.within is not None:
            newest = "run.clock[-1]" if self.now == "clock" else "run.ts[-1]"
            with self.writer.block("if order and len(run.ts)"):
                self.writer.line(f"{self.name}_forget(pend, order, {newest})")

    def _condition(self, conditions: tuple[Expr, ...]) -> str:
        exprs = ExprWriter(self.writer, self._resolve, self.tables)
        return " and ".join(exprs.condition(c) for c in conditions)

    def _resolve(self, expr: Expr) -> ExprText:
        assert isinstance(expr, Field)
        leaf = self.pair.first if expr.slot == self.pair.first.slot else self.pair.second
        return ExprText(self.locals[leaf.stream][expr.name])

    def _both(self, expr: Expr) -> ExprText:
        assert isinstance(expr, Field)
        if expr.slot == self.pair.first.slot:
            return ExprText(f"one[{1 + self.kept.index(expr.name)}]")
        return self._resolve(expr)

    def _second(self, sink: RowSink) -> None:
        w, pair = self.writer, self.pair
        key = self.locals[pair.second.stream][pair.second_key]
        guards = [f"{key} in pend"]
        if pair.own_filter:
            guards.insert(0, self._condition(pair.own_filter))
        exprs = ExprWriter(w, self._both, self.tables)
        data = tuple_text(exprs.value(i.expr) for i in self.query.select.items)
        with w.block(f"if {' and '.join(guards)}"):
            self.touch(key)
            if pair.cross_filter or self.within is not None:
                w.line("kept = []")
            if sink.numbered:
                w.line("seq = 0")
            with w.block(f"for one in pend[{key}]"):
                if self.within is not None:
                    with w.block(f"if {self.now} - one[0] > {self.within}"):
                        w.line("continue")
                    with w.block(f"if one[0] - ts > {self.within}"):
                        w.line("kept.append(one)")
                        w.line("continue")
                if pair.cross_filter:
                    tests = " and ".join(exprs.condition(c) for c in pair.cross_filter)
                    with w.block(f"if not ({tests})"):
                        w.line("kept.append(one)")
                        w.line("continue")
                w.line(sink.write(data, "seq"))
                if sink.numbered:
                    w.line("seq += 1")
            if pair.cross_filter or self.within is not None:
                with w.block("if kept"):
                    w.line(f"pend[{key}] = kept")
                with w.block("else"):
                    w.line(f"del pend[{key}]")
            else:
                w.line(f"del pend[{key}]")

    def _first(self) -> None:
        w, pair = self.writer, self.pair
        columns = self.locals[pair.first.stream]
        key = columns[pair.first_key]
        guards = [self._condition(pair.first_filter)] if pair.first_filter else []
        guards.append(f"{key} is not None")
        one = tuple_text(["ts", *(columns[n] for n in self.kept)])
        with w.block(f"if {' and '.join(guards)}"):
            self.touch(key)
            w.line(f"held = pend.get({key})")
            with w.block("if held is None"):
                w.line(f"pend[{key}] = [{one}]")
            with w.block("else"):
                w.line(f"held.append({one})")
            if self.within is not None:
                w.line(f"order.append((ts, {key}))")
