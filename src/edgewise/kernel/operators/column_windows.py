"""Compute whole runs of Arrow columns at once; the rows are those of one event at a time.

`ClosedBatches` are the batches of an external time window that open and close inside a run;
`SlidingByKey` is a time window by key. Both find the groups of all events together: additions
happen in the order of the events, or in any order where sums of whole numbers are exact. What
reaches over the end of a run is left in the state that the event-at-a-time code keeps.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from edgewise.event.arrow import ARROW_TYPES
from edgewise.event.column import Column
from edgewise.event.types import AttrType
from edgewise.kernel.api import EventRun, OutColumns
from edgewise.kernel.operators.vectors import EXACT, LEAST_EVENTS, taker
from edgewise.kernel.queues import Queue
from edgewise.kernel.runtime import CURRENT, TIMERS, Runtime, State

REACH_MAX = 1 << 62  # beyond, times far apart would not fit 64 bits here
CELLS_MAX = 8  # a table of all groups there could be has at most so many times the events
GROUP_EVENTS_MIN = 4  # with fewer events a key on average, a run is no faster than its events


def _numbers(array: Any) -> Column:
    whole = array.dtype == np.int64
    return Column(pa.array(array), AttrType.LONG if whole else AttrType.DOUBLE)


def _same(value: int, count: int, kind: AttrType = AttrType.LONG) -> Column:
    return Column(pa.repeat(pa.scalar(value, ARROW_TYPES[kind]), count), kind)


def _coded(columns: Sequence[Column]) -> tuple[Any, int]:
    """Which key each row has, and how many there are."""
    codes, count = columns[0].codes()
    codes = codes.astype(np.int64)
    for column in columns[1:]:
        more, values = column.codes()
        found = pa.array(codes * values + more).dictionary_encode()
        count, codes = len(found.dictionary), found.indices.to_numpy().astype(np.int64)
    return codes, count


def _values(columns: Sequence[Column], codes: Any, count: int) -> list[tuple[Any, ...]]:
    """The keys by their number."""
    some = np.empty(count, np.int64)
    some[codes] = np.arange(len(codes))
    return list(zip(*(column.take(some) for column in columns), strict=True))


def _grouped(ids: Any, limit: int) -> tuple[Any, Any]:
    """Groups counted as they appear: the number of each row's, and the first row of each.

    `ids` are below `limit`.
    """
    count = len(ids)
    if limit > count * CELLS_MAX:
        found = pa.array(ids).dictionary_encode()
        numbers = found.indices.to_numpy()
        first = np.empty(len(found.dictionary), np.int64)
        first[numbers[::-1]] = np.arange(count - 1, -1, -1)
        return numbers, first
    cells = np.empty(limit, np.int32)
    cells[ids[::-1]] = np.arange(count - 1, -1, -1, dtype=np.int32)  # the first row is the last
    first = np.flatnonzero(cells[ids] == np.arange(count, dtype=np.int32))
    cells[ids[first]] = np.arange(len(first), dtype=np.int32)
    return cells[ids], first


def _adds_exactly(array: Any) -> bool:
    """In any order, or in this one."""
    if array.dtype != np.int64 or not len(array):
        return True
    return bool(max(-int(array.min()), int(array.max())) * len(array) < EXACT)


def _keys_of(run: EventRun, positions: Sequence[int]) -> list[Column] | None:
    columns = [run.columns[position] for position in positions]
    found = [c for c in columns if isinstance(c, Column)]
    return found if len(found) == len(columns) and isinstance(run.clock, Column) else None


class ClosedBatches:
    """Groups stand batch after batch, in the order of their first events."""

    @classmethod
    def of(
        cls, run: EventRun, keys: Sequence[int], times: Any, low: int, bound: int, span: int
    ) -> ClosedBatches | None:
        """From `low` on, where nothing is open; None where a run is to be taken otherwise.

        `bound` is the end of the batch that the event at `low` falls into.
        """
        columns = _keys_of(run, keys)
        if columns is None or not isinstance(times, np.ndarray):
            return None
        mine = times[low:]
        if len(mine) < LEAST_EVENTS or not bool((mine[1:] >= mine[:-1]).all()):
            return None
        if max(int(mine[-1]) - bound, bound - int(mine[0])) >= REACH_MAX:
            return None
        number = np.maximum((mine - bound) // span + 1, 0)
        stop = int(np.searchsorted(number, number[-1]))
        if stop < LEAST_EVENTS:
            return None
        return cls(run, columns, low, number[: stop + 1], bound, span)

    def __init__(
        self, run: EventRun, keys: list[Column], low: int, number: Any, bound: int, span: int
    ) -> None:
        stop = len(number) - 1
        self._run, self._low, self._events = run, low, stop
        self.stop = low + stop
        self.bound = bound + int(number[-1]) * span
        opens = np.flatnonzero(np.diff(number, prepend=number[0] - 1))  # the last is still open
        batch = np.repeat(np.arange(len(opens) - 1), np.diff(opens))
        codes, count = _coded([k[low : self.stop] for k in keys])
        self._group, first = _grouped(batch * count + codes, (len(opens) - 1) * count)
        of_batch = batch[first]
        self._count = len(first)
        self._last = np.empty(self._count, np.int64)
        self._last[self._group] = np.arange(stop)
        self._cause = low + opens[1:]  # of each batch: the event that closes it
        self._groups = groups = np.bincount(of_batch)
        self._seq = np.arange(self._count) - np.repeat(np.cumsum(groups) - groups, groups)

    def sums(self, values: Sequence[Any]) -> Column | None:
        """Whole numbers wrap as Java's; None where a value is null or they are no numbers."""
        column = self._part(values)
        array = None if column is None else column.numbers()
        if array is None:
            return None
        return _numbers(self._added(array))

    def means(self, values: Sequence[Any]) -> Column | None:
        """None as for sums, and where a sum of whole numbers might not be exact."""
        column = self._part(values)
        array = None if column is None else column.numbers()
        if array is None or not _adds_exactly(array):
            return None
        return _numbers(self._added(array) / self._counted())

    def counts(self) -> Column:
        return _numbers(self._counted())

    def _counted(self) -> Any:
        return np.bincount(self._group, minlength=self._count)

    def _added(self, array: Any) -> Any:
        totals = np.zeros(self._count, array.dtype)
        np.add.at(totals, self._group, array)
        return totals

    def taken(self, values: Sequence[Any]) -> Any:
        """Of the last event of each group."""
        column = self._part(values)
        return None if column is None else column.take(self._last)

    def block(self, stream: str, data: list[Any]) -> OutColumns:
        run, count = self._run, self._count
        clock, offset, at = (self._caused(c) for c in (run.clock, run.offset, run.at))
        one, current, stamps = (
            _same(1, count),
            _same(CURRENT, count, AttrType.INT),
            self.taken(run.ts),
        )
        seq = _numbers(self._seq)
        return OutColumns(stream, clock, one, offset, seq, stamps, at, current, data)

    def _caused(self, values: Any) -> Column:
        return _numbers(np.repeat(values.take(self._cause).whole(), self._groups))

    def _part(self, values: Sequence[Any]) -> Column | None:
        return values[self._low : self.stop] if isinstance(values, Column) else None


