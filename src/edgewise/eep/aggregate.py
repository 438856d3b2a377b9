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

from collections.abc import Sequence
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
    across = across_blocks(values, n)
    results = across.copy()
    for i in range(n - 2, -1, -1):  # from each value to the end of its block
        fold(results[i], results[i + 1], out=results[i])
    head = across[0].copy()
    for i in range(1, n):  # and on into the next block
        fold(results[i, :-1], head[1:], out=results[i, :-1])
        fold(head, across[i], out=head)
    return results.T.ravel()[:count]


def across_blocks(values: Array, n: int) -> Array:
    """Blocks of n as columns, so that every step of a fold is one operation on whole rows."""
    padded = -len(values) % n
    whole = np.concatenate([values, values[-1:].repeat(padded)]) if padded else values
    return np.ascontiguousarray(whole.reshape(-1, n).T)
