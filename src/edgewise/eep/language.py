"""Define the aggregates of the language: `sum`, `avg`, `stdDev` and the others, by name.

This is what they mean. The kernels run straight-line code for them instead, because a call per row
and aggregate would cost more than all else; `laws.follows_definition` holds that code to these
definitions (`tests/kernel/codegen/test_aggregates.py`). They differ from the aggregates of the
library where the original does: a sum of nothing is null, whole numbers wrap at 64 bits, numbers
with a fraction are added as they come, a deviation is that of the whole population.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from edgewise.eep.aggregate import Aggregate
from edgewise.eep.contents import Distinct
from edgewise.eep.numeric import Count, Max, Min, StdDev

_TOP = 1 << 63


class Total(Aggregate):
    """State: (sum, how many)."""

    def init(self) -> tuple[Any, int]:
        return (0, 0)

    def accumulate(self, state: tuple[Any, int], value: Any) -> tuple[Any, int]:
        return (state[0] + value, state[1] + 1)

    def compensate(self, state: tuple[Any, int], value: Any) -> tuple[Any, int]:
        return (state[0] - value, state[1] - 1)

    def merge(self, earlier: tuple[Any, int], later: tuple[Any, int]) -> tuple[Any, int]:
        return (earlier[0] + later[0], earlier[1] + later[1])

    def emit(self, state: tuple[Any, int]) -> Any:
        total, count = state
        if not count:
            return None
        return (total + _TOP) % (2 * _TOP) - _TOP if isinstance(total, int) else total


class Average(Total):
    def emit(self, state: tuple[Any, int]) -> float | None:
        return state[0] / state[1] if state[1] else None


class WholeAverage(Total):
    """Of whole numbers in an aggregation by time: divided without a rest, as the original does."""

    def emit(self, state: tuple[Any, int]) -> float | None:
        total, count = state
        if not count:
            return None
        mean = abs(total) // count
        return float(mean if total >= 0 else -mean)


class RowCount(Count):
    """Of rows, whatever is in them."""

    takes_null = True


class Deviation(StdDev):
    """Of the population: divided by n."""

    ddof = 0


class Forever(Aggregate):
    """An extreme that remembers values which left: until a reset, all that were ever inside."""

    def __init__(self, inner: Aggregate) -> None:
        self.inner = inner

    def init(self) -> Any:
        return self.inner.init()

    def accumulate(self, state: Any, value: Any) -> Any:
        return self.inner.accumulate(state, value)

    def compensate(self, state: Any, value: Any) -> Any:
        return self.inner.accumulate(state, value)

    def merge(self, earlier: Any, later: Any) -> Any:
        return self.inner.merge(earlier, later)

    def emit(self, state: Any) -> Any:
        return self.inner.emit(state)


class _Truth(Aggregate):
    """State: (how many true, how many false)."""

    def init(self) -> tuple[int, int]:
        return (0, 0)

    def accumulate(self, state: tuple[int, int], value: bool) -> tuple[int, int]:
        return (state[0] + 1, state[1]) if value else (state[0], state[1] + 1)

    def compensate(self, state: tuple[int, int], value: bool) -> tuple[int, int]:
        return (state[0] - 1, state[1]) if value else (state[0], state[1] - 1)

    def merge(self, earlier: tuple[int, int], later: tuple[int, int]) -> tuple[int, int]:
        return (earlier[0] + later[0], earlier[1] + later[1])


class All(_Truth):
    def emit(self, state: tuple[int, int]) -> bool:
        return state[0] > 0 and not state[1]


class Any_(_Truth):  # noqa: N801  `Any` is a type
    def emit(self, state: tuple[int, int]) -> bool:
        return state[0] > 0


class DistinctWithNull(Distinct):
    """Null is a value like others here."""

    takes_null = True


class Union(Aggregate):
    """The union of sets; state: how many sets hold each item."""

    def init(self) -> dict[Any, int]:
        return {}

    def accumulate(self, state: dict[Any, int], value: Any) -> dict[Any, int]:
        return {**state, **{item: state.get(item, 0) + 1 for item in value}}

    def compensate(self, state: dict[Any, int], value: Any) -> dict[Any, int]:
        after = {**state, **{item: state.get(item, 0) - 1 for item in value}}
        return {item: count for item, count in after.items() if count > 0}

    def merge(self, earlier: dict[Any, int], later: dict[Any, int]) -> dict[Any, int]:
        return {**earlier, **{item: earlier.get(item, 0) + n for item, n in later.items()}}

    def emit(self, state: dict[Any, int]) -> frozenset[Any]:
        return frozenset(state)


DEFINITIONS: Mapping[str, Aggregate] = {
    "count": RowCount(),
    "sum": Total(),
    "avg": Average(),
    "avg of whole": WholeAverage(),
    "min": Min(),
    "max": Max(),
    "minforever": Forever(Min()),
    "maxforever": Forever(Max()),
    "stddev": Deviation(),
    "distinctcount": DistinctWithNull(),
    "and": All(),
    "or": Any_(),
    "unionset": Union(),
}


def fold(aggregate: Any, values: Iterable[Any]) -> Any:
    """The result over some values at once, without the nulls unless it takes them."""
    state = aggregate.init()
    for value in values:
        if value is not None or aggregate.takes_null:
            state = aggregate.accumulate(state, value)
    return aggregate.emit(state)
