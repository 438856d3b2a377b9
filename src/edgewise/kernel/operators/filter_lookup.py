"""Find the queries that an event concerns: by the value of an attribute, or by its range.

Every part answers with a small key: the value itself if some query asks for it, or the number of
the segment between two neighbouring thresholds. Events with the same keys concern the same
queries, so the list for a combination is made once and kept.

    v > 10, v > 20, v <= 20     thresholds 10 and 20     v = 15 is in segment 1: queries 0 and 2
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from typing import Any

REMEMBERED_MAX = 1_000_000  # entries in all remembered lists together

Entry = Callable[[Any, Any], None]
Span = tuple[Any, bool, Any, bool, int]  # low, without it, high, without it, whose; None: no end


class ByValue:
    """Queries by the values they ask for."""

    def __init__(self, position: int, wanted: tuple[tuple[Any, tuple[int, ...]], ...]) -> None:
        self.position = position
        self._wanted: dict[Any, tuple[int, ...]] = dict(wanted)

    def key(self, value: Any) -> Any:
        return value if value in self._wanted else None

    def queries(self, key: Any) -> tuple[int, ...]:
        return self._wanted.get(key, ())


class ByRange:
    """Queries by the range they ask for. Even segments lie between thresholds, odd ones on one."""

    def __init__(self, position: int, spans: tuple[Span, ...]) -> None:
        self.position = position
        ends = {end for low, _, high, _, _ in spans for end in (low, high) if end is not None}
        self._cuts = sorted(ends)
        self._segments = [self._covered(span) for span in spans]

    def key(self, value: Any) -> int | None:
        if value is None or value != value:  # noqa: PLR0124  NaN lies nowhere
            return None
        cuts = self._cuts
        at = bisect_left(cuts, value)
        return 2 * at + 1 if at < len(cuts) and cuts[at] == value else 2 * at

    def queries(self, key: Any) -> tuple[int, ...]:
        if key is None:
            return ()
        return tuple([n for first, last, n in self._segments if first <= key <= last])

    def _covered(self, span: Span) -> tuple[int, int, int]:
        """The first and last segment of a span, and whose it is."""
        low, above, high, below, whose = span
        first, last = 0, 2 * len(self._cuts)
        if low is not None:
            first = 2 * bisect_left(self._cuts, low) + (2 if above else 1)
        if high is not None:
            last = 2 * bisect_left(self._cuts, high) + (0 if below else 1)
        return first, last, whose


class Index:
    """`entries` in order of definition; `rest` are the numbers of those asked about all events."""

    def __init__(
        self, entries: tuple[Entry, ...], parts: tuple[ByValue | ByRange, ...], rest: list[int]
    ) -> None:
        self._entries = entries
        self._parts = parts
        self._rest = rest
        self._found: dict[Any, tuple[Entry, ...]] = {}
        self._remembered = 0
        self._one, self._place = parts[0].key, parts[0].position
        # The entries an event may concern, in order of definition.
        self.find = self._find_by_one if len(parts) == 1 else self._find

    def _find(self, row: tuple[Any, ...]) -> tuple[Entry, ...]:
        keys = tuple([part.key(row[part.position]) for part in self._parts])
        found = self._found.get(keys)
        return self._look_up(keys, keys) if found is None else found

    def _find_by_one(self, row: tuple[Any, ...]) -> tuple[Entry, ...]:
        key = self._one(row[self._place])
        found = self._found.get(key)
        return self._look_up(key, (key,)) if found is None else found

    def _look_up(self, name: Any, keys: tuple[Any, ...]) -> tuple[Entry, ...]:
        numbers = list(self._rest)
        for part, key in zip(self._parts, keys, strict=True):
            numbers += part.queries(key)
        found = tuple(self._entries[n] for n in sorted(numbers))
        self._remembered += len(found) + 1
        if self._remembered > REMEMBERED_MAX:
            self._found.clear()
            self._remembered = len(found) + 1
        self._found[name] = found
        return found
