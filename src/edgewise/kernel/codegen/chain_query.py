"""Write chains of single events as straight-line code: `every e1 -> e2 -> ... [within t]`.

Matches are held by the key that their events share, so an event looks only at those it can move,
however many wait in all; without a key all that wait for an element move at once. A match is a
tuple: when it began, and what is read later of its events.

    held    key -> a list for each element of the matches that wait for it; with two elements the
            one list itself
    order   deque of (began, key), by arrival            where to find what is too old

    e1 k=x at 10     held {x: [[(10, ..)], []]}    order [(10, x)]
    e2 k=x at 30     held {x: [[], [(10, ..)]]}
    e3 k=x at 40     a row for each match in the last list, and held {}; order is pruned lazily

Whether events are a match depends on them and the app's clock alone, never on events of other
keys, so kernels that hold some of the keys give what one gives that holds all. Which patterns
these are is decided in `chain_steps`.
"""

from __future__ import annotations

from edgewise.kernel.codegen.chain_steps import Chain, ChainStep
from edgewise.kernel.codegen.code_writer import comment_text, tuple_text
from edgewise.kernel.codegen.column_masks import all_of
from edgewise.kernel.codegen.expr_text import ExprText, ExprWriter, Resolve
from edgewise.kernel.codegen.fragment_builder import FragmentBuilder
from edgewise.kernel.codegen.keyed_query import EventTest, KeyedQueryWriter
from edgewise.kernel.codegen.row_layout import keys_of
from edgewise.kernel.codegen.row_text import RowSink
from edgewise.kernel.operators.pattern_bounds import PRUNE_AFTER_MS
from edgewise.plan.exprs import Expr, Field
from edgewise.plan.nodes import Query


