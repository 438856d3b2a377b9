"""Hold the partial matches that wait for an element, and find those that an event can use.

Matches stand in the order they came, which is the order of the rows they become. Beside them an
index, if the element's condition compares its event with earlier ones:

    e2[k == e1.k]              a dictionary by e1.k
    e2[v > e1.v]               matches sorted by e1.v: those below v
    e2[k == e1.k and v > e1.v] a dictionary by e1.k of matches sorted by e1.v

An index only narrows: whoever asks tests what it finds. It is not state: it is left out of
snapshots and built again when it is first asked. What an index costs is paid when a match comes
and when it goes; an event that suits none costs one look-up. Used by `patterns`.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from sortedcontainers import SortedList

from edgewise.kernel.runtime import Row
from edgewise.kernel.serialize import shared

NEVER = -1
Slots = list[tuple[tuple[int, Row], ...] | None]
Entry = tuple[Any, int, int]  # what it is sorted by, its arrival, the id of the match
_ARRIVAL = itemgetter(1)
_LAST = float("inf")  # behind every arrival


@shared
class Match:
    """What was collected so far: per slot the events taken, and the time of the last step.

    A `whole` one was delivered; it may stand in a list for a while and is no time-out then.
    """

    __slots__ = ("expired", "slots", "ts", "whole")

    def __init__(self, slots: Slots, ts: int = NEVER, expired: bool = False) -> None:
        self.slots = slots
        self.ts = ts
        self.expired = expired
        self.whole = False

    @property
    def begun(self) -> bool:
        return any(taken is not None for taken in self.slots)

    def copy(self) -> Match:
        return Match(self.slots[:], self.ts)


def at(taken: tuple[tuple[int, Row], ...] | None, index: int) -> tuple[int, Row] | None:
    """One of the events an element took: 0 is the first, -1 the last."""
    if taken is None or not -len(taken) <= index < len(taken):
        return None
    return taken[index]


def values(taken: tuple[tuple[int, Row], ...] | None, position: int) -> list[Any]:
    """One attribute of all events a counted element took; none where it took none."""
    return [row[position] for _, row in taken or ()]


@dataclass(frozen=True, slots=True, eq=False)
class Lookup:
    """How an event finds its matches: equal keys, then a range of values.

    `bounds` are comparisons, read from the side of the match: '<' wants values below the event's.
    A key or a value that is None finds nothing and is found by nothing: so compares null.
    """

    match_key: Callable[[Match], Any] | None = None
    event_key: Callable[[int, Row], Any] | None = None
    match_value: Callable[[Match], Any] | None = None
    bounds: tuple[tuple[str, Callable[[int, Row], Any]], ...] = ()


class MatchIndex:
    """The matches of one `Waiting`, as one `Lookup` wants them."""

    __slots__ = ("_arrivals", "_buckets", "_lookup", "_places")

    def __init__(self, lookup: Lookup, matches: Iterable[Match]) -> None:
        self._lookup = lookup
        self._arrivals = 0
        self._buckets: dict[Any, Any] = {}
        self._places: dict[int, tuple[Any, Entry | None]] = {}
        for match in matches:
            self.add(match)

    def add(self, match: Match) -> None:
        lookup, key, identity = self._lookup, (), id(match)
        if lookup.match_key is not None:
            key = lookup.match_key(match)
            if key is None:
                return
        if lookup.match_value is None:
            bucket = self._buckets.get(key)
            if bucket is None:
                bucket = self._buckets[key] = {}
            bucket[identity] = match
            self._places[identity] = key, None
            return
        value = lookup.match_value(match)
        if value is None or value != value:  # noqa: PLR0124  NaN compares with nothing
            return
        bucket = self._buckets.get(key)
        if bucket is None:
            bucket = self._buckets[key] = SortedList()
        self._arrivals += 1
        entry = value, self._arrivals, identity
        bucket.add(entry)
        self._places[identity] = key, entry

    def remove(self, identity: int) -> None:
        place = self._places.pop(identity, None)
        if place is None:
            return
        key, entry = place
        bucket = self._buckets[key]
        if entry is None:
            del bucket[identity]
        else:
            bucket.remove(entry)
        if not bucket:
            del self._buckets[key]

    def found(self, ts: int, row: Row) -> Iterable[int]:
        """Ids of those that may suit, in the order they came."""
        lookup, key = self._lookup, ()
        if lookup.event_key is not None:
            key = lookup.event_key(ts, row)
        bucket = self._buckets.get(key)
        if bucket is None:
            return ()
        if lookup.match_value is None:
            return list(bucket)
        limits = []
        for op, value_of in lookup.bounds:
            value = value_of(ts, row)
            if value is None or value != value:  # noqa: PLR0124
                return ()
            limits.append((op, value))
        return _between(bucket, limits)


def _between(entries: Any, limits: Iterable[tuple[str, Any]]) -> Iterable[int]:
    low, high = 0, len(entries)
    for op, value in limits:
        match op:
            case "<":
                high = min(high, entries.bisect_left((value,)))
            case "<=":
                high = min(high, entries.bisect_left((value, _LAST)))
            case ">":
                low = max(low, entries.bisect_left((value, _LAST)))
            case _:
                low = max(low, entries.bisect_left((value,)))
    if low >= high:
        return ()
    return [entry[2] for entry in sorted(entries[low:high], key=_ARRIVAL)]


@shared
class Waiting:
    """Matches in the order they came. One stands here once."""

    SAVED = ("in_order",)
    __slots__ = ("_held", "_indexes")

    def __init__(self) -> None:
        self._held: OrderedDict[int, Match] = OrderedDict()
        self._indexes: dict[Lookup, MatchIndex] = {}

    @property
    def in_order(self) -> list[Match]:
        return list(self._held.values())

    @in_order.setter
    def in_order(self, matches: Iterable[Match]) -> None:
        self._held = OrderedDict((id(match), match) for match in matches)
        self._indexes = {}

    def __len__(self) -> int:
        return len(self._held)

    def __iter__(self) -> Iterator[Match]:
        return iter(self._held.values())

    def __contains__(self, match: Match) -> bool:
        return id(match) in self._held

    @property
    def first(self) -> Match:
        return next(iter(self._held.values()))

    def append(self, match: Match) -> None:
        self._held[id(match)] = match
        for index in self._indexes.values():
            index.add(match)

    def extend(self, matches: Iterable[Match]) -> None:
        for match in matches:
            self.append(match)

    def remove(self, match: Match) -> None:
        """Nothing happens where it does not stand here."""
        identity = id(match)
        if self._held.pop(identity, None) is not None:
            for index in self._indexes.values():
                index.remove(identity)

    def clear(self) -> None:
        if self._held:
            self._held.clear()
            self._indexes.clear()

    def found(self, lookup: Lookup | None, ts: int, row: Row) -> list[Match]:
        """Those that an event may suit; all of them where nothing narrows."""
        held = self._held
        if lookup is None:
            return list(held.values())
        index = self._indexes.get(lookup)
        if index is None:
            index = self._indexes[lookup] = MatchIndex(lookup, held.values())
        return [held[identity] for identity in index.found(ts, row)]
