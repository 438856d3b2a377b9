"""Aggregates as four verbs over a state that is a value, never a place.

    init()                     the state of nothing
    accumulate(state, value)   the state with one value more
    compensate(state, value)   the state with that value less: the inverse of accumulate
    emit(state)                the result

A state is plain data (a number, or a tuple of them) and is never changed, only replaced, so a
window may keep it, a snapshot may hold it, and two windows may share it. An aggregate that cannot
take a value back (min, max) says `invertible = False` and gives `merge(earlier, later)` instead;
windows then slide with two stacks, in constant amortised time. `tumble`, `slide`, `ranges` and
`absorb` do a whole array at once; they have a loop over the four verbs as default, so your own
aggregate needs four lines:

    class Product(Aggregate):
        def init(self): return 1
        def accumulate(self, state, value): return state * value
        def compensate(self, state, value): return state / value
        def emit(self, state): return state
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

Array = Any  # numpy arrays of numbers
Result = Any


class Aggregate:
    invertible = True

    def init(self) -> Any:
        raise NotImplementedError

    def accumulate(self, state: Any, value: Any) -> Any:
        raise NotImplementedError

    def compensate(self, state: Any, value: Any) -> Any:
        raise NotImplementedError

    def emit(self, state: Any) -> Result:
        raise NotImplementedError

    def merge(self, earlier: Any, later: Any) -> Any:
        """The state of both together. Windows ask it of those that are not invertible."""
        raise NotImplementedError

    def tumble(self, blocks: Array) -> Sequence[Result]:
        """One result per row of a table of values."""
        return [self.of(_plain(row)) for row in blocks]

    def slide(self, values: Array, n: int) -> Sequence[Result]:
        """One result per run of n values, oldest first."""
        values = _plain(values)
        if not self.invertible:
            return [self.of(values[i : i + n]) for i in range(len(values) - n + 1)]
        state = self.init()
        out: list[Result] = []
        for i, value in enumerate(values):
            state = self.accumulate(state, value)
            if i >= n:
                state = self.compensate(state, values[i - n])
            if i >= n - 1:
                out.append(self.emit(state))
        return out

    def ranges(self, values: Array, starts: Array) -> Sequence[Result]:
        """One result per range of values, from each start to the next or the end; none empty."""
        return [self.of(_plain(part)) for part in np.split(values, starts[1:])]

    def absorb(self, state: Any, values: Array) -> Any:
        """The state with an array of values more."""
        for value in _plain(values):
            state = self.accumulate(state, value)
        return state

    def of(self, values: Sequence[Any]) -> Result:
        """The result over some values."""
        state = self.init()
        for value in values:
            state = self.accumulate(state, value)
        return self.emit(state)


def _plain(values: Array) -> Sequence[Any]:
    """Values as Python's own; records stay records, for their fields have names."""
    found: Sequence[Any] = values if values.dtype.names else values.tolist()
    return found


def sliding_fold(fold: Any, values: Array, n: int) -> Array:
    """An associative fold over every run of n values, each value folded three times at most.

    Values are cut into blocks of n; a run spans the tail of one block and the head of the next, so
    it is a fold from the right joined with a fold from the left. No result depends on more than
    2n values, so rounding does not grow with the length of the stream.
    """
    count = len(values) - n + 1
    if count <= 0:
        return values[:0]
    across = _across(values, n)
    results = across.copy()
    for i in range(n - 2, -1, -1):  # from each value to the end of its block
        fold(results[i], results[i + 1], out=results[i])
    head = across[0].copy()
    for i in range(1, n):  # and on into the next block
        fold(results[i, :-1], head[1:], out=results[i, :-1])
        fold(head, across[i], out=head)
    return results.T.ravel()[:count]


def _across(values: Array, n: int) -> Array:
    """Blocks of n as columns, so that every step of a fold is one operation on whole rows."""
    padded = -len(values) % n
    whole = np.concatenate([values, values[-1:].repeat(padded)]) if padded else values
    return np.ascontiguousarray(whole.reshape(-1, n).T)


class Count(Aggregate):
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

    def ranges(self, values: Array, starts: Array) -> Array:
        return _lengths(values, starts)

    def absorb(self, state: int, values: Array) -> int:
        return state + len(values)


