"""Take values back from an aggregate that cannot: keep the values that are in it.

`Retaining(aggregate)` is invertible whatever `aggregate` is. Values that leave in the order they
came cost two merges each, by two stacks:

    held     v1 v2 v3 | v4 v5          all values, oldest first
    older    v1v2v3 v2v3 v3            folds of the older half, each from one value to the end
    newer               v4v5           the state of the newer half

What leaves first takes its fold with it; when the older half is empty, all values are folded from
the newest back. A value that leaves out of order is searched for and the state is built again; one
that is not there is ignored. The price is memory: one value per row inside. Sliding windows of
`eep` and the kernels use it where a row can leave and `compensate` is missing.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from edgewise.eep.aggregate import Aggregate

State = list[Any]  # [held, older, newer]; plain data, so that it can be saved as it is


class Retaining(Aggregate):
    """An aggregate with the values that are in it. Unlike others it changes its state in place."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def init(self) -> State:
        return [deque(), [], self.inner.init()]

    def accumulate(self, state: State, value: Any) -> State:
        state[0].append(value)
        state[2] = self.inner.accumulate(state[2], value)
        return state

    def compensate(self, state: State, value: Any) -> State:
        held = state[0]
        if held and (held[0] is value or is_same(held[0], value)):
            if not state[1]:
                self._turn(state)
            held.popleft()
            state[1].pop()
            return state
        for index, found in enumerate(held):
            if is_same(found, value):
                del held[index]
                self._rebuild(state)
                break
        return state

    def emit(self, state: State) -> Any:
        _, older, newer = state
        return self.inner.emit(self.inner.merge(older[-1], newer) if older else newer)

    def _turn(self, state: State) -> None:
        """All values become the older half: folded from the newest back."""
        inner, fold = self.inner, self.inner.init()
        for value in reversed(state[0]):
            fold = inner.merge(inner.accumulate(inner.init(), value), fold)
            state[1].append(fold)
        state[2] = inner.init()

    def _rebuild(self, state: State) -> None:
        state[1], state[2] = [], self.inner.init()
        for value in state[0]:
            state[2] = self.inner.accumulate(state[2], value)


def is_same(left: Any, right: Any) -> bool:
    """Equality under which a NaN is itself: a value must be found again after a restart."""
    return bool(left == right or (left != left and right != right))  # noqa: PLR0124
