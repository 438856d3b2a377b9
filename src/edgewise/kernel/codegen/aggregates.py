"""Write aggregates as text: current rows add, expired rows subtract, a reset clears.

An aggregate owns a few cells of its group's list `G`, from `at` on. Its four pieces of text are
pasted into the selector's loop, so a count costs one addition and no call. Null arguments are
skipped. min and max keep a monotonic queue, so a sliding window pays a constant amortised price.

What the aggregates of the language mean is defined in `eep.language`; the text here is the same
by a law of `eep.laws`, and faster. A user's own aggregate is called: one verb per row.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from edgewise.eep.language import DEFINITIONS, fold
from edgewise.event.types import AttrType
from edgewise.kernel.codegen.code_writer import CodeWriter
from edgewise.kernel.codegen.function_binding import aggregate_name
from edgewise.plan.exprs import Agg

__all__ = ["DEFINITIONS", "AggregateText", "aggregate", "fold", "joined"]


@dataclass(frozen=True, slots=True)
class AggregateText:
    """`start` are the cells of an empty group; the rest is Python text."""

    start: tuple[str, ...]
    add: tuple[str, ...]
    subtract: tuple[str, ...]
    value: str
    forever: bool = False  # outlives the rows of its group


def aggregate(
    w: CodeWriter,
    agg: Agg,
    args: tuple[str, ...],
    at: int,
    *,
    uneven: bool = False,
    in_turn: bool = False,
    only_added: bool = False,
) -> AggregateText:
    """`uneven`: more may leave than came, so that something added may leave nothing counted.

    `in_turn`: rows leave in the order they came. `only_added`: no row ever leaves.
    """
    if agg.body is not None:
        keeps = not only_added and (uneven or not agg.body.invertible)
        return _called(agg, args, at, aggregate_name(w, agg, retaining=keeps))
    make = _MAKERS.get(agg.name.lower())
    if make is None:
        raise LookupError(f"the aggregate '{agg.name}' is not known here")
    code = make(agg, args, at)
    if in_turn:
        turn = tuple(line.replace("agg.leave(", "agg.leave_in_turn(") for line in code.subtract)
        return replace(code, subtract=turn)
    if uneven and agg.name.lower() == "sum":
        added = f"kind == 0 and {args[0]} is not None and not G[{at + 1}]"
        return replace(code, value=f"(G[{at}] if {added} else {code.value})")
    return code


def _called(agg: Agg, args: tuple[str, ...], at: int, name: str) -> AggregateText:
    """A user's own: several arguments are one value, a tuple."""
    assert agg.body is not None
    cell, value = f"G[{at}]", args[0] if len(args) == 1 else f"({', '.join(args)})"
    known = "" if agg.body.takes_null else " and ".join(f"{x} is not None" for x in args)

    def step(verb: str) -> tuple[str, ...]:
        line = f"{cell} = {name}.{verb}({cell}, {value})"
        return (f"if {known}:", f"    {line}") if known else (line,)

    result = f"{name}.emit({cell})"
    return AggregateText(
        (f"{name}.init()",),
        step("accumulate"),
        step("compensate"),
        f"fn.single({result})" if agg.type is AttrType.FLOAT else result,
    )


def _count(_agg: Agg, _args: tuple[str, ...], at: int) -> AggregateText:
    """Of rows, whatever is in them: `count(v)` counts null too."""
    return AggregateText(("0",), (f"G[{at}] += 1",), (f"G[{at}] -= 1",), f"G[{at}]")


def _guarded(x: str, *lines: str) -> tuple[str, ...]:
    return (f"if {x} is not None:", *(f"    {line}" for line in lines))


def _sum(agg: Agg, args: tuple[str, ...], at: int) -> AggregateText:
    x, total, n = args[0], f"G[{at}]", f"G[{at + 1}]"
    whole = agg.type is AttrType.LONG
    return AggregateText(
        ("0" if whole else "0.0", "0"),
        _guarded(x, f"{total} += {x}", f"{n} += 1"),
        _guarded(x, f"{total} -= {x}", f"{n} -= 1"),
        f"({f'java.wrap64({total})' if whole else total} if {n} else None)",
    )


def _avg(_agg: Agg, args: tuple[str, ...], at: int) -> AggregateText:
    x, total, n = args[0], f"G[{at}]", f"G[{at + 1}]"
    return AggregateText(
        ("0.0", "0"),
        _guarded(x, f"{total} += {x}", f"{n} += 1"),
        _guarded(x, f"{total} -= {x}", f"{n} -= 1"),
        f"({total} / {n} if {n} else None)",
    )


def _extreme(worse: str) -> Callable[[Agg, tuple[str, ...], int], AggregateText]:
    def make(_agg: Agg, args: tuple[str, ...], at: int) -> AggregateText:
        x, queue = args[0], f"G[{at}]"
        return AggregateText(
            ("deque()",),
            _guarded(
                x,
                f"while {queue} and {queue}[-1] {worse} {x}:",
                f"    {queue}.pop()",
                f"{queue}.append({x})",
            ),
            _guarded(x, f"agg.leave({queue}, {x})"),
            f"({queue}[0] if {queue} else None)",
        )

    return make


