"""A conversation keeps its loop awake: who is answered at once and speaks again at once finds us
still looking at the sockets, not asleep.

Going to sleep and waking up costs more than the whole answer. So when one client speaks twice in
a row within `SPIN_US`, the loop looks again and again without sleeping, for no longer than that
after the last word. Anything slower, and a crowd, costs nothing: there the loop sleeps as ever.
"""

from __future__ import annotations

import asyncio
from time import perf_counter_ns

SPIN_US = 250


class Awake:
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

    def spoke(self, who: object) -> None:
        """Called when the answer is on its way."""
        now_ns = perf_counter_ns()
        again = who is self._last and now_ns < self._until_ns
        self._until_ns = now_ns + SPIN_US * 1000
        if not again:
            self._last = who
        elif not self._spins and self._loop is not None:
            self._spins = True
            self._loop.call_soon(self._look)

    def _look(self) -> None:
        if self._loop is not None and perf_counter_ns() < self._until_ns:
            self._loop.call_soon(self._look)
        else:
            self._spins = False
