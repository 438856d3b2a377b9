"""Write an index over many filters on one stream, so that they are not asked one by one.

A query whose first filter can only hold where an attribute equals a constant, one of several, or
lies in a range, is entered under that; what stands beside it with `and` does not matter. An event
then goes to the queries under its own values and to those that could not be entered, in order of
definition. Each query still tests its whole filter.

    S[k == 'a' and v > 3], S[k == 'b'], S[v > 9]     by k: {'a': (0, 2), 'b': (1, 2)}, rest (2,)
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from edgewise.event.types import AttrType
from edgewise.kernel.codegen.fragment_builder import FragmentBuilder
from edgewise.kernel.codegen.stream_query import QueryWriter, StreamQueryWriter
from edgewise.kernel.functions import java
from edgewise.plan.exprs import And, Compare, Const, Expr, Field, Or
from edgewise.plan.nodes import Filter

INDEX_MIN = 4  # fewer filters are faster asked one by one
PARTS_MAX = 4  # attributes looked at for one event

_FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "=="}
_WHOLE = (AttrType.INT, AttrType.LONG)
# Constants whose order with an attribute Java and Python see alike, whatever their size.
_ORDERED = {
    AttrType.INT: _WHOLE,
    AttrType.LONG: _WHOLE,
    AttrType.FLOAT: (AttrType.FLOAT, AttrType.DOUBLE),
    AttrType.DOUBLE: (AttrType.INT, AttrType.FLOAT, AttrType.DOUBLE),
}


@dataclass(frozen=True, slots=True)
class ValueRange:
    """None is no end; `above` and `below` leave the end itself out."""

    low: Any = None
    above: bool = False
    high: Any = None
    below: bool = False

    def both(self, other: ValueRange) -> ValueRange:
        low, above = max(
            (
                (e, o)
                for e, o in ((self.low, self.above), (other.low, other.above))
                if e is not None
            ),
            default=(None, False),
        )
        high, closed = min(
            ((e, not o) for e, o in ((self.high, self.below), (other.high, other.below))
             if e is not None),
            default=(None, True),
        )  # fmt: skip
        return ValueRange(low, above, high, not closed)


WantedValues = dict[int, frozenset[Any] | ValueRange]  # by position: what an attribute must be
Reader = tuple[QueryWriter | None, Sequence[str]]  # None: asked about every event


@dataclass(frozen=True, slots=True)
class FilterIndex:
    """Entries in order of definition; what they want, by position; those that want everything."""

    entries: tuple[str, ...]
    values: dict[int, dict[Any, list[int]]]
    ranges: dict[int, list[tuple[ValueRange, int]]]
    rest: list[int]


def build_filter_index(readers: Sequence[Reader]) -> FilterIndex | None:
    """None where an index would not pay."""
    entries: list[str] = []
    waiting: dict[int, WantedValues] = {}
    for code, names in readers:
        wanted = _wanted(code) if code is not None else {}
        waiting |= dict.fromkeys(range(len(entries), len(entries) + len(names)), wanted)
        entries += names
    found = FilterIndex(tuple(entries), {}, {}, [])
    for _ in range(PARTS_MAX):
        position, ranged = _most_wanted(waiting)
        if position is None:
            break
        mine = [n for n, w in waiting.items() if isinstance(w.get(position), ValueRange) is ranged]
        for n in [n for n in mine if position in waiting[n]]:
            want = waiting.pop(n)[position]
            if isinstance(want, ValueRange):
                found.ranges.setdefault(position, []).append((want, n))
                continue
            for value in want:
                found.values.setdefault(position, {}).setdefault(value, []).append(n)
    found.rest.extend(waiting)
    return found if found.values or found.ranges else None


def _most_wanted(waiting: dict[int, WantedValues]) -> tuple[int | None, bool]:
    """The position where an index spares most queries an event, and whether by range."""
    groups: dict[tuple[int, bool], list[frozenset[Any] | ValueRange]] = {}
    for wanted in waiting.values():
        for position, want in wanted.items():
            groups.setdefault((position, isinstance(want, ValueRange)), []).append(want)
    spared = {name: _spared(wants) for name, wants in groups.items() if len(wants) >= INDEX_MIN}
    return max(spared, key=lambda name: (spared[name], not name[1]), default=(None, False))


def _spared(wants: list[frozenset[Any] | ValueRange]) -> float:
    """How many queries an event is not tried on, if all values and all segments are as likely."""
    values = {value for want in wants if not isinstance(want, ValueRange) for value in want}
    ranges = [want for want in wants if isinstance(want, ValueRange)]
    ends = sorted({end for r in ranges for end in (r.low, r.high) if end is not None})
    tried = 0.0
    for want in wants:
        if isinstance(want, ValueRange):
            low = 0 if want.low is None else bisect_left(ends, want.low) + 1
            high = len(ends) if want.high is None else bisect_left(ends, want.high)
            tried += max(0, high - low + 1) / (len(ends) + 1)
        else:
            tried += len(want) / (len(values) + 1)  # and any other value
    return len(wants) - tried


def write_index(builder: FragmentBuilder, name: str, found: FilterIndex) -> None:
    """`name_find(row)`: the functions to call, in order."""
    w = builder.writer
    if len(found.values) == 1 and not found.ranges:
        _write_by_value(builder, name, found)
        return
    w.line(f"{name}_index = index.Index((")
    for entry in found.entries:
        w.line(f"    {entry},")
    w.line("), (")
    for position, values in found.values.items():
        w.line(f"    index.ByValue({position}, (")
        for value, numbers in values.items():
            w.line(f"        ({value!r}, {tuple(numbers)!r}),")
        w.line("    )),")
    for position, spans in found.ranges.items():
        w.line(f"    index.ByRange({position}, (")
        for r, n in spans:
            w.line(f"        ({r.low!r}, {r.above}, {r.high!r}, {r.below}, {n}),")
        w.line("    )),")
    w.line(f"), {found.rest!r})")


def _write_by_value(builder: FragmentBuilder, name: str, found: FilterIndex) -> None:
    """The commonest index is a plain dictionary."""
    w, names = builder.writer, found.entries
    [(_, by_value)] = found.values.items()
    w.line(f"{name}_rest = ({''.join(f'{names[n]}, ' for n in found.rest)})")
    w.line(f"{name}_index = {{")
    for value, mine in by_value.items():
        listed = sorted([*mine, *found.rest])
        w.line(f"    {value!r}: ({''.join(f'{names[n]}, ' for n in listed)}),")
    w.line("}")


def find_text(name: str, found: FilterIndex) -> str:
    """The look-up of the only row of a chunk."""
    if len(found.values) == 1 and not found.ranges:
        return f"{name}_index.get(chunk[0][2][{next(iter(found.values))}], {name}_rest)"
    return f"{name}_index.find(chunk[0][2])"


def _wanted(code: QueryWriter) -> WantedValues:
    """What must hold for anything to happen; nothing for a query that looks at every event."""
    if not isinstance(code, StreamQueryWriter) or code.named or code.query.partition:
        return {}
    window = code.source.window
    if window is not None and window.name.lower() == "batch":
        return {}  # it counts chunks
    first = code.source.before[0] if code.source.before else None
    return _of(code, first.condition) if isinstance(first, Filter) else {}


def _of(code: StreamQueryWriter, expr: Expr) -> WantedValues:
    match expr:
        case And():
            return _both(_of(code, expr.left), _of(code, expr.right))
        case Or():
            return _either(_of(code, expr.left), _of(code, expr.right))
        case Compare():
            return _comparison(code, expr)
        case _:
            return {}


def _both(left: WantedValues, right: WantedValues) -> WantedValues:
    found = {**left, **right}
    for position in left.keys() & right.keys():
        one, two = left[position], right[position]
        if isinstance(one, ValueRange) and isinstance(two, ValueRange):
            found[position] = one.both(two)
        elif not isinstance(one, ValueRange) and not isinstance(two, ValueRange):
            found[position] = one & two
        else:
            found[position] = two if isinstance(one, ValueRange) else one
    return found


def _either(left: WantedValues, right: WantedValues) -> WantedValues:
    found: WantedValues = {}
    for position in left.keys() & right.keys():
        one, two = left[position], right[position]
        if not isinstance(one, ValueRange) and not isinstance(two, ValueRange):
            found[position] = one | two
    return found


def _comparison(code: StreamQueryWriter, expr: Compare) -> WantedValues:
    pairs = ((expr.left, expr.op, expr.right), (expr.right, _FLIPPED.get(expr.op), expr.left))
    for field, op, const in pairs:
        if not isinstance(field, Field) or not isinstance(const, Const) or const.value is None:
            continue
        position = code.names.positions[field.slot, field.name, None]
        value = _constant(const)
        if value != value:  # noqa: PLR0124  NaN
            return {}
        if op == "==":
            return {position: frozenset({value})} if field.type is const.type else {}
        if op not in _FLIPPED or const.type not in _ORDERED.get(field.type, ()):
            return {}
        if op in {">", ">="}:
            return {position: ValueRange(low=value, above=op == ">")}
        return {position: ValueRange(high=value, below=op == "<")}
    return {}


def _constant(const: Const) -> Any:
    """As generated code writes it."""
    if const.type is AttrType.FLOAT:
        return java.f32(const.value)
    return float(const.value) if const.type is AttrType.DOUBLE else const.value