class SlidingByKey:
    """For each event of a run: those of its key that came less than `span` ms of app time ago.

    Of what is open before the run only the keys in the run matter. Nobody sees an event leave, so
    it may leave when the run is over.
    """

    @classmethod
    def of(
        cls, rt: Runtime, run: EventRun, keys: Sequence[int], cell: int, span: int
    ) -> SlidingByKey | None:
        columns = _keys_of(run, keys)
        if columns is None or len(run.ts) < LEAST_EVENTS:
            return None
        codes, count = _coded(columns)
        if count * GROUP_EVENTS_MIN > len(codes):
            return None
        if (abs(run.clock[0]) + abs(run.clock[-1]) + span) * (count + 1) >= REACH_MAX:
            return None
        return cls(rt, run, (codes, _values(columns, codes, count)), cell, span)

    def __init__(
        self, rt: Runtime, run: EventRun, keyed: tuple[Any, list[Any]], cell: int, span: int
    ) -> None:
        codes, self._keys = keyed
        self._rt, self._run, self._cell = rt, run, cell
        states = [rt.keys.get(key) for key in self._keys]
        self._old = [
            (number, entry)
            for number, state in enumerate(states)
            if state is not None
            for entry in state[cell]
        ]
        clock = run.clock.whole()  # type: ignore[attr-defined]
        ids = np.concatenate([self._of_old(number for number, _ in self._old), codes])
        due = np.maximum(self._of_old(e[0] for _, e in self._old), clock[0])  # then or long ago
        self._due = np.concatenate([due, clock + span])
        self._order = np.argsort(ids, kind="stable")
        self._ids = ids[self._order]
        by_key = self._due[self._order]
        first = int(by_key.min())
        width = int(by_key.max()) - first + 1
        now = np.concatenate([np.zeros(len(self._old), np.int64), clock])[self._order]
        wanted = self._ids * width + np.clip(now - first, -1, width - 1)
        self._low = np.searchsorted(self._ids * width + (by_key - first), wanted, side="right")
        self._low = np.maximum(self._low, np.searchsorted(self._ids, self._ids))
        self._high = np.arange(1, len(ids) + 1)

    def _of_old(self, values: Iterator[int]) -> Any:
        return np.fromiter(values, np.int64, len(self._old))

    def counts(self) -> Column:
        return _numbers(self._by_time(self._high - self._low))

    def sums(self, position: int) -> Column | None:
        found = self._summed(position)
        return None if found is None else _numbers(found)

    def means(self, position: int) -> Column | None:
        found = self._summed(position)
        return None if found is None else _numbers(found / self._by_time(self._high - self._low))

    def _summed(self, position: int) -> Any:
        """Of whole numbers; None where one is null or a sum might not be exact."""
        column = self._run.columns[position]
        array = column.whole() if isinstance(column, Column) else None
        held = [entry[3][position] for _, entry in self._old]
        if array is None or None in held:
            return None
        array = np.concatenate([np.array(held, np.int64), array])
        if not _adds_exactly(array):
            return None
        total = np.concatenate(([0], np.cumsum(array[self._order])))
        return self._by_time(total[self._high] - total[self._low])

    def _by_time(self, by_key: Any) -> Any:
        found = np.empty_like(by_key)
        found[self._order] = by_key
        return found[len(self._old) :]

    def block(self, stream: str, data: list[Any]) -> OutColumns:
        run, count = self._run, len(self._run.ts)
        one, zero, current = _same(1, count), _same(0, count), _same(CURRENT, count, AttrType.INT)
        return OutColumns(stream, run.clock, one, run.offset, zero, run.ts, run.at, current, data)

    def settle(self, node: int) -> Iterator[tuple[State, Queue]]:
        """The states of the run's keys and what they hold now; `node` clears up when it is due."""
        rt, run, cell = self._rt, self._run, self._cell
        now, at = run.clock[-1], run.at[-1]
        for key in self._keys:
            if state := rt.keys.get(key):
                state[TIMERS].clear()
                state[cell].clear()
                rt.dirty.add(key)
        rt.fire(now, at)
        rt.now = max(rt.now, now)
        entries = self._entries(now)
        for key in self._keys:
            held = entries.get(key)
            if held:
                state = rt.state(key)
                held.stored = state[cell].stored
                state[cell] = held
                rt.arm(state, node, held[-1][0], held[-1][1])
                yield state, held
            elif state := rt.keys.get(key):
                yield state, state[cell]

    def _entries(self, now: int) -> dict[Any, Queue]:
        """(due, offset, ts, row) of every event that stays, by key, in order."""
        old, run = len(self._old), self._run
        stays = np.flatnonzero(self._due > now)
        ids = np.empty_like(self._ids)
        ids[self._order] = self._ids
        fresh = stays[stays >= old]
        take = taker(fresh - old)
        rows = zip(*map(take, run.columns), strict=True)
        made = zip(self._due[fresh].tolist(), take(run.offset), take(run.ts), rows, strict=True)
        kept = [self._old[i][1] for i in stays[stays < old].tolist()]
        found: dict[Any, Queue] = {}
        for number, entry in zip(ids[stays].tolist(), (*kept, *made), strict=True):
            found.setdefault(self._keys[number], Queue()).append(entry)
        return found