def _lengths(values: Array, starts: Array) -> Array:
    return np.diff(starts, append=len(values))


class Sum(Aggregate):
    """Neumaier's sum: the state is (sum, what rounding lost).

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
        return sliding_fold(np.add, values, n)

    def ranges(self, values: Array, starts: Array) -> Array:
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
        return sliding_fold(type(self).fold, values, n)

    def ranges(self, values: Array, starts: Array) -> Array:
        return type(self).fold.reduceat(values, starts)

    def absorb(self, state: Any, values: Array) -> Any:
        if not len(values):
            return state
        return self.accumulate(state, type(self).fold.reduce(values).item())


class Min(_Extreme):
    fold = np.minimum

    def pick(self, left: Any, right: Any) -> Any:
        return min(left, right)


class Max(_Extreme):
    fold = np.maximum

    def pick(self, left: Any, right: Any) -> Any:
        return max(left, right)


class Mean(Sum):
    """State: (sum, lost, n)."""

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
        return sliding_fold(np.add, values, n) / n

    def ranges(self, values: Array, starts: Array) -> Array:
        return np.add.reduceat(values, starts) / _lengths(values, starts)

    def absorb(self, state: Any, values: Array) -> Any:
        if not len(values):
            return state
        total, lost = Sum.accumulate(self, state[:2], values.sum().item())
        return (total, lost, state[2] + len(values))


class Variance(Aggregate):
    """Of a sample (n - 1), by Welford; state: (n, mean, squared distances).

    Taking a large value back would leave its rounding behind for ever, so windows merge instead:
    no result depends on values that are gone.
    """

    invertible = False
    spare = 1

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
        return squares / (n - self.spare) if n > self.spare else None

    def tumble(self, blocks: Array) -> Array:
        if blocks.shape[1] <= self.spare:
            return np.full(len(blocks), None)
        return blocks.var(axis=1, ddof=self.spare)

    def slide(self, values: Array, n: int) -> Array:
        """As `sliding_fold`, with the merge above on whole columns."""
        count = len(values) - n + 1
        if n <= self.spare or count <= 0:
            return np.full(max(0, count), None)
        across = _across(values, n)
        heads = _welford(across)
        tails = [part[::-1] for part in _welford(across[::-1])]
        squares = tails[1].copy()
        later = np.arange(1, n)[:, None]  # how many of a run are in the next block
        delta = heads[0][:-1, 1:] - tails[0][1:, :-1]
        squares[1:, :-1] += heads[1][:-1, 1:] + delta * delta * ((n - later) * later / n)
        return squares.T.ravel()[:count] / (n - self.spare)

    def ranges(self, values: Array, starts: Array) -> Array:
        counts = _lengths(values, starts)
        means = np.add.reduceat(values, starts, dtype=float) / counts
        distances = values - means.repeat(counts)
        squares = np.add.reduceat(distances * distances, starts)
        enough = counts > self.spare
        if enough.all():
            return squares / (counts - self.spare)
        found = np.full(len(starts), None)
        found[enough] = squares[enough] / (counts[enough] - self.spare)
        return found

    def absorb(self, state: Any, values: Array) -> Any:
        if not len(values):
            return state
        mean = values.mean().item()
        return self.merge(state, (len(values), mean, ((values - mean) ** 2).sum().item()))


def _welford(across: Array) -> tuple[Array, Array]:
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
    def emit(self, state: Any) -> float | None:
        variance = super().emit(state)
        return None if variance is None else variance**0.5

    def tumble(self, blocks: Array) -> Array:
        return _root(super().tumble(blocks))

    def slide(self, values: Array, n: int) -> Array:
        return _root(super().slide(values, n))

    def ranges(self, values: Array, starts: Array) -> Array:
        return _root(super().ranges(values, starts))


def _root(variances: Array) -> Array:
    """Of each; a variance that is not there has no root."""
    if variances.dtype != object:
        return np.sqrt(variances)
    return np.array([None if v is None else v**0.5 for v in variances], dtype=object)


class Percentile(Aggregate):
    """The value at a share of the sorted content; state: a sorted tuple."""

    def __init__(self, share: float) -> None:
        if not 0 <= share <= 1:
            raise ValueError(f"a percentile is a share between 0 and 1, not {share}")
        self.share = share

    def init(self) -> tuple[Any, ...]:
        return ()

    def _place(self, state: tuple[Any, ...], value: Any) -> int:
        low, high = 0, len(state)
        while low < high:
            middle = (low + high) // 2
            low, high = (middle + 1, high) if state[middle] < value else (low, middle)
        return low

    def accumulate(self, state: tuple[Any, ...], value: Any) -> tuple[Any, ...]:
        at = self._place(state, value)
        return (*state[:at], value, *state[at:])

    def compensate(self, state: tuple[Any, ...], value: Any) -> tuple[Any, ...]:
        at = self._place(state, value)
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
        after = {**state, value: state[value] - 1}
        if not after[value]:
            del after[value]
        return after

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
    def accumulate(self, state: Any, value: Any) -> Any:
        return (value,)

    def merge(self, earlier: Any, later: Any) -> Any:
        return later or earlier


class Composite(Aggregate):
    """Several aggregates over the same values; the result is a dict by name."""

    def __init__(self, **parts: Aggregate) -> None:
        self.parts = parts
        self.invertible = all(p.invertible for p in parts.values())

    def init(self) -> Any:
        return tuple(p.init() for p in self.parts.values())

    def accumulate(self, state: Any, value: Any) -> Any:
        pairs = zip(self.parts.values(), state, strict=True)
        return tuple(p.accumulate(s, value) for p, s in pairs)

    def compensate(self, state: Any, value: Any) -> Any:
        pairs = zip(self.parts.values(), state, strict=True)
        return tuple(p.compensate(s, value) for p, s in pairs)

    def merge(self, earlier: Any, later: Any) -> Any:
        triples = zip(self.parts.values(), earlier, later, strict=True)
        return tuple(p.merge(a, b) for p, a, b in triples)

    def emit(self, state: Any) -> dict[str, Any]:
        pairs = zip(self.parts.items(), state, strict=True)
        return {name: p.emit(s) for (name, p), s in pairs}

    def tumble(self, blocks: Array) -> Any:
        return self._together(lambda part: part.tumble(blocks), blocks.shape[1])

    def slide(self, values: Array, n: int) -> Any:
        return self._together(lambda part: part.slide(values, n), n)

    def ranges(self, values: Array, starts: Array) -> Any:
        return self._together(lambda part: part.ranges(values, starts), _lengths(values, starts))

    def absorb(self, state: Any, values: Array) -> Any:
        pairs = zip(self.parts.values(), state, strict=True)
        return tuple(p.absorb(s, values) for p, s in pairs)

    def _together(self, compute: Callable[[Aggregate], Any], counts: Any) -> Array:
        """One record per result, with a field per part; what two parts share is computed once."""
        done: dict[type[Aggregate], Any] = {}

        def once(part: Aggregate) -> Any:
            kind = type(part)
            if kind not in _SHARED:
                return compute(part)
            if kind not in done:
                base = {StdDev: Variance, Mean: Sum}.get(kind)
                found = compute(part) if base is None else once(base())
                done[kind] = _root(found) if kind is StdDev else found
                if kind is Mean:
                    done[kind] = found / counts
            return done[kind]

        columns = {name: once(part) for name, part in self.parts.items()}
        arrays = {name: np.asarray(column) for name, column in columns.items()}
        size = len(next(iter(arrays.values())))
        records = np.empty(size, dtype=[(name, a.dtype) for name, a in arrays.items()])
        for name, array in arrays.items():
            records[name] = array
        return records


_SHARED = (Sum, Mean, Variance, StdDev)


def Stats() -> Composite:  # noqa: N802  reads as the aggregate it makes
    """All at once: count, sum, min, max, mean, variance, standard deviation."""
    return Composite(
        count=Count(), sum=Sum(), min=Min(), max=Max(), mean=Mean(), variance=Variance(),
        stddev=StdDev(),
    )  # fmt: skip


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

    def ranges(self, values: Array, starts: Array) -> Sequence[Result]:
        return [self.function(part) for part in np.split(values, starts[1:])]
