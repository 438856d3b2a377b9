"""Remember the last appends of each producer, so that appends are idempotent. Pure.

Bounded twice: the `limit` producers that appended last are known, and of each the last
RECENT_MAX appends with their offsets. An older sequence of a known producer is still recognised
as a duplicate, only its offsets are forgotten. Writers of all logs use it.
"""

from __future__ import annotations

from edgewise.log.api import Appended
from edgewise.log.frame import ProducerState

RECENT_MAX = 8


class Producers:
    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._known: dict[str, list[tuple[int, int, int]]] = {}

    @classmethod
    def restore(cls, states: list[ProducerState], limit: int) -> Producers:
        producers = cls(limit)
        for state in states[-limit:]:
            producers._known[state.name] = list(state.recent)
        return producers

    def snapshot(self) -> list[ProducerState]:
        """Least recent first, so that `restore` forgets in the right order."""
        return [ProducerState(name, list(recent)) for name, recent in self._known.items()]

    def last(self, producer: str) -> int:
        """The highest sequence of a producer, -1 when it is not known."""
        recent = self._known.get(producer)
        return recent[-1][0] if recent else -1

    def find(self, producer: str, sequence: int, head: int) -> Appended | None:
        """The answer an append got before, None if it is new."""
        recent = self._known.get(producer)
        if not producer or sequence < 0 or not recent or sequence > recent[-1][0]:
            return None
        for number, first, end in reversed(recent):
            if number == sequence:
                return Appended(first, end, duplicate=True)
        return Appended(head, head, duplicate=True)

    def record(self, producer: str, sequence: int, first: int, end: int) -> None:
        """The frames of one append are recorded one by one and count as one."""
        if not producer or sequence < 0:
            return
        recent = self._known.pop(producer, [])
        if recent and recent[-1][0] == sequence:
            first = recent.pop()[1]
        self._known[producer] = [*recent[-(RECENT_MAX - 1) :], (sequence, first, end)]
        while len(self._known) > self._limit:
            del self._known[next(iter(self._known))]
