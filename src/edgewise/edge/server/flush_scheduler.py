"""Decide when sessions with something to send are flushed: at once, or together in rounds.

A quiet edge flushes at once; a busy one collects, so that many updates share a write. A round
serves each session once, by one write, in slices: between two slices new values are taken in, and
sessions that are served later get the newer ones. So under load each session gets fewer updates,
evenly, and none as old as a whole round. What may not be conflated is taken in only while little
of it waits: then its source has to wait. The server and its connections call it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Mapping
from typing import Protocol

from edgewise.edge.sessions.fanout import Fanout
from edgewise.edge.sessions.outbox import Outbox

QUIET_US = 500  # below this nothing is gained by waiting
CROWD_MIN = 8  # sessions in a round from which on collecting pays
ROUNDS_PER_TICK = 2  # the longest wait, in times of the last round
SLICE_US = 2_000  # one slice of a round
CLOCK_EVERY = 16  # sessions between two readings of the clock
LONG_AGO_US = 1_000_000  # a round that ended then says nothing about now
QUEUED_MAX = 4  # unconflated updates per session that may come in during one round


def now_us() -> int:
    return time.time_ns() // 1000


class Flushable(Protocol):
    def flush(self, now_us: int) -> None: ...


class FlushScheduler:
    """Methods belong to the loop that `begin` was called in."""

    def __init__(
        self, fanout: Fanout, carriers: Mapping[Outbox, Flushable], tick_max_us: int
    ) -> None:
        self.tick_us = 0  # how long to collect before the next round
        self.spent_us = 0  # on the last round
        self._fanout = fanout
        self._carriers = carriers
        self._tick_max_us = tick_max_us
        self._loop: asyncio.AbstractEventLoop | None = None
        self._handle: asyncio.Handle | None = None
        self._ended_us = 0
        self._began_us = 0
        self._size = 0  # sessions in the round that goes on
        self._queued_max = 0
        self._left: Iterator[Outbox] = iter(())
        self._more = False  # somebody could have been given more than one write

    def begin(self) -> None:
        self._loop = asyncio.get_running_loop()

    def stop(self) -> None:
        self._loop = None
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def longer_than(self, limit_us: int) -> bool:
        """Whether a round takes longer than that, now or a moment ago."""
        if self._size:
            return now_us() - self._began_us > limit_us
        return self.spent_us > limit_us and now_us() - self._ended_us < LONG_AGO_US

    def due(self, now_us: int) -> None:
        """A client spoke: a quiet edge answers at once."""
        dirty = self._fanout.dirty
        if self._handle is not None or not dirty:
            return
        if not self.tick_us and len(dirty) < CROWD_MIN:
            self._fanout.dirty = {}
            for outbox in dirty:
                carrier = self._carriers.get(outbox)
                if carrier is not None:
                    carrier.flush(now_us)
        elif now_us - self._ended_us >= self.tick_us:
            self._start()
        else:
            self.soon()

    def again(self, outbox: Outbox) -> None:
        """One write was not enough, and the socket would take another: in the next round."""
        self._fanout.dirty[outbox] = None
        self._more = True
        if not self._size:
            self.soon()

    def soon(self) -> None:
        """After this turn of the loop, or when the tick is over."""
        if self._handle is not None or self._loop is None or not self._fanout.dirty:
            return
        wait_us = 0 if self._more else self._ended_us + self.tick_us - now_us()
        if wait_us > 0:
            # Many updates within one tick share one write per session.
            self._handle = self._loop.call_later(wait_us / 1_000_000, self._start)
        else:
            self._handle = self._loop.call_soon(self._start)

    def _start(self) -> None:
        dirty, self._fanout.dirty = self._fanout.dirty, {}
        self._left, self._size, self._more = iter(dirty), len(dirty), False
        self._queued_max = self._fanout.queued + QUEUED_MAX * self._size
        self._began_us = now_us()
        self._go_on()

    def _go_on(self) -> None:
        self._handle = None
        carriers = self._carriers
        now = now_us()
        end_us = now + SLICE_US
        for seen, outbox in enumerate(self._left, 1):
            carrier = carriers.get(outbox)
            if carrier is not None:
                carrier.flush(now)
            if seen % CLOCK_EVERY == 0:
                now = now_us()
                if now >= end_us and self._may_pause():
                    assert self._loop is not None
                    self._handle = self._loop.call_soon(self._go_on)
                    return
        self._end()

    def _may_pause(self) -> bool:
        return self._loop is not None and self._fanout.queued <= self._queued_max

    def _end(self) -> None:
        self._left = iter(())
        self._ended_us = now_us()
        self.spent_us = self._ended_us - self._began_us
        # A quiet edge flushes at once; a busy one collects for a few rounds' worth of time. A long
        # round of few sessions is somebody else's load: waiting would share nothing.
        tick_us = min(self._tick_max_us, ROUNDS_PER_TICK * self.spent_us)
        self.tick_us = tick_us if tick_us > QUIET_US and self._size >= CROWD_MIN else 0
        self._size = 0
        self.soon()
