"""Split conditions of a pattern's elements: what reads one event, what compares it with others.

    e2[v < 5 and k == e1.k and v > e1.v and w != e1.w]
       own      v < 5          once for an event, however many matches wait
       keys     k, e1.k        finds matches in a dictionary
       bounds   v > e1.v       finds them among matches sorted by e1.v
       rest     w != e1.w      tested on what was found

Only what is known when a match comes to an element can place it in an index: events of elements
that are over by then. A counted element before it may go on collecting: of it the events below its
least number are known. Kernels write code by this, `explain` says by it what a pattern costs.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from edgewise.event.types import NUMERIC, AttrType
from edgewise.plan.exprs import (
    Agg,
    And,
    Arith,
    Call,
    Compare,
    Const,
    Expr,
    Field,
    InTable,
    IsNull,
    Not,
    Or,
    SlotIsNull,
    SlotTime,
    conjuncts,
    walk,
)
from edgewise.plan.nodes import (
    AbsentState,
    ChainState,
    CountState,
    EveryState,
    Filter,
    LogicalState,
    State,
    StreamState,
)

Leaf = StreamState | AbsentState

_PURE = Const | Field | Arith | Compare | And | Or | Not | IsNull
_UNLIKE = {"uuid", "math:rand"}  # another value each time
_FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
# Types that Python compares as Java does, without a conversion first.
_ALIKE = (
    {AttrType.INT, AttrType.LONG},
    {AttrType.INT, AttrType.DOUBLE},
    {AttrType.FLOAT, AttrType.DOUBLE},
)


@dataclass(frozen=True, slots=True)
class ElementCondition:
    """`keys` are (of the event, of the match); `bounds` hold for `value`, which is of the match:
    '<' wants it below what stands beside it, which is of the event.
    """

    own: tuple[Expr, ...] = ()
    cross: tuple[Expr, ...] = ()  # all that reads other events
    keys: tuple[tuple[Expr, Expr], ...] = ()
    value: Expr | None = None
    bounds: tuple[tuple[str, Expr], ...] = ()
    rest: tuple[Expr, ...] = ()  # of `cross`, what neither keys nor bounds say

    @property
    def pure(self) -> bool:
        """Whether `own` says the same whenever it is asked, and cannot fail."""
        return all(isinstance(n, _PURE) for e in self.own for n in walk(e))


@dataclass(slots=True)
class _Known:
    """How many events of each slot before an element are known: 1, or the least of a count."""

    least: dict[str, int] = field(default_factory=dict)
    counted: set[str] = field(default_factory=set)

    def note(self, state: State) -> None:
        match state:
            case StreamState():
                self.least[state.slot] = 1
            case CountState():
                self.least[state.state.slot] = state.least
                self.counted.add(state.state.slot)
            case LogicalState():
                self.note(state.left)
                self.note(state.right)
            case EveryState():
                self.note(state.state)
            case ChainState():
                for part in state.states:
                    self.note(part)

    def has(self, expr: Field) -> bool:
        if expr.slot not in self.least:
            return False
        if expr.slot in self.counted:
            return expr.index is not None and 0 <= expr.index < self.least[expr.slot]
        return expr.index in {None, 0}


def split_conditions(state: State) -> dict[str, ElementCondition]:
    """The condition of every element, by its slot."""
    found: dict[str, ElementCondition] = {}
    known = _Known()

    def visit(part: State) -> None:
        match part:
            case ChainState():
                for inner in part.states:
                    visit(inner)
                    known.note(inner)
            case EveryState() | CountState():
                visit(part.state)
            case LogicalState():
                visit(part.left)
                visit(part.right)
            case _:
                found[part.slot] = _split(part, known)

    visit(state)
    return found


def _split(leaf: Leaf, known: _Known) -> ElementCondition:
    parts = [c for h in leaf.handlers if isinstance(h, Filter) for c in conjuncts(h.condition)]
    own = tuple(c for c in parts if _is_own(c, leaf.slot))
    cross = tuple(c for c in parts if c not in own)
    keys: list[tuple[Expr, Expr]] = []
    ranges: dict[Expr, list[tuple[str, Expr, Expr]]] = {}
    used: list[Expr] = []
    for part in cross:
        sides = _sides(part, leaf.slot, known)
        if sides is None:
            continue
        op, mine, theirs = sides
        if op == "==":
            keys.append((mine, theirs))
            used.append(part)
        elif op in _FLIPPED:
            ranges.setdefault(theirs, []).append((op, mine, part))
    value, bounds = None, tuple[tuple[str, Expr], ...]()
    if ranges:  # one order: that in which most is asked
        value = max(ranges, key=lambda theirs: len(ranges[theirs]))
        bounds = tuple((op, mine) for op, mine, _ in ranges[value])
        used += [part for *_, part in ranges[value]]
    rest = tuple(c for c in cross if c not in used)
    return ElementCondition(own, cross, tuple(keys), value, bounds, rest)


def _is_own(expr: Expr, slot: str) -> bool:
    """Reads the event at hand alone, and is the same for every match."""
    nodes = walk(expr)
    tables = {n.table for n in nodes if isinstance(n, InTable)}
    for node in nodes:
        match node:
            case Field():
                if node.slot not in tables and (node.slot != slot or node.index is not None):
                    return False
            case SlotTime():
                if node.slot not in {"", slot} or node.index is not None:
                    return False
            case SlotIsNull() | Agg():
                return False
            case Call():
                if node.body is not None or node.name.lower() in _UNLIKE:
                    return False
    return True


def _sides(expr: Expr, slot: str, known: _Known) -> tuple[str, Expr, Expr] | None:
    """A comparison of the event with known ones: what the match's side must be to the event's."""
    if not isinstance(expr, Compare) or not _compares_alike(expr):
        return None
    for mine, theirs, op in (
        (expr.left, expr.right, _FLIPPED.get(expr.op, expr.op)),
        (expr.right, expr.left, expr.op),
    ):
        if _reads_only_own(mine, slot) and _reads_only_known(theirs, known):
            return op, mine, theirs
    return None


def _compares_alike(expr: Compare) -> bool:
    kinds = {expr.left.type, expr.right.type}
    if expr.op != "==" and not kinds <= set(NUMERIC):
        return False
    return AttrType.OBJECT not in kinds and (
        len(kinds) == 1 or any(kinds <= alike for alike in _ALIKE)
    )


def _reads_only_own(expr: Expr, slot: str) -> bool:
    nodes = walk(expr)
    return all(isinstance(n, _PURE) for n in nodes) and {
        (n.slot, n.index) for n in nodes if isinstance(n, Field)
    } == {(slot, None)}


def _reads_only_known(expr: Expr, known: _Known) -> bool:
    nodes = walk(expr)
    fields = [n for n in nodes if isinstance(n, Field)]
    return (
        bool(fields) and all(isinstance(n, _PURE) for n in nodes) and all(map(known.has, fields))
    )
