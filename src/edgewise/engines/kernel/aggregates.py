"""Aggregators as text: current rows add, expired rows subtract, a reset clears.

An aggregator owns a few cells of its group's list `G`, from `at` on. Its four pieces of text are
pasted into the selector's loop, so a count costs one addition and no call. Null arguments are
skipped. min and max keep a monotonic queue, so a sliding window pays a constant amortised price.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from edgewise.event.types import AttrType
from edgewise.plan.exprs import Agg


@dataclass(frozen=True, slots=True)
class AggCode:
    """`start` are the cells of an empty group; the rest is Python text."""

    start: tuple[str, ...]
    add: tuple[str, ...]
    subtract: tuple[str, ...]
    value: str
    forever: bool = False  # outlives the rows of its group


def aggregate(
    agg: Agg, args: tuple[str, ...], at: int, *, uneven: bool = False, in_turn: bool = False
) -> AggCode:
    """`uneven`: more may leave than came, so that something added may leave nothing counted.

    `in_turn`: rows leave in the order they came.
    """
    make = _MAKERS.get(agg.name.lower())
    if make is None:
        raise LookupError(f"the aggregator '{agg.name}' is not known here")
    code = make(agg, args, at)
    if in_turn:
        turn = tuple(line.replace("agg.leave(", "agg.leave_in_turn(") for line in code.subtract)
        return replace(code, subtract=turn)
    if uneven and agg.name.lower() == "sum":
        added = f"kind == 0 and {args[0]} is not None and not G[{at + 1}]"
        return replace(code, value=f"(G[{at}] if {added} else {code.value})")
    return code


def _count(agg: Agg, args: tuple[str, ...], at: int) -> AggCode:
    if agg.args:
        x = args[0]
        return AggCode(
            ("0",), (f"G[{at}] += {x} is not None",), (f"G[{at}] -= {x} is not None",), f"G[{at}]"
        )
    return AggCode(("0",), (f"G[{at}] += 1",), (f"G[{at}] -= 1",), f"G[{at}]")


def _guarded(x: str, *lines: str) -> tuple[str, ...]:
    return (f"if {x} is not None:", *(f"    {line}" for line in lines))


def _sum(agg: Agg, args: tuple[str, ...], at: int) -> AggCode:
    x, total, n = args[0], f"G[{at}]", f"G[{at + 1}]"
    whole = agg.type is AttrType.LONG
    return AggCode(
        ("0" if whole else "0.0", "0"),
        _guarded(x, f"{total} += {x}", f"{n} += 1"),
        _guarded(x, f"{total} -= {x}", f"{n} -= 1"),
        f"({f'java.wrap64({total})' if whole else total} if {n} else None)",
    )


def _avg(_agg: Agg, args: tuple[str, ...], at: int) -> AggCode:
    x, total, n = args[0], f"G[{at}]", f"G[{at + 1}]"
    return AggCode(
        ("0.0", "0"),
        _guarded(x, f"{total} += {x}", f"{n} += 1"),
        _guarded(x, f"{total} -= {x}", f"{n} -= 1"),
        f"({total} / {n} if {n} else None)",
    )


def _extreme(worse: str) -> Callable[[Agg, tuple[str, ...], int], AggCode]:
    def make(_agg: Agg, args: tuple[str, ...], at: int) -> AggCode:
        x, queue = args[0], f"G[{at}]"
        return AggCode(
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


def _extreme_forever(better: str) -> Callable[[Agg, tuple[str, ...], int], AggCode]:
    def make(_agg: Agg, args: tuple[str, ...], at: int) -> AggCode:
        x, best = args[0], f"G[{at}]"
        lines = (
            f"if {x} is not None and ({best} is None or {x} {better} {best}):",
            f"    {best} = {x}",
        )
        return AggCode(("None",), lines, lines, best, forever=True)

    return make


def _std_dev(_agg: Agg, args: tuple[str, ...], at: int) -> AggCode:
    x, cells = args[0], f"G[{at}]"
    return AggCode(
        ("[0, 0.0, 0.0]",),
        _guarded(x, f"agg.spread_add({cells}, {x})"),
        _guarded(x, f"agg.spread_subtract({cells}, {x})"),
        f"agg.spread({cells})",
    )


def _distinct(_agg: Agg, args: tuple[str, ...], at: int) -> AggCode:
    x, seen = args[0], f"G[{at}]"
    return AggCode(
        ("{}",),
        (f"{seen}[{x}] = {seen}.get({x}, 0) + 1",),
        (f"agg.forget({seen}, {x})",),
        f"len({seen})",
    )


def _truth(name: str) -> Callable[[Agg, tuple[str, ...], int], AggCode]:
    def make(_agg: Agg, args: tuple[str, ...], at: int) -> AggCode:
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

        return AggCode(("0", "0"), step("+"), step("-"), value)

    return make


def _union(_agg: Agg, args: tuple[str, ...], at: int) -> AggCode:
    x, seen = args[0], f"G[{at}]"
    return AggCode(
        ("{}",),
        (f"agg.union({seen}, {x})",),
        (f"agg.ununion({seen}, {x})",),
        f"frozenset({seen})",
    )


_MAKERS: dict[str, Callable[[Agg, tuple[str, ...], int], AggCode]] = {
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


def fold(name: str, values: list[Any]) -> Any:
    """An aggregator over a whole list at once."""
    there = [v for v in values if v is not None]
    if name == "count":
        return len(values)
    if name == "distinctcount":
        return len(set(there))
    if not there:
        return None
    if name == "avg":
        return sum(there) / len(there)
    if name == "sum":
        return sum(there)
    return min(there) if name == "min" else max(there)
