"""Aggregate numbers: count, sum, min, max, mean, variance, standard deviation.

A whole array at once gives what the four verbs give one by one, but for rounding: a sum carries
what it lost, and no result of a slide depends on more than two windows of values.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from edgewise.eep.aggregate import Aggregate, Array, fold_sliding, split_blocks


class Count(Aggregate):
    """How many values."""

    def init(self) -> int:
        return 0

    def accumulate(self, state: int, value: Any) -> int:
        return state + 1

    def compensate(self, state: int, value: Any) -> int:
        return state - 1

    def merge(self, earlier: int, later: int) -> int:
        return earlier + later

    def emit(self, state: int) -> int:
        return state

    def tumble(self, blocks: Array) -> Sequence[int]:
        return np.full(len(blocks), blocks.shape[1])  # type: ignore[return-value]

    def slide(self, values: Array, n: int) -> Sequence[int]:
        return np.full(max(0, len(values) - n + 1), n)  # type: ignore[return-value]

    def fold_ranges(self, values: Array, starts: Array) -> Array:
        return count_ranges(values, starts)

    def absorb(self, state: int, values: Array) -> int:
        return state + len(values)


def count_ranges(values: Array, starts: Array) -> Array:
    return np.diff(starts, append=len(values))


class Sum(Aggregate):
    """The sum, by Neumaier: the state is (sum, what rounding lost).

    After any number of additions and subtractions the error is within two units in the last place
    of the largest sum on the way.
    """

    def init(self) -> tuple[float, float]:
        return (0, 0)

    def accumulate(self, state: tuple[float, float], value: float) -> tuple[float, float]:
        total, lost = state
        after = total + value
        if abs(total) >= abs(value):
            lost += (total - after) + value
        else:
            lost += (value - after) + total
        return (after, lost)

    def compensate(self, state: tuple[float, float], value: float) -> tuple[float, float]:
        return self.accumulate(state, -value)

    def merge(self, earlier: Any, later: Any) -> Any:
        total, lost = self.accumulate(earlier, later[0])
        return (total, lost + later[1])

    def emit(self, state: tuple[float, float]) -> float | None:
        return state[0] + state[1]

    def tumble(self, blocks: Array) -> Array:
        return blocks.sum(axis=1)

    def slide(self, values: Array, n: int) -> Array:
        return fold_sliding(np.add, values, n)

    def fold_ranges(self, values: Array, starts: Array) -> Array:
        return np.add.reduceat(values, starts)

    def absorb(self, state: Any, values: Array) -> Any:
        return self.accumulate(state, values.sum().item()) if len(values) else state


class _Extreme(Aggregate):
    invertible = False
    fold: Any

    def pick(self, left: Any, right: Any) -> Any:
        raise NotImplementedError

    def init(self) -> Any:
        return None

    def accumulate(self, state: Any, value: Any) -> Any:
        return value if state is None else self.pick(state, value)

    def merge(self, earlier: Any, later: Any) -> Any:
        if earlier is None or later is None:
            return later if earlier is None else earlier
        return self.pick(earlier, later)

    def emit(self, state: Any) -> Any:
        return state

    def tumble(self, blocks: Array) -> Array:
        return type(self).fold.reduce(blocks, axis=1)

    def slide(self, values: Array, n: int) -> Array:
        return fold_sliding(type(self).fold, values, n)

    def fold_ranges(self, values: Array, starts: Array) -> Array:
        return type(self).fold.reduceat(values, starts)

    def absorb(self, state: Any, values: Array) -> Any:
        if not len(values):
            return state
        return self.accumulate(state, type(self).fold.reduce(values).item())


class Min(_Extreme):
    """The smallest value, None over nothing."""

    fold = np.minimum

    def pick(self, left: Any, right: Any) -> Any:
        return min(left, right)


class Max(_Extreme):
    """The largest value, None over nothing."""

    fold = np.maximum

    def pick(self, left: Any, right: Any) -> Any:
        return max(left, right)


class Mean(Sum):
    """The mean, None over nothing; state: (sum, what rounding lost, n)."""

    def init(self) -> Any:
        return (0, 0, 0)

    def accumulate(self, state: Any, value: float) -> Any:
        return (*Sum.accumulate(self, state[:2], value), state[2] + 1)

    def compensate(self, state: Any, value: float) -> Any:
        return (*Sum.accumulate(self, state[:2], -value), state[2] - 1)

    def merge(self, earlier: Any, later: Any) -> Any:
        total, lost = Sum.accumulate(self, earlier[:2], later[0])
        return (total, lost + later[1], earlier[2] + later[2])

    def emit(self, state: Any) -> float | None:
        return (state[0] + state[1]) / state[2] if state[2] else None

    def tumble(self, blocks: Array) -> Array:
        return blocks.mean(axis=1)

    def slide(self, values: Array, n: int) -> Array:
        return fold_sliding(np.add, values, n) / n

    def fold_ranges(self, values: Array, starts: Array) -> Array:
        return np.add.reduceat(values, starts) / count_ranges(values, starts)

    def absorb(self, state: Any, values: Array) -> Any:
        if not len(values):
            return state
        total, lost = Sum.accumulate(self, state[:2], values.sum().item())
        return (total, lost, state[2] + len(values))


class Variance(Aggregate):
    """The variance of a sample (n - 1), by Welford; state: (n, mean, squared distances).

    Taking a large value back would leave its rounding behind for ever, so windows merge instead:
    no result depends on values that are gone.
    """

    invertible = False
    ddof = 1

    def init(self) -> tuple[int, float, float]:
        return (0, 0.0, 0.0)

    def accumulate(self, state: tuple[int, float, float], value: float) -> Any:
        n, mean, squares = state
        delta = value - mean
        mean += delta / (n + 1)
        return (n + 1, mean, squares + delta * (value - mean))

    def merge(self, earlier: tuple[int, float, float], later: tuple[int, float, float]) -> Any:
        if not earlier[0] or not later[0]:
            return later if not earlier[0] else earlier
        n = earlier[0] + later[0]
        delta = later[1] - earlier[1]
        mean = earlier[1] + delta * later[0] / n
        return (n, mean, earlier[2] + later[2] + delta * delta * earlier[0] * later[0] / n)

    def emit(self, state: tuple[int, float, float]) -> float | None:
        n, _, squares = state
        return squares / (n - self.ddof) if n > self.ddof else None

    def tumble(self, blocks: Array) -> Array:
        if blocks.shape[1] <= self.ddof:
            return np.full(len(blocks), None)
        return blocks.var(axis=1, ddof=self.ddof)

    def slide(self, values: Array, n: int) -> Array:
        """As `fold_sliding`, with the merge above on whole columns."""
        count = len(values) - n + 1
        if n <= self.ddof or count <= 0:
            return np.full(max(0, count), None)
        across = split_blocks(values, n)
        heads = _run_welford(across)
        tails = [part[::-1] for part in _run_welford(across[::-1])]
        squares = tails[1].copy()
        later = np.arange(1, n)[:, None]  # how many of a run are in the next block
        delta = heads[0][:-1, 1:] - tails[0][1:, :-1]
        squares[1:, :-1] += heads[1][:-1, 1:] + delta * delta * ((n - later) * later / n)
        return squares.T.ravel()[:count] / (n - self.ddof)

    def fold_ranges(self, values: Array, starts: Array) -> Array:
        counts = count_ranges(values, starts)
        means = np.add.reduceat(values, starts, dtype=float) / counts
        distances = values - means.repeat(counts)
        squares = np.add.reduceat(distances * distances, starts)
        enough = counts > self.ddof
        if enough.all():
            return squares / (counts - self.ddof)
        found = np.full(len(starts), None)
        found[enough] = squares[enough] / (counts[enough] - self.ddof)
        return found

    def absorb(self, state: Any, values: Array) -> Any:
        if not len(values):
            return state
        mean = values.mean().item()
        return self.merge(state, (len(values), mean, ((values - mean) ** 2).sum().item()))


def _run_welford(across: Array) -> tuple[Array, Array]:
    """Mean and squared distances of the first 1, 2, .. n values of each column."""
    means, squares = np.empty(across.shape), np.empty(across.shape)
    mean, square = np.zeros(across.shape[1]), np.zeros(across.shape[1])
    for i, values in enumerate(across):
        delta = values - mean
        mean = mean + delta / (i + 1)
        square = square + delta * (values - mean)
        means[i], squares[i] = mean, square
    return means, squares


class StdDev(Variance):
    """The square root of the variance of a sample."""

    def emit(self, state: Any) -> float | None:
        variance = super().emit(state)
        return None if variance is None else variance**0.5

    def tumble(self, blocks: Array) -> Array:
        return take_roots(super().tumble(blocks))

    def slide(self, values: Array, n: int) -> Array:
        return take_roots(super().slide(values, n))

    def fold_ranges(self, values: Array, starts: Array) -> Array:
        return take_roots(super().fold_ranges(values, starts))


def take_roots(variances: Array) -> Array:
    """Of each; a variance that is not there has no root."""
    if variances.dtype != object:
        return np.sqrt(variances)
    return np.array([None if v is None else v**0.5 for v in variances], dtype=object)
