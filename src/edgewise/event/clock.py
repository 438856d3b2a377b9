"""Define clocks as arguments, so that code without I/O can be tested with a `ManualClock`.

The node passes the clock of the system.
"""

from __future__ import annotations

from typing import Protocol


class SystemClock(Protocol):
    """The time now, as a node's clock or a test's says."""

    def now_us(self) -> int:
        """Microseconds since the epoch."""
        ...


class ManualClock:
    """A clock that moves only by `advance`."""

    def __init__(self, now_us: int = 0) -> None:
        self._now_us = now_us

    def now_us(self) -> int:
        return self._now_us

    def advance(self, by_us: int) -> None:
        self._now_us += by_us
