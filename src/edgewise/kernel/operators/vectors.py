"""Compute a whole run at once, where the result is exactly that of one event after the other.

Sums of whole numbers below 2**53 do not depend on the order they are added in, so a sliding window
over groups can be computed by sorting a run by key: the events of one key stand together, and the
last `size` of the stream among them are a slice of their running sum.

    events   a1 b2 a3 a4         sorted    a1 a3 a4 | b2
    size 3   sum of a at a4:               running sums 1 4 8: those within the last 3 events
                                           are a3 a4, so 8 - 1 = 7
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import itemgetter
from typing import Any

import numpy as np

from edgewise.event.column import Column
from edgewise.kernel.functions import java

LEAST_EVENTS = 128  # below that, arrays cost more than they save
EXACT = 1 << 53  # whole numbers up to here are exact as doubles too
_LONG = 1 << 63
_SHORT = 1 << 15  # numbers below it sort by radix


def whole(values: Sequence[int | None]) -> Any:
    """An array of whole numbers; None where one is null or too large, or they are few."""
    if len(values) < LEAST_EVENTS:
        return None
    if isinstance(values, Column):
        return values.whole()
    try:
        return np.fromiter(values, np.int64, len(values))
    except (TypeError, OverflowError):
        return None


def moments(values: Sequence[int | None]) -> Any:
    """Times to look for bounds in: a list where they ascend, else as `whole`."""
    if len(values) < LEAST_EVENTS or isinstance(values, Column):
        return whole(values)
    listed: list[Any] = list(values)
    try:
        ascending = listed == sorted(listed)
    except TypeError:  # a null
        return None
    return listed if ascending else whole(values)


def positions(mask: Any) -> list[int]:
    """Where it is true."""
    found: list[int] = np.flatnonzero(mask).tolist()
    return found


def hits(mask: Any) -> Any:
    """The same as an array."""
    return np.flatnonzero(mask)


def taker(picked: Any) -> Callable[[Sequence[Any]], Sequence[Any]]:
    """A function that takes these positions, a list or an array, out of a column."""
    listed: list[int] = picked if isinstance(picked, list) else picked.tolist()
    from_list = itemgetter(*listed) if len(listed) > 1 else None

    def take(column: Sequence[Any]) -> Sequence[Any]:
        if isinstance(column, Column):
            return column.take(picked)
        return from_list(column) if from_list else [column[i] for i in listed]

    return take


def events(picked: list[int] | None, *columns: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
    """Those in these positions, or all, event by event."""
    take = None if picked is None or len(picked) == len(columns[0]) else taker(picked)
    return zip(*(map(take, columns) if take else columns), strict=True)


def first_from(times: Any, start: int, bound: int) -> int | None:
    """The first position from `start` on that holds `bound` or more."""
    if isinstance(times, list):
        found = bisect_left(times, bound, start)
        return found if found < len(times) else None
    step = LEAST_EVENTS
    while start < len(times):
        hits = times[start : start + step] >= bound
        at = int(hits.argmax())
        if hits[at]:
            return start + at
        start, step = start + step, 2 * step
    return None


def wrapped(totals: dict[Any, int], keys: Iterable[Any]) -> list[int | None]:
    """The total of each key in 64 bits, as Java adds; None where there is none."""
    found = list(map(totals.get, keys))
    if totals and (max(totals.values()) >= _LONG or min(totals.values()) < -_LONG):
        return [None if x is None else java.wrap64(x) for x in found]
    return found


class Slide:
    """For each event after the first `before`: those of its key among the last `size` events."""

    def __init__(self, keys: Sequence[Any], before: int, size: int) -> None:
        self._before, self._size = before, size
        total = len(keys)
        numbers = dict(zip(keys, range(total), strict=True))
        ids = np.fromiter(map(numbers.__getitem__, keys), np.int64, total)
        short = ids.astype(np.int16) if total < _SHORT else ids
        self._order = np.argsort(short, kind="stable")
        first = ids[self._order] * total  # of its key, in a position of its own
        positions = first + self._order
        oldest = np.maximum(positions - (size - 1), first)
        self._low = np.searchsorted(positions, oldest)
        self._high = np.arange(1, total + 1)

    def counts(self) -> list[int]:
        found: list[int] = self._by_time(self._high - self._low).tolist()
        return found

    def sums(self, values: Sequence[int | None]) -> Any:
        """An array; None where a value is null or a sum might not be exact."""
        column = whole(values)
        if column is None:
            return None
        largest = max(-int(column.min()), int(column.max()))
        if largest * len(values) >= EXACT:
            return None
        total = np.concatenate(([0], np.cumsum(column[self._order])))
        return self._by_time(total[self._high] - total[self._low])

    def means(self, sums: Any) -> list[float]:
        found: list[float] = (sums / self._by_time(self._high - self._low)).tolist()
        return found

    def _by_time(self, by_key: Any) -> Any:
        found = np.empty_like(by_key)
        found[self._order] = by_key
        return found[self._before :]
