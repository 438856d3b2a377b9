"""Clocks are arguments. The I/O files pass a real one, tests pass a `ManualClock`."""

from __future__ import annotations

from typing import Protocol


class Clock(Protocol):
    def now_us(self) -> int:
        """Microseconds since the epoch."""
        ...


class ManualClock:
    """A clock that moves when told."""

    def __init__(self, now_us: int = 0) -> None:
        self._now_us = now_us

    def now_us(self) -> int:
        return self._now_us

    def advance(self, by_us: int) -> None:
        self._now_us += by_us
