"""Write sequences as straight-line code: `[every] e1, e2+, e3 [within t]`, kept by key.

In a sequence the next event of a key moves a match on or ends it, so an element has at most one
match waiting. `held` is a dictionary from the key to one tuple with an entry per element: the
match that waits there, or None. A match is a flat tuple of what is read of it later: `e1.v`, or
for a counted element all its values, or how many. While a counted element collects, the element
behind it may take the same match: its entry then says True, for "the one before me".

    every e1=S[v > 5], e2=S[v > 5]+, e3=S[v < 2]      held[key]   waits for e2   waits for e3
    v = 6   e1 takes it                                           (6, ())        None
    v = 7   e2 collects it; e3 may follow                         (6, (7,))      True
    v = 8   e2 collects it                                        (6, (7, 8))    True
    v = 1   e3 takes the match that True stands for: a row, and nothing waits

Which sequences these are is decided in `sequence_steps`.
"""

from __future__ import annotations

from collections.abc import Iterable

from edgewise.kernel.codegen.code_writer import comment_text, tuple_text
from edgewise.kernel.codegen.expr_text import ExprText, ExprWriter, Resolve
from edgewise.kernel.codegen.fragment_builder import FragmentBuilder
from edgewise.kernel.codegen.keyed_query import KeyedQueryWriter
from edgewise.kernel.codegen.row_layout import IS_NULL, Key, key_of, keys_of
from edgewise.kernel.codegen.row_text import RowSink
from edgewise.kernel.codegen.sequence_steps import SequenceStep, SequenceSteps
from edgewise.plan.exprs import Expr, SlotIsNull
from edgewise.plan.nodes import Query


