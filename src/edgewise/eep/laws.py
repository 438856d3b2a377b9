"""Check the laws that every aggregate and every window keeps, ours and yours.

Call them from a test with values of your choice; each raises AssertionError with what broke.
"""

from __future__ import annotations

import copy
import math
from collections import deque
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, Protocol

from edgewise.eep.aggregate import Aggregate
from edgewise.eep.language import fold
from edgewise.eep.window import Window, to_list

REL_TOL = 1e-9
ABS_TOL = 1e-6
UNITS_MAX = 2  # in the last place of the largest intermediate sum, over ten million events


def close(left: Any, right: Any) -> bool:
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(close(left[k], right[k]) for k in left)
    if isinstance(left, list | tuple | deque):
        return len(left) == len(right) and all(map(close, left, right))
    if isinstance(left, float) or isinstance(right, float):
        if left is None or right is None:
            return left is right
        return math.isclose(left, right, rel_tol=REL_TOL, abs_tol=ABS_TOL) or (
            math.isnan(left) and math.isnan(right)
        )
    return bool(left == right)


def compensate_undoes_accumulate(aggregate: Aggregate, values: Sequence[Any]) -> None:
    """Oldest first, as a window lets go."""
    if not aggregate.invertible:
        return
    state = aggregate.init()
    for value in values:
        state = aggregate.accumulate(state, value)
    for i, value in enumerate(values):
        state = aggregate.compensate(state, value)
        rest = values[i + 1 :]
        if rest:
            found, wanted = aggregate.emit(state), aggregate.of(rest)
            assert close(found, wanted), f"after taking back {i + 1}: {found}, not {wanted}"


def merge_joins_two_runs(
    aggregate: Aggregate, earlier: Sequence[Any], later: Sequence[Any]
) -> None:
    states = []
    for values in (earlier, later):
        state = aggregate.init()
        for value in values:
            state = aggregate.accumulate(state, value)
        states.append(state)
    found, wanted = aggregate.emit(aggregate.merge(*states)), aggregate.of([*earlier, *later])
    assert close(found, wanted), f"merged {found}, in one run {wanted}"


def nothing_is_shared(make: Callable[[], Window], values: Sequence[Any]) -> None:
    """What was pushed is neither kept for change nor changed."""
    before = copy.deepcopy(list(values))
    window = make()
    given = list(values)
    window.push_many(given)
    assert given == before, "the input was changed"
    given.clear()
    again = make()
    again.push_many(before)
    assert close(window.push_many(before), again.push_many(before)), "the input is still in use"


def batching_changes_nothing(
    make: Callable[[], Window], values: Sequence[Any], cuts: Sequence[int]
) -> None:
    one = make()
    singly = [r for value in values for r in one.push(value)]
    many = make()
    edges = [0, *sorted(c for c in cuts if c <= len(values)), len(values)]
    together: list[Any] = []
    for low, high in pairwise(edges):
        together += to_list(many.push_many(values[low:high]))
    assert close(singly, together), f"one by one {singly}, in batches {together}"


def a_snapshot_changes_nothing(
    make: Callable[[], Window], values: Sequence[Any], cut: int
) -> None:
    whole, first, second = make(), make(), make()
    wanted = [r for value in values for r in whole.push(value)]
    found = [r for value in values[:cut] for r in first.push(value)]
    second.restore(copy.deepcopy(first.snapshot()))
    found += [r for value in values[cut:] for r in second.push(value)]
    assert close(found, wanted), f"with a snapshot after {cut}: {found}, without {wanted}"


def sliding_equals_recomputation(
    make: Callable[[], Window], aggregate: Aggregate, values: Sequence[Any], n: int
) -> None:
    window = make()
    found = [r for value in values for r in window.push(value)]
    wanted = [aggregate.of(values[i : i + n]) for i in range(len(values) - n + 1)]
    assert close(found, wanted), f"found {found}, recomputed {wanted}"


def tumbling_equals_recomputation(
    make: Callable[[], Window], aggregate: Aggregate, values: Sequence[Any], n: int
) -> None:
    window = make()
    found = [r for value in values for r in window.push(value)]
    wanted = [aggregate.of(values[i : i + n]) for i in range(0, len(values) - n + 1, n)]
    assert close(found, wanted), f"found {found}, recomputed {wanted}"


