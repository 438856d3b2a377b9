"""Aggregate by keeping values: percentiles, distinct, top-k, first, last, the whole."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from edgewise.eep.aggregate import Aggregate, Array, Result


class Percentile(Aggregate):
    """The value at a share of the sorted content; state: a sorted tuple."""

    def __init__(self, share: float) -> None:
        if not 0 <= share <= 1:
            raise ValueError(f"a percentile is a share between 0 and 1, not {share}")
        self.share = share

    def init(self) -> tuple[Any, ...]:
        return ()

    def _find_position(self, state: tuple[Any, ...], value: Any) -> int:
        low, high = 0, len(state)
        while low < high:
            middle = (low + high) // 2
            low, high = (middle + 1, high) if state[middle] < value else (low, middle)
        return low

    def accumulate(self, state: tuple[Any, ...], value: Any) -> tuple[Any, ...]:
        at = self._find_position(state, value)
        return (*state[:at], value, *state[at:])

    def compensate(self, state: tuple[Any, ...], value: Any) -> tuple[Any, ...]:
        at = self._find_position(state, value)
        return state[:at] + state[at + 1 :]

    def merge(self, earlier: tuple[Any, ...], later: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(sorted((*earlier, *later)))

    def emit(self, state: tuple[Any, ...]) -> Any:
        return state[round(self.share * (len(state) - 1))] if state else None


class Distinct(Aggregate):
    """How many different values; state: a dict that is copied, value -> how often."""

    def init(self) -> dict[Any, int]:
        return {}

    def accumulate(self, state: dict[Any, int], value: Any) -> dict[Any, int]:
        return {**state, value: state.get(value, 0) + 1}

    def compensate(self, state: dict[Any, int], value: Any) -> dict[Any, int]:
        left = state.get(value, 0) - 1
        if left > 0:
            return {**state, value: left}
        return {other: count for other, count in state.items() if other != value}

    def merge(self, earlier: dict[Any, int], later: dict[Any, int]) -> dict[Any, int]:
        return {**earlier, **{v: earlier.get(v, 0) + n for v, n in later.items()}}

    def emit(self, state: dict[Any, int]) -> int:
        return len(state)


class TopK(Distinct):
    """The k most frequent values, most frequent first; ties in the order of their text."""

    def __init__(self, k: int) -> None:
        self.k = k

    def emit(self, state: dict[Any, int]) -> Any:
        return sorted(state, key=lambda v: (-state[v], repr(v)))[: self.k]


class First(Aggregate):
    """The oldest value inside; not invertible alone, so windows merge."""

    invertible = False

    def init(self) -> Any:
        return ()

    def accumulate(self, state: Any, value: Any) -> Any:
        return state or (value,)

    def merge(self, earlier: Any, later: Any) -> Any:
        return earlier or later

    def emit(self, state: Any) -> Any:
        return state[0] if state else None


class Last(First):
    """The newest value inside."""

    def accumulate(self, state: Any, value: Any) -> Any:
        return (value,)

    def merge(self, earlier: Any, later: Any) -> Any:
        return later or earlier


class Whole(Aggregate):
    """Hands the whole content, as an array, to a function: `Whole(black_scholes)`."""

    def __init__(self, function: Callable[[Array], Result]) -> None:
        self.function = function

    def init(self) -> deque[Any]:
        return deque()

    def accumulate(self, state: deque[Any], value: Any) -> deque[Any]:
        state.append(value)
        return state

    def compensate(self, state: deque[Any], value: Any) -> deque[Any]:
        state.popleft()
        return state

    def emit(self, state: deque[Any]) -> Result:
        return self.function(np.asarray(state))

    def tumble(self, blocks: Array) -> Sequence[Result]:
        return [self.function(row) for row in blocks]

    def fold_ranges(self, values: Array, starts: Array) -> Sequence[Result]:
        return [self.function(part) for part in np.split(values, starts[1:])]
