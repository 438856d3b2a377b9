"""Busy-poll for up to 250 us after back-to-back messages of one client.

Going to sleep and waking up costs more than a whole answer. So when one client sends twice in a
row within `SPIN_US`, the loop polls its sockets without sleeping, for no longer than that after
the last message. Slower clients, and many at once, cost nothing: there the loop sleeps as always.
The server reports each message to it.
"""

from __future__ import annotations

import asyncio
from time import perf_counter_ns

SPIN_US = 250


class BusyPoll:
    """Methods belong to the loop that `begin` was called in."""

    __slots__ = ("_last", "_loop", "_spins", "_until_ns")

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._last: object = None
        self._until_ns = 0
        self._spins = False

    def begin(self) -> None:
        self._loop = asyncio.get_running_loop()

    def stop(self) -> None:
        self._loop = self._last = None

    def record_activity(self, who: object) -> None:
        """Called when the answer is on its way."""
        now_ns = perf_counter_ns()
        again = who is self._last and now_ns < self._until_ns
        self._until_ns = now_ns + SPIN_US * 1000
        if not again:
            self._last = who
        elif not self._spins and self._loop is not None:
            self._spins = True
            self._loop.call_soon(self._check)

    def _check(self) -> None:
        if self._loop is not None and perf_counter_ns() < self._until_ns:
            self._loop.call_soon(self._check)
        else:
            self._spins = False