def _extreme_forever(better: str) -> Callable[[Agg, tuple[str, ...], int], AggregateText]:
    def make(_agg: Agg, args: tuple[str, ...], at: int) -> AggregateText:
        x, best = args[0], f"G[{at}]"
        lines = (
            f"if {x} is not None and ({best} is None or {x} {better} {best}):",
            f"    {best} = {x}",
        )
        return AggregateText(("None",), lines, lines, best, forever=True)

    return make


def _std_dev(_agg: Agg, args: tuple[str, ...], at: int) -> AggregateText:
    x, cells = args[0], f"G[{at}]"
    return AggregateText(
        ("[0, 0.0, 0.0]",),
        _guarded(x, f"agg.spread_add({cells}, {x})"),
        _guarded(x, f"agg.spread_subtract({cells}, {x})"),
        f"agg.spread({cells})",
    )


def _distinct(_agg: Agg, args: tuple[str, ...], at: int) -> AggregateText:
    x, seen = args[0], f"G[{at}]"
    return AggregateText(
        ("{}",),
        (f"{seen}[{x}] = {seen}.get({x}, 0) + 1",),
        (f"agg.forget({seen}, {x})",),
        f"len({seen})",
    )


def _truth(name: str) -> Callable[[Agg, tuple[str, ...], int], AggregateText]:
    def make(_agg: Agg, args: tuple[str, ...], at: int) -> AggregateText:
        x, true, false = args[0], f"G[{at}]", f"G[{at + 1}]"
        value = f"({false} == 0 and {true} > 0)" if name == "and" else f"({true} > 0)"

        def step(sign: str) -> tuple[str, ...]:
            return (
                f"if {x} is True:",
                f"    {true} {sign}= 1",
                f"elif {x} is False:",
                f"    {false} {sign}= 1",
                f"elif {x} is not None:",
                f"    raise BadEvent(f'{name}() needs a bool, not {{{x}!r}}')",
            )

        return AggregateText(("0", "0"), step("+"), step("-"), value)

    return make


def _union(_agg: Agg, args: tuple[str, ...], at: int) -> AggregateText:
    x, seen = args[0], f"G[{at}]"
    return AggregateText(
        ("{}",),
        (f"agg.union({seen}, {x})",),
        (f"agg.ununion({seen}, {x})",),
        f"frozenset({seen})",
    )


_MAKERS: dict[str, Callable[[Agg, tuple[str, ...], int], AggregateText]] = {
    "count": _count,
    "sum": _sum,
    "avg": _avg,
    "min": _extreme(">"),
    "max": _extreme("<"),
    "minforever": _extreme_forever("<"),
    "maxforever": _extreme_forever(">"),
    "stddev": _std_dev,
    "distinctcount": _distinct,
    "and": _truth("and"),
    "or": _truth("or"),
    "unionset": _union,
}


def joined(*values: Any) -> tuple[Any, ...] | None:
    """Several arguments as one value; null where one of them is."""
    return None if None in values else values


def leave_in_turn(queue: deque[Any], value: Any) -> None:
    """What leaves is the head, or a better value already pushed it out; one like it may be new."""
    if queue and queue[0] == value:
        queue.popleft()


def leave(queue: deque[Any], value: Any) -> None:
    """What leaves is the head, where rows leave in the order they came; else the first like it.

    A value that a better one pushed out is not in here, and does not come back when that one
    leaves first (sorted windows, sessions by key): so the original counts.
    """
    if queue and queue[0] == value:
        queue.popleft()
    elif value in queue:
        queue.remove(value)


def spread_add(cells: list[Any], value: float) -> None:
    """Welford: cells are n, mean, sum of squared distances."""
    cells[0] += 1
    if not cells[0]:  # more had left than came
        return
    if cells[0] == 1:
        cells[1], cells[2] = value, 0.0
        return
    delta = value - cells[1]
    cells[1] += delta / cells[0]
    cells[2] += delta * (value - cells[1])


def spread_subtract(cells: list[Any], value: float) -> None:
    cells[0] -= 1
    if cells[0] == 0:
        cells[1] = cells[2] = 0.0
        return
    old = cells[1]
    cells[1] = old - (value - old) / cells[0]
    cells[2] -= (value - cells[1]) * (value - old)


def spread(cells: list[Any]) -> float | None:
    if cells[0] == 0:
        return None
    if cells[0] == 1:
        return 0.0
    return float((max(0.0, cells[2]) / cells[0]) ** 0.5)


def forget(seen: dict[Any, int], value: Any) -> None:
    left = seen.get(value, 0) - 1
    if left > 0:
        seen[value] = left
    else:
        seen.pop(value, None)


def union(seen: dict[Any, int], values: Any) -> None:
    for value in values or ():
        seen[value] = seen.get(value, 0) + 1


def ununion(seen: dict[Any, int], values: Any) -> None:
    for value in values or ():
        forget(seen, value)