class ChainQueryWriter(KeyedQueryWriter):
    fresh, opened = "[{}, deque()]", "held, order"

    def __init__(self, builder: FragmentBuilder, query: Query, chain: Chain) -> None:
        super().__init__(builder, query, [step.leaf.stream for step in chain])
        self.chain = chain
        # Rows of queries come in any order of keys: those of this key may be a while behind.
        self.forget_ms = (self.within or 0) + (PRUNE_AFTER_MS if self.now == "ts" else 0)
        items = [i.expr for i in query.select.items]
        crossing = [e for step in chain for e in step.cross]
        read = {k[:2] for k in keys_of(*items, *crossing)}
        self.fields = [  # of a match, behind when it began
            (step.leaf.slot, n)
            for step in chain[:-1]
            for n in builder.schema(step.leaf.stream).names
            if (step.leaf.slot, n) in read
        ]

    def used(self, stream: str) -> list[str]:
        found = set[str]()
        items = [i.expr for i in self.query.select.items]
        for step in self.chain:
            if step.leaf.stream == stream:
                read = keys_of(*step.own, *step.cross, *(items if step is self.chain[-1] else ()))
                found |= {step.key, *(k[1] for k in read if k[0] == step.leaf.slot)}
                found |= {n for slot, n in self.fields if slot == step.leaf.slot}
        return [n for n in self.builder.schema(stream).names if n in found]

    def before(self) -> None:
        """What is too old is forgotten in the order it came: of a long list when half of it is."""
        w = self.writer
        if self.within is None:
            return
        w.line()
        with (
            w.block(f"def {self.name}_forget(held, order, now)"),
            w.block(f"while order and now - order[0][0] > {self.forget_ms}"),
        ):
            w.line("key = order.popleft()[1]")
            w.line("waits = held.get(key)")
            with w.block("if waits is None"):
                w.line("continue")
            with (
                w.block(f"for some in {self._lists()}"),
                w.block(f"if some and now - some[len(some) >> 1][0] > {self.forget_ms}"),
            ):
                w.line(f"some[:] = [one for one in some if now - one[0] <= {self.forget_ms}]")
                self.touch("key")
            with w.block(f"if not {self._any()}"):
                w.line("del held[key]")

    def _lists(self) -> str:
        return "waits" if len(self.chain) > 2 else "(waits,)"

    def _list(self, at: int) -> str:
        """The matches that wait for an element."""
        return f"waits[{at - 1}]" if len(self.chain) > 2 else "waits"

    def _any(self) -> str:
        return "any(waits)" if len(self.chain) > 2 else "waits"

    def suits(self, stream: str) -> EventTest | None:
        wanted = [step.own for step in self.chain if step.leaf.stream == stream]
        if not all(wanted):
            return None
        read = {k[1] for filters in wanted for k in keys_of(*filters)}
        names = [n for n in self.builder.schema(stream).names if n in read]
        tests = [self._conditions(filters, self._event(stream)) for filters in wanted]
        arrays = self.builder.array_locals(stream)
        masks = [all_of(filters, arrays) for filters in wanted]
        test = " or ".join(dict.fromkeys(tests))
        return EventTest(names, test, " | ".join(dict.fromkeys(masks)) if all(masks) else "")

    def at_last(self) -> None:
        if self.within is not None:
            newest = "run.clock[-1]" if self.now == "clock" else "run.ts[-1]"
            with self.writer.block("if order and len(run.ts)"):
                self.writer.line(f"{self.name}_forget(held, order, {newest})")

    # Values as text.

    def _event(self, stream: str) -> Resolve:
        """Of the event at hand."""
        return lambda expr: ExprText(self.locals[stream][expr.name])  # type: ignore[union-attr]

    def _both(self, step: ChainStep) -> Resolve:
        """Of the event at hand, or of the match `one`."""

        def resolve(expr: Expr) -> ExprText:
            assert isinstance(expr, Field)
            if expr.slot == step.leaf.slot:
                return ExprText(self.locals[step.leaf.stream][expr.name])
            return ExprText(f"one[{1 + self.fields.index((expr.slot, expr.name))}]")

        return resolve

    def _conditions(self, conditions: tuple[Expr, ...], resolve: Resolve) -> str:
        exprs = ExprWriter(self.writer, resolve, self.tables)
        return " and ".join(exprs.condition(c) for c in conditions)

    # The code of one event.

    def event(self, stream: str, sink: RowSink) -> None:
        """The last element is tried first."""
        w = self.writer
        if self.within is not None:
            with w.block(f"if order and {self.now} - order[0][0] > {self.forget_ms}"):
                w.line(f"{self.name}_forget(held, order, {self.now})")
        for at in reversed(range(len(self.chain))):
            step = self.chain[at]
            if step.leaf.stream == stream:
                w.line(comment_text(step.leaf.slot))
                key = self.locals[stream][step.key] if step.key else "0"
                if at:
                    self._move(at, step, key, sink)
                else:
                    self._begin(step, key)

    def _move(self, at: int, step: ChainStep, key: str, sink: RowSink) -> None:
        """Matches that wait for this element go on with the event, or stay."""
        w, last, here = self.writer, at == len(self.chain) - 1, self._list(at)
        guards = [self._conditions(step.own, self._event(step.leaf.stream))] if step.own else []
        waits = f"(waits := held.get({key})) is not None"
        guards.append(waits + (f" and {here}" if len(self.chain) > 2 else ""))
        exprs = ExprWriter(w, self._both(step), self.tables)
        stays = bool(step.cross) or self.within is not None
        columns = self.locals[step.leaf.stream]
        more = [columns[n] for slot, n in self.fields if slot == step.leaf.slot]
        with w.block(f"if {' and '.join(guards)}"):
            self.touch(key)
            if stays:
                w.line("kept = []")
            if last and sink.numbered:
                w.line("seq = 0")
            if not last:
                w.line(f"after = {self._list(at + 1)}")
            with w.block(f"for one in {here}"):
                self._stay(step, exprs)
                if last:
                    data = tuple_text(exprs.value(i.expr) for i in self.query.select.items)
                    w.line(sink.write(data, "seq"))
                    if sink.numbered:
                        w.line("seq += 1")
                else:
                    grown = f"(*one, {', '.join(more)})" if more else "one"
                    w.line(f"after.append({grown})")
            self._leave(at, key, "kept" if stays else "")

    def _stay(self, step: ChainStep, exprs: ExprWriter) -> None:
        """What is too old goes, what the event does not suit is kept."""
        w = self.writer
        if self.within is not None:
            with w.block(f"if {self.now} - one[0] > {self.within}"):
                w.line("continue")
            with w.block(f"if one[0] - ts > {self.within}"):
                w.line("kept.append(one)")
                w.line("continue")
        if step.cross:
            tests = " and ".join(exprs.condition(c) for c in step.cross)
            with w.block(f"if not ({tests})"):
                w.line("kept.append(one)")
                w.line("continue")

    def _leave(self, at: int, key: str, kept: str) -> None:
        """What did not go on stays; a key without a match is freed."""
        w = self.writer
        if len(self.chain) > 2:
            w.line(f"waits[{at - 1}] = {kept or '[]'}")
            with w.block("if not any(waits)"):
                w.line(f"del held[{key}]")
        elif kept:
            with w.block("if kept"):
                w.line(f"held[{key}] = kept")
            with w.block("else"):
                w.line(f"del held[{key}]")
        else:
            w.line(f"del held[{key}]")

    def _begin(self, step: ChainStep, key: str) -> None:
        w, columns = self.writer, self.locals[step.leaf.stream]
        guards = [self._conditions(step.own, self._event(step.leaf.stream))] if step.own else []
        guards += [f"{key} is not None"] if step.key else []
        one = tuple_text(["ts", *(columns[n] for s, n in self.fields if s == step.leaf.slot)])
        fresh = f"[{one}]"
        if len(self.chain) > 2:
            fresh = f"[{', '.join([fresh, *('[]' for _ in self.chain[2:])])}]"
        with w.block(f"if {' and '.join(guards) or True}"):
            self.touch(key)
            w.line(f"waits = held.get({key})")
            with w.block("if waits is None"):
                w.line(f"held[{key}] = {fresh}")
            with w.block("else"):
                w.line(f"{self._list(1)}.append({one})")
            if self.within is not None:
                w.line(f"order.append((ts, {key}))")