class SequenceQueryWriter(KeyedQueryWriter):
    """Locals of the code: `m<i>` waited for element i, `n<i>` waits for it from now on."""

    fresh, opened = "{}", "held"

    def __init__(self, builder: FragmentBuilder, query: Query, sequence: SequenceSteps) -> None:
        super().__init__(builder, query, [s.leaf.stream for s in sequence.steps])
        self.sequence = sequence
        self.steps = sequence.steps
        self.index = {s.leaf.slot: i for i, s in enumerate(self.steps)}
        self.fields: list[tuple[str, str]] = []  # of a match: (slot, attribute), '' for a count
        self._lay_out()
        self.waits = [i for i, s in enumerate(self.steps) if i or s.counted]

    def before(self) -> None:
        """A line for who reads the code."""
        kept = [f"{s}.{n}" if n and s else n or f"how many {s}" for s, n in self.fields]
        waited = ", ".join(self.steps[i].leaf.slot for i in self.waits)
        self.writer.line()
        self.writer.line(comment_text(f"held: key -> (matches that wait for {waited})"))
        self.writer.line(comment_text(f"a match: ({', '.join(kept)})"))

    # What a match holds.

    def _lay_out(self) -> None:
        if self.sequence.within is not None:
            self.fields.append(("", "when it began"))
        read = set(self._read_later())
        for step in self.steps[:-1]:
            slot = step.leaf.slot
            names = [n for n in self.builder.schema(step.leaf.stream).names if (slot, n) in read]
            counts = step.counted and (step.most or 1) > 1
            if not names and (counts or (slot, IS_NULL) in read) and step.counted:
                names = [""]
            self.fields += [(slot, n) for n in names]

    def _read_later(self) -> Iterable[tuple[str, str]]:
        for slot, name, _ in keys_of(*(i.expr for i in self.query.select.items)):
            yield slot, name
        for step in self.steps:
            for slot, name, index in keys_of(*step.filters):
                if slot != step.leaf.slot or index is not None:
                    yield slot, name

    def _own_fields(self, step: SequenceStep) -> list[int]:
        return [p for p, (slot, _) in enumerate(self.fields) if slot == step.leaf.slot]

    def used(self, stream: str) -> list[str]:
        """The attributes of an event of this stream that the code reads, in order."""
        found = {self.sequence.keys.get(stream, "")}
        last = self.steps[-1].leaf
        for step in self.steps:
            if step.leaf.stream == stream:
                slot = step.leaf.slot
                found |= {n for s, n in self.fields if s == slot}
                found |= {n for s, n, _ in keys_of(*step.filters) if s == slot}
        if last.stream == stream:
            items = [i.expr for i in self.query.select.items]
            found |= {n for s, n, _ in keys_of(*items) if s == last.slot}
        return [n for n in self.builder.schema(stream).names if n in found]

    # Values as text.

    def _resolve(self, at: int, *, whole: bool = False) -> Resolve:
        """What an expression reads inside the test of an element, or of a whole match."""
        own = "" if whole else self.steps[at].leaf.slot

        def resolve(expr: Expr) -> ExprText:
            key = key_of(expr)
            if key is None:
                return ExprText("ts", nullable=False)
            slot, name, index = key
            position = self.index[slot]
            step = self.steps[position]
            if isinstance(expr, SlotIsNull):
                return ExprText(self._missing(key, step, at, own), nullable=False)
            if slot == own and (index is None or not step.counted):
                return ExprText(self._column(step, name) if index in {None, 0} else "None")
            if position > at:
                return ExprText("None")
            if whole and position == at:
                return ExprText(self._column(step, name) if index in {None, 0, -1} else "None")
            if not step.counted:
                found = f"m[{self.fields.index((slot, name))}]"
                return ExprText(found if index in {None, 0, -1} else "None")
            return ExprText(self._of_many(f"m[{self.fields.index((slot, name))}]", key, own))

        return resolve

    def _column(self, step: SequenceStep, name: str) -> str:
        """An attribute of the event at hand."""
        return self.locals[step.leaf.stream][name]

    def _of_many(self, taken: str, key: Key, own: str) -> str:
        """One of the values a counted element took, or all. In its own test the last is here."""
        slot, name, index = key
        if index is None:
            return f"(list({taken}) or None)"
        if slot == own and index >= 0:
            taken = f"(*{taken}, {self._column(self.steps[self.index[slot]], name)})"
        return f"wait.at({taken}, {index})"

    def _missing(self, key: Key, step: SequenceStep, at: int, own: str) -> str:
        slot, index = key[0], key[2] or 0
        position = self.index[slot]
        if not step.counted or position > at:
            there = position <= at and index in ({0} if slot == own else {0, -1})
            return str(not there)
        count = f"{self._count(step)}{' + 1' if slot == own and index >= 0 else ''}"
        return f"({count} {f'<= {index}' if index >= 0 else f'< {-index}'})"

    def _count(self, step: SequenceStep, match: str = "m") -> str:
        first = self._own_fields(step)[0]
        return f"{match}[{first}]" if self.fields[first][1] == "" else f"len({match}[{first}])"

    def _test(self, at: int) -> str:
        exprs = ExprWriter(self.writer, self._resolve(at), self.tables)
        return " and ".join(exprs.condition(c) for c in self.steps[at].filters)

    # The code of one event.

    def event(self, stream: str, sink: RowSink) -> None:
        """The last element is tried first."""
        w, sequence = self.writer, self.sequence
        key = self.locals[stream][sequence.keys[stream]] if sequence.keys else "0"
        mine = [i for i, s in enumerate(self.steps) if s.leaf.stream == stream]
        w.line(f"waits = held.get({key})")
        with w.block("if waits is None"):
            self._begin(key, starts=0 in mine)
        self.touch(key)
        w.line(f"{', '.join(f'm{i + 1}' for i in self.waits)}{self._comma} = waits")
        w.line(f"{' = '.join(f'n{i + 1}' for i in self.waits)} = None")
        if sequence.within is not None:
            self._expire()
        for i in reversed(mine):
            if self.steps[i].counted:
                self._collect(i)
            elif i or sequence.every:
                self._single(i, sink)
        tests = " is not None or ".join(f"n{i + 1}" for i in self.waits)
        with w.block(f"if {tests} is not None"):
            w.line(f"held[{key}] = ({', '.join(f'n{i + 1}' for i in self.waits)}{self._comma})")
        with w.block("else"):
            w.line(f"del held[{key}]" if sequence.every else f"held[{key}] = {self._nobody}")

    @property
    def _comma(self) -> str:
        return "," if len(self.waits) == 1 else ""

    @property
    def _nobody(self) -> str:
        return f"({', '.join('None' for _ in self.waits)}{self._comma})"

    def _begin(self, key: str, *, starts: bool) -> None:
        """The first event of a key, or the first after its last match ended."""
        w, first = self.writer, self.steps[0]
        guards = [f"{key} is not None"] if self.sequence.keys else []
        if starts:
            if first.counted:
                w.line(f"m = {self._fresh(0)}")
            test = self._test(0)
            new = dict.fromkeys(self.waits, "None")
            if first.counted:
                match = self._more(first)
                new[0], new[1] = ("None", match) if first.most == 1 else (match, "True")
            else:
                new[1] = self._fresh(0, "c_")
                if self.steps[1].counted:
                    new[1] = self._plus(new[1], self._fresh(1))
                    if self.steps[1].least == 0:
                        new[2] = "True"
            waits = f"({', '.join(new[i] for i in self.waits)}{self._comma})"
            with w.block(f"if {' and '.join(filter(None, [test, *guards])) or True}"):
                w.line(f"held[{key}] = {waits}")
                self.touch(key)
        if not self.sequence.every:
            others = [f"{key} is not None"] if self.sequence.keys else []
            with w.block(f"{'el' if starts else ''}if {' and '.join(others) or True}"):
                w.line(f"held[{key}] = {self._nobody}")
                self.touch(key)
        w.line("continue")

    def _fresh(self, at: int, prefix: str = "") -> str:
        """What an element adds to a match: an event's values, or an empty collection."""
        step = self.steps[at]
        began = ["ts"] if at == 0 and self.sequence.within is not None else []
        names = [self.fields[p][1] for p in self._own_fields(step)]
        if step.counted and not prefix:
            own = ["()" if n else "0" for n in names]
        else:
            own = [self._column(step, n) for n in names]
        return tuple_text([*began, *own])

    @staticmethod
    def _plus(match: str, more: str) -> str:
        """Two tuples as one, without an empty one."""
        if more == "()":
            return match
        if match.startswith("("):
            inside = ", ".join(p.rstrip(",") for p in (match[1:-1], more[1:-1]) if p)
            return f"({inside}{',' if ', ' not in inside else ''})"
        return f"(*{match}, {more[1:-1].rstrip(',')})"

    def _more(self, step: SequenceStep) -> str:
        """A collecting match with one event more; its values stand last in it."""
        positions = self._own_fields(step)
        if not positions:
            return "m"
        grown = [
            f"m[{p}] + 1"
            if self.fields[p][1] == ""
            else f"(*m[{p}], {self._column(step, self.fields[p][1])})"
            for p in positions
        ]
        before = f"*m[:{positions[0]}], " if positions[0] else ""
        return f"({before}{', '.join(grown)}{',' if not before and len(grown) == 1 else ''})"

    def _expire(self) -> None:
        w, within = self.writer, self.sequence.within
        for i in self.waits:
            shared = i > 0 and self.steps[i - 1].counted
            there = f"m{i + 1} is not None" + (f" and m{i + 1} is not True" if shared else "")
            began = f"m{i + 1}[0]"
            old = f"{self.now} - {began} > {within} or {began} - ts > {within}"
            with w.block(f"if {there} and ({old})"):
                w.line(f"m{i + 1} = None")
                if self.steps[i].counted:
                    with w.block(f"if m{i + 2} is True"):
                        w.line(f"m{i + 2} = None")

    def _single(self, at: int, sink: RowSink) -> None:
        """An element of one event: the match moves on; in a sequence it never stays."""
        w, test = self.writer, self._test(at)
        w.line(comment_text(self.steps[at].leaf.slot))
        if at == 0:
            free = ["n2 is None"] if self.steps[1].counted else []
            with w.block(f"if {' and '.join(filter(None, [*free, test])) or True}"):
                self._enter(1, self._fresh(0, "c_"), free=True)
            return
        shared = self.steps[at - 1].counted
        with w.block(f"if m{at + 1} is not None"):
            w.line(
                f"m = m{at} if m{at + 1} is True else m{at + 1}" if shared else f"m = m{at + 1}"
            )
            with w.block(f"if {test or True}"):
                if at + 1 == len(self.steps):
                    self._deliver(sink)
                else:
                    self._enter(at + 1, self._plus("m", self._fresh(at, "c_")))
                if shared:
                    with w.block(f"if m{at + 1} is True"):
                        w.line(f"m{at} = {None if at > 1 else False}")

    def _enter(self, at: int, match: str, *, free: bool = False) -> None:
        """A match comes to an element; a counted one may hold another, which then stays."""
        w = self.writer
        if not self.steps[at].counted:
            w.line(f"n{at + 1} = {match}")
            return
        if not free:
            with w.block(f"if n{at + 1} is None"):
                self._enter(at, match, free=True)
            return
        w.line(f"n{at + 1} = {self._plus(match, self._fresh(at))}")
        if self.steps[at].least == 0:
            with w.block(f"if n{at + 2} is None"):
                w.line(f"n{at + 2} = True")

    def _collect(self, at: int) -> None:
        w, step, test = self.writer, self.steps[at], self._test(at)
        w.line(comment_text(f"{step.leaf.slot}: {step.least} to {step.most or 'any number'}"))
        waits = f"m{at + 1} is not None"
        if at == 0 and self.sequence.every:
            with w.block("if m1 is None"):
                w.line(f"m1 = {self._fresh(0)}")
            waits = "m1 is not False"
        elif at == 0:
            waits = "m1 is not None and m1 is not False"
        with w.block(f"if {waits}"):
            w.line(f"m = m{at + 1}")
            with w.block(f"if {test or True}"):
                grown = self._more(step)
                if grown != "m":
                    w.line(f"m = {grown}")
                self._keep_collecting(at, step)

    def _keep_collecting(self, at: int, step: SequenceStep) -> None:
        """One more is in: it goes on collecting, is ready for the next element, or both."""
        w, here, after = self.writer, f"n{at + 1}", f"n{at + 2}"
        if step.most == 1:
            w.line(f"{after} = m")
            return
        if step.most is None:
            w.line(f"{here}, {after} = m, True")
            return
        with w.block(f"if {self._count(step)} == {step.most}"):
            w.line(f"{after} = m")
        with w.block("else"):
            w.line(f"{here}, {after} = m, True")

    def _deliver(self, sink: RowSink) -> None:
        at = len(self.steps) - 1
        exprs = ExprWriter(self.writer, self._resolve(at, whole=True), self.tables)
        data = tuple_text(exprs.value(i.expr) for i in self.query.select.items)
        self.writer.line(sink.write(data))
