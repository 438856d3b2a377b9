"""Hold rows that come at the right and leave at the left: what windows keep in order.

A `Queue` is a deque that is only appended to and popped from the left, and whose items never
change. So what a store lacks is at its right end, and what a store has too much of is at its left
end: a save costs what came since the last one (`state.queue_parts`), whatever the queue holds. A
deque would do as well for the operators; the type is the promise. Used by windows.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from itertools import islice
from typing import Any


class StoredQueue:
    """What a store has of a queue: rows of parts `first` to `end`, without the first `skip`."""

    __slots__ = ("end", "first", "last", "name", "rows", "skip")

    def __init__(self, name: int, first: int = 0, skip: int = 0) -> None:
        self.name, self.first, self.end, self.skip = name, first, first, skip
        self.rows: deque[int] = deque()  # of each part
        self.last: Any = None  # the row at the right end at the last save

    def count(self) -> int:
        return sum(self.rows) - self.skip


class Queue(deque[Any]):
    """`stored` is what a store has of it, None while it has nothing."""

    __slots__ = ("stored",)

    def __init__(self, items: Iterable[Any] = (), stored: StoredQueue | None = None) -> None:
        super().__init__(items)
        self.stored = stored

    @classmethod
    def of_parts(cls, name: int, first: int, end: int, skip: int, parts: list[Any]) -> Queue:
        """A queue that a store has as these parts."""
        stored = StoredQueue(name, first, skip)
        stored.end = end
        stored.rows.extend(map(len, parts))
        queue = cls(islice((row for rows in parts for row in rows), skip, None), stored)
        stored.last = queue[-1] if queue else None
        return queue