def closing_equals_recomputation(
    make: Callable[[], Window], aggregate: Aggregate, values: Sequence[Any], moments: Sequence[Any]
) -> None:
    """A window that a clock closes: events of one moment are one result, the last stays open."""
    window = make()
    found = [r for value in values for r in window.push(value)]
    edges = [i for i in range(1, len(values)) if moments[i] != moments[i - 1]]
    wanted = [aggregate.of(values[low:high]) for low, high in pairwise([0, *edges])]
    assert close(found, wanted), f"found {found}, recomputed {wanted}"


def error_is_bounded(found: float, exact: float, largest: float, units: float = UNITS_MAX) -> None:
    """`largest` is the largest sum on the way, by amount."""
    error = abs(found - exact)
    assert error <= units * math.ulp(largest), f"{found} is off by {error}, from {exact}"


def memory_is_bounded(window: Window, values: Sequence[Any], limit: int) -> None:
    """A snapshot never holds more than `limit` values, however many were pushed."""
    for value in values:
        window.push(value)
        held = _size(window.snapshot())
        assert held <= limit, f"{held} values are held, {limit} are allowed"


def a_snapshot_stands_still(make: Callable[[], Window], values: Sequence[Any]) -> None:
    """What was saved does not change with what comes later."""
    window = make()
    window.push_many(values)
    saved = window.snapshot()
    before = copy.deepcopy(saved)
    window.push_many(values)
    assert close(saved, before), "a snapshot changed after it was taken"


def _size(state: Any) -> int:
    if isinstance(state, dict):
        return sum(map(_size, state.values()))
    if isinstance(state, list | tuple) or hasattr(state, "popleft"):
        return sum(map(_size, state))
    return 1


# What stands for an aggregate or a window elsewhere, as generated code does.


class Subject(Protocol):
    """An implementation of an aggregate: rows come, rows leave, all is forgotten."""

    def add(self, value: Any) -> None: ...
    def remove(self, value: Any) -> None: ...
    def reset(self) -> None: ...
    def value(self) -> Any: ...


def keeps_the_laws(aggregate: Any, samples: Sequence[Any]) -> None:
    """The laws of an aggregate by itself, over all runs of a few samples."""
    for start in range(len(samples)):
        values = [*samples[start:], *samples[:start]]
        compensate_undoes_accumulate(aggregate, values)
        if not aggregate.invertible or type(aggregate).merge is not Aggregate.merge:
            merge_joins_two_runs(aggregate, values[: start + 1], values[start + 1 :])


def follows_definition(
    definition: Any, subject: Subject, steps: Sequence[tuple[str, Any]]
) -> None:
    """After each step the subject gives what the definition gives.

    A step is `("add", value)`, `("remove", None)`, which lets the oldest value go, or
    `("reset", None)`. Nulls are left out, as in a query. An invertible definition is run by its
    verbs, another one over what is left.
    """
    held: deque[Any] = deque()
    state = definition.init()
    for number, (verb, value) in enumerate(steps):
        if verb == "reset":
            held.clear()
            state = definition.init()
            subject.reset()
        elif verb == "add":
            held.append(value)
            if value is not None or definition.takes_null:
                state = definition.accumulate(state, value)
            subject.add(value)
        elif held:
            gone = held.popleft()
            if definition.invertible and (gone is not None or definition.takes_null):
                state = definition.compensate(state, gone)
            subject.remove(gone)
        wanted = definition.emit(state) if definition.invertible else fold(definition, held)
        found = subject.value()
        assert close(found, wanted), f"after step {number} ({verb} {value}): {found}, not {wanted}"


def windows_agree(
    window: Window, other: Callable[[Sequence[Any]], Sequence[Any]], values: Sequence[Any]
) -> None:
    """Another window, a function from all values to all results, gives the results of ours."""
    wanted = [r for value in values for r in window.push(value)]
    found = list(other(values))
    assert close(found, wanted), f"the other window gives {found}, ours {wanted}"
