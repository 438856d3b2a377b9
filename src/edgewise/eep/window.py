"""Gather values in windows: tumbling, sliding, periodic, monotonic.

`push(event)` gives the results that event brought, as a tuple (mostly empty or of one).
`push_many(events)` gives all results of a list, as a list, or of an array, as an array (of records
for a composite) where they can be one: the fast way, computed on whole arrays. Both ways and any
mixture give the same results. `pipe` sends results into another window. `snapshot` and `restore`
carry a window's state as plain data.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Any

import numpy as np

from edgewise.eep.aggregate import Aggregate
from edgewise.eep.clock import Clock
from edgewise.eep.retaining import Retaining

Results = tuple[Any, ...]
_NONE: Results = ()
CHUNK_VALUES = 1 << 15  # what a processor's cache holds with all that is folded from it


class Window:
    """A window over values: push them in, results come out."""

    def push(self, event: Any) -> Results:
        """The results that one event brings, mostly none or one."""
        raise NotImplementedError

    def push_many(self, events: Any) -> Any:
        """The results of many events: a list, or an array for an array where they can be one."""
        out: list[Any] = []
        for event in _plain(events):
            out += self.push(event)
        return out

    def pipe(self, then: Window) -> Window:
        """A window whose input is ours and whose results are those of `then`."""
        return _Pipe(self, then)

    def snapshot(self) -> Any:
        """The state as plain data."""
        raise NotImplementedError

    def restore(self, state: Any) -> None:
        """Go on from a snapshot of a window that is made alike."""
        raise NotImplementedError


def _plain(events: Any) -> Iterable[Any]:
    plain: Iterable[Any] = events.tolist() if isinstance(events, np.ndarray) else events
    return plain


def to_list(results: Any) -> list[Any]:
    """Results as a list, records as dicts."""
    if not isinstance(results, np.ndarray):
        return list(results)
    rows: list[Any] = results.tolist()
    names = results.dtype.names
    return rows if names is None else [dict(zip(names, row, strict=True)) for row in rows]


def _join_results(parts: list[Any], events: Any) -> Any:
    """Results of one call: an array for an array where they can be one, else a list."""
    arrays = [part for part in parts if isinstance(part, np.ndarray)]
    if isinstance(events, np.ndarray) and arrays:
        together = [_fit_results(part, arrays[0].dtype) for part in parts]
        if all(part is not None for part in together):
            return together[0] if len(together) == 1 else np.concatenate(together)
    return [result for part in parts for result in to_list(part)]


def _fit_results(part: Any, dtype: Any) -> Any:
    """A few results beside an array of many; None where they do not fit into it."""
    if isinstance(part, np.ndarray):
        return part
    rows = [tuple(r.values()) if isinstance(r, dict) else r for r in part]
    missing = any(None in row if isinstance(row, tuple) else row is None for row in rows)
    return None if missing and not dtype.hasobject else np.array(rows, dtype=dtype)


class _Pipe(Window):
    def __init__(self, first: Window, then: Window) -> None:
        self.first, self.then = first, then

    def push(self, event: Any) -> Results:
        results = self.first.push(event)
        return tuple(r for middle in results for r in self.then.push(middle)) if results else _NONE

    def push_many(self, events: Any) -> Any:
        return self.then.push_many(self.first.push_many(events))

    def snapshot(self) -> Any:
        return [self.first.snapshot(), self.then.snapshot()]

    def restore(self, state: Any) -> None:
        self.first.restore(state[0])
        self.then.restore(state[1])


class Tumbling(Window):
    """Every n events one result, then empty."""

    def __init__(self, aggregate: Aggregate, n: int) -> None:
        _require_positive(n)
        self.aggregate, self.n = aggregate, n
        self._state, self._count = aggregate.init(), 0
        self._accumulate = aggregate.accumulate

    def push(self, event: Any) -> Results:
        self._state = self._accumulate(self._state, event)
        self._count += 1
        if self._count < self.n:
            return _NONE
        result = self.aggregate.emit(self._state)
        self._state, self._count = self.aggregate.init(), 0
        return (result,)

    def push_many(self, events: Any) -> Any:
        parts: list[Any] = []
        at = min(self.n - self._count, len(events)) if self._count else 0
        self._push_each(events[:at], parts)
        whole = (len(events) - at) // self.n
        if whole:
            end = at + whole * self.n
            blocks = np.asarray(events[at:end]).reshape(whole, self.n)
            parts.append(self.aggregate.tumble(blocks))
            at = end
        self._push_each(events[at:], parts)
        return _join_results(parts, events)

    def _push_each(self, events: Any, parts: list[Any]) -> None:
        found = [r for event in _plain(events) for r in self.push(event)]
        if found:
            parts.append(found)

    def snapshot(self) -> Any:
        return [_copy_state(self._state), self._count]

    def restore(self, state: Any) -> None:
        kept, self._count = state
        self._state = _copy_state(kept)


class Sliding(Window):
    """Once n events are in, each further one brings a result over the last n.

    An aggregate that can take values back does; the others are retained (`retaining`).
    """

    def __init__(self, aggregate: Aggregate, n: int) -> None:
        _require_positive(n)
        self.aggregate, self.n = aggregate, n
        self._fold = aggregate if aggregate.invertible else Retaining(aggregate)
        self._held: deque[Any] = deque()
        self._state = self._fold.init()

    def push(self, event: Any) -> Results:
        held, fold = self._held, self._fold
        held.append(event)
        state = fold.accumulate(self._state, event)
        if len(held) > self.n:
            state = fold.compensate(state, held.popleft())
        self._state = state
        return (fold.emit(state),) if len(held) == self.n else _NONE

    def push_many(self, events: Any) -> Any:
        if len(events) < self.n:
            return super().push_many(events)
        tail = list(self._held)[-(self.n - 1) :] if self.n > 1 else []
        values = (
            np.concatenate([np.asarray(tail), np.asarray(events)]) if tail else np.asarray(events)
        )
        step = max(CHUNK_VALUES, 4 * self.n)
        parts: list[Any] = [
            self.aggregate.slide(values[at : at + step + self.n - 1], self.n)
            for at in range(0, len(values) - self.n + 1, step)
        ]
        self._rebuild(to_list(values[-self.n :]))
        if all(isinstance(part, np.ndarray) for part in parts):
            parts = [np.concatenate(parts)] if len(parts) > 1 else parts
        return _join_results(parts, events)

    def _rebuild(self, content: list[Any]) -> None:
        self._held = deque(content)
        self._state = self._fold.init()
        for value in content:
            self._state = self._fold.accumulate(self._state, value)

    def snapshot(self) -> Any:
        return list(self._held)

    def restore(self, state: Any) -> None:
        self._rebuild(list(state))


class _Closing(Window):
    """A window that a clock closes: what is inside, and how many."""

    def __init__(self, aggregate: Aggregate, clock: Clock) -> None:
        self.aggregate, self.clock = aggregate, clock
        self._state, self._count = aggregate.init(), 0

    def _close(self) -> Results:
        if not self._count:
            return _NONE
        result = self.aggregate.emit(self._state)
        self._state, self._count = self.aggregate.init(), 0
        return (result,)

    def _add(self, event: Any) -> None:
        self._state = self.aggregate.accumulate(self._state, event)
        self._count += 1

    def _find_closings(self, times: Any) -> Any:
        """At which events of an array the window closes first, given the time at each."""
        raise NotImplementedError

    def push_many(self, events: Any) -> Any:
        array = isinstance(events, np.ndarray) and len(events) > 0
        times = self.clock.advance_many(events) if array else None
        if times is None:
            return super().push_many(events)
        edges = self._find_closings(times)
        parts: list[Any] = []
        if not len(edges):
            self._absorb(events)
            return _join_results(parts, events)
        self._absorb(events[: edges[0]])
        closed = self._close()
        if closed:
            parts.append(list(closed))
        if len(edges) > 1:
            whole = events[edges[0] : edges[-1]]
            parts.append(self.aggregate.fold_ranges(whole, edges[:-1] - edges[0]))
        self._absorb(events[edges[-1] :])
        return _join_results(parts, events)

    def _absorb(self, events: Any) -> None:
        self._state = self.aggregate.absorb(self._state, events)
        self._count += len(events)


class Periodic(_Closing):
    """A result for each `interval` of a clock in which something came."""

    def __init__(self, aggregate: Aggregate, interval: int, clock: Clock) -> None:
        _require_positive(interval)
        super().__init__(aggregate, clock)
        self.interval = interval
        self._end: int | None = None

    def push(self, event: Any) -> Results:
        out = self.tick(self.clock.advance(event))
        self._add(event)
        return out

    def tick(self, now: Any = None) -> Results:
        """Time passed, with or without an event."""
        now = self.clock.now() if now is None else now
        if self._end is None:
            self._end = now + self.interval
            return _NONE
        if now < self._end:
            return _NONE
        self._end += ((now - self._end) // self.interval + 1) * self.interval
        return self._close()

    def _find_closings(self, times: Any) -> Any:
        if self._end is None:
            self._end = times[0].item() + self.interval
        past = np.maximum((times - self._end) // self.interval, -1)
        self._end += int(past[-1] + 1) * self.interval
        return np.flatnonzero(np.diff(past, prepend=-1))

    def snapshot(self) -> Any:
        return [_copy_state(self._state), self._count, self._end]

    def restore(self, state: Any) -> None:
        kept, self._count, self._end = state
        self._state = _copy_state(kept)


class Monotonic(_Closing):
    """A result each time a logical clock moves on: events of one moment belong together."""

    def __init__(self, aggregate: Aggregate, clock: Clock) -> None:
        super().__init__(aggregate, clock)
        self._moment: Any = None

    def push(self, event: Any) -> Results:
        now = self.clock.advance(event)
        out = self._close() if now != self._moment else _NONE
        self._moment = now
        self._add(event)
        return out

    def _find_closings(self, times: Any) -> Any:
        first = times[0] if self._moment is None else self._moment
        self._moment = times[-1].item()
        return np.flatnonzero(np.diff(times, prepend=first))

    def snapshot(self) -> Any:
        return [_copy_state(self._state), self._count, self._moment]

    def restore(self, state: Any) -> None:
        kept, self._count, self._moment = state
        self._state = _copy_state(kept)


def _copy_state(state: Any) -> Any:
    """A state that is not changed by what comes later: most never are."""
    return deque(state) if isinstance(state, deque) else state


def _require_positive(size: int) -> None:
    if size < 1:
        raise ValueError(f"a window has a size of 1 or more, not {size}")


def tumbling(aggregate: Aggregate, n: int) -> Tumbling:
    """A result every n events; then it is empty.

    >>> eep.tumbling(eep.Sum(), 2).push_many([1, 2, 3, 4, 5])
    [3, 7]
    """
    return Tumbling(aggregate, n)


def sliding(aggregate: Aggregate, n: int) -> Sliding:
    """A result for each event over the last n, once n are there.

    >>> eep.sliding(eep.Max(), 2).push_many([1, 5, 2])
    [5, 5]
    """
    return Sliding(aggregate, n)


def periodic(aggregate: Aggregate, interval: int, clock: Clock) -> Periodic:
    """A result for each interval of a clock in which something came.

    >>> eep.periodic(eep.Count(), 10, eep.EventTime(lambda t: t)).push_many([0, 4, 11, 12, 35])
    [2, 2]
    """
    return Periodic(aggregate, interval, clock)


def monotonic(aggregate: Aggregate, clock: Clock) -> Monotonic:
    """A result each time a clock moves on: events of one moment belong together.

    >>> eep.monotonic(eep.Count(), eep.EventTime(lambda t: t)).push_many([1, 1, 2, 3])
    [2, 1]
    """
    return Monotonic(aggregate, clock)
