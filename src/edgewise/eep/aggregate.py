"""Define what an aggregate is: four verbs over a state that is replaced, never changed.

    init()                     the state of nothing
    accumulate(state, value)   the state with one value more
    compensate(state, value)   the state with that value less: the inverse of accumulate
    emit(state)                the result

This is the one definition of an aggregate in the house: windows of `eep` run it, kernels run it or
code that a law holds to it (`language.py`), the edge merges by it. A state is plain data (numbers,
text, tuples, dicts), so that a window may keep it, a snapshot may hold it, and two windows may
share it. The price of replacing it is a new tuple per value; what keeps all its values pays more.

An aggregate that cannot take a value back (min, max) says `invertible = False` and gives
`merge(earlier, later)` instead; the values inside are then retained (`retaining.py`). `tumble`,
`slide`, `fold_ranges` and `absorb` do a whole array at once; by default they loop over the verbs,
so that your own aggregate needs eight lines:

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
    """Four verbs. Give all of them, or `invertible = False` and `merge` for `compensate`.

    >>> class Product(edgewise.Aggregate):
    ...     def init(self):
    ...         return 1
    ...     def accumulate(self, state, value):
    ...         return state * value
    ...     def compensate(self, state, value):
    ...         return state // value
    ...     def emit(self, state):
    ...         return state
    >>> edgewise.eep.sliding(Product(), 2).push_many([2, 3, 4])
    [6, 12]
    """

    invertible = True
    takes_null = False  # in a query, nulls are left out

    def init(self) -> Any:
        """The state of nothing."""
        raise NotImplementedError

    def accumulate(self, state: Any, value: Any) -> Any:
        """The state with one value more."""
        raise NotImplementedError

    def compensate(self, state: Any, value: Any) -> Any:
        """The state with that value less: the inverse of `accumulate`."""
        raise NotImplementedError

    def emit(self, state: Any) -> Result:
        """The result."""
        raise NotImplementedError

    def merge(self, earlier: Any, later: Any) -> Any:
        """The state of both together: for windows where it is not invertible, and for the edge."""
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

    def fold_ranges(self, values: Array, starts: Array) -> Sequence[Result]:
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


def fold_sliding(fold: Any, values: Array, n: int) -> Array:
    """An associative fold over every run of n values, each value folded three times at most.

    Values are cut into blocks of n; a run spans the tail of one block and the head of the next, so
    it is a fold from the right joined with a fold from the left. No result depends on more than
    2n values, so rounding does not grow with the length of the stream.
    """
    count = len(values) - n + 1
    if count <= 0:
        return values[:0]
    across = split_blocks(values, n)
    results = across.copy()
    for i in range(n - 2, -1, -1):  # from each value to the end of its block
        fold(results[i], results[i + 1], out=results[i])
    head = across[0].copy()
    for i in range(1, n):  # and on into the next block
        fold(results[i, :-1], head[1:], out=results[i, :-1])
        fold(head, across[i], out=head)
    return results.T.ravel()[:count]


def split_blocks(values: Array, n: int) -> Array:
    """Blocks of n as columns, so that every step of a fold is one operation on whole rows."""
    padded = -len(values) % n
    whole = np.concatenate([values, values[-1:].repeat(padded)]) if padded else values
    return np.ascontiguousarray(whole.reshape(-1, n).T)
