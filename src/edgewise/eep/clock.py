"""Decide when a window closes: `advance(event)` of a clock gives the time at an event.

A clock only grows. None of them reads the machine's time by itself: `Wall` is given the reading.
Those that know how also say it for a whole array: `advance_many(events)` gives the time at each,
or None where they cannot.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np


class Clock(Protocol):
    """What a window that closes by time asks."""

    def now(self) -> Any: ...
    def advance(self, event: Any) -> Any: ...
    def advance_many(self, events: Any) -> Any: ...


class Counting:
    """Time is the number of events."""

    def __init__(self, start: int = 0) -> None:
        self._now = start

    def now(self) -> int:
        return self._now

    def advance(self, event: Any) -> int:
        del event
        self._now += 1
        return self._now

    def advance_many(self, events: Any) -> Any:
        self._now += len(events)
        return np.arange(self._now - len(events) + 1, self._now + 1)


class EventTime:
    """Time is the largest stamp seen; `stamp` takes it out of an event, `stamps` out of an array.

    A function of plain arithmetic, or one that takes a field of a record, may be both.
    """

    def __init__(
        self,
        stamp: Callable[[Any], int],
        start: int | None = None,
        stamps: Callable[[Any], Any] | None = None,
    ) -> None:
        self._stamp, self._stamps = stamp, stamps
        self._now = start

    def now(self) -> int | None:
        return self._now

    def advance(self, event: Any) -> int:
        seen = self._stamp(event)
        self._now = seen if self._now is None else max(self._now, seen)
        return self._now

    def advance_many(self, events: Any) -> Any:
        if self._stamps is None or not len(events):
            return None
        times = np.maximum.accumulate(self._stamps(events))
        if self._now is not None:
            times = np.maximum(times, self._now)
        self._now = times[-1].item()
        return times


class Wall:
    """Time is what `read` says, never less than before."""

    def __init__(self, read: Callable[[], int]) -> None:
        self._read = read
        self._now = read()

    def now(self) -> int:
        self._now = max(self._now, self._read())
        return self._now

    def advance(self, event: Any) -> int:
        del event
        return self.now()

    def advance_many(self, events: Any) -> Any:
        """All of them came now."""
        return np.full(len(events), self.now())


class Vector:
    """One counter per source: what happened before what, without a common clock."""

    def __init__(
        self, source: Callable[[Any], str], counts: Mapping[str, int] | None = None
    ) -> None:
        self._source = source
        self._counts = dict(counts or {})

    def now(self) -> dict[str, int]:
        return dict(self._counts)

    def advance(self, event: Any) -> dict[str, int]:
        source = self._source(event)
        self._counts[source] = self._counts.get(source, 0) + 1
        return self.now()

    def advance_many(self, events: Any) -> Any:
        """Moments of many sources are no numbers: one by one."""
        del events

    def merge(self, other: Mapping[str, int]) -> dict[str, int]:
        """What both have seen."""
        for source, count in other.items():
            self._counts[source] = max(self._counts.get(source, 0), count)
        return self.now()


def happened_before(left: Mapping[str, int], right: Mapping[str, int]) -> bool:
    """Whether everything in `left` was known in `right`, and something more."""
    known = all(right.get(source, 0) >= count for source, count in left.items())
    return known and any(count > left.get(source, 0) for source, count in right.items())
