"""Append idle ticks to streams that have no events, so that their time goes on.

Windows, patterns and timers move with the event time of their streams. While a stream has no
events, its event time advances at the pace of the wall clock: an idle tick, a row without an
event, carries the new time to the engine through the log, so that a replay sees it too. Used by
`serve`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from edgewise.errors import LogError
from edgewise.event.arrow import SYSTEM_COUNT, record_batch
from edgewise.event.event import EventKind
from edgewise.log.api import CLOCK_NONE, LogReader, LogWriter
from edgewise.log.locations import open_reader

TICK_EVERY_S = 1.0


class IdleClock:
    """How long one stream has been idle. `head` is where its log ends.

    The answers add up to the time that has passed, however irregularly it is asked: event time
    does not fall behind on a slow machine.
    """

    def __init__(self, head: int, now_s: float) -> None:
        self._head, self._since_s = head, now_s

    def measure_ms(self, head: int, now_s: float) -> int:
        """Idle time since the last call; 0 where events came since."""
        if head != self._head:
            self._head, self._since_s = head, now_s
            return 0
        idle_ms = int((now_s - self._since_s) * 1000)
        self._since_s += idle_ms / 1000
        return idle_ms

    def skip_tick(self, head: int) -> None:
        """The log ends after our own tick, which is no event."""
        self._head = head


class IdleTicker:
    """Ticks the input streams of a node; `locations` says where their logs are."""

    def __init__(self, writers: Mapping[str, LogWriter], locations: Mapping[str, str]) -> None:
        self._writers = writers
        self._locations = locations

    async def run(self) -> None:
        """Until the task is cancelled."""
        readers = {name: open_reader(self._locations[name]) for name in self._writers}
        now_s = time.monotonic()
        clocks = {n: IdleClock(w.head.offset, now_s) for n, w in self._writers.items()}
        try:
            while True:
                await asyncio.sleep(TICK_EVERY_S)
                for name, writer in self._writers.items():
                    idle_ms = clocks[name].measure_ms(writer.head.offset, time.monotonic())
                    if idle_ms:
                        await asyncio.to_thread(_advance, writer, readers[name], idle_ms)
                        clocks[name].skip_tick(writer.head.offset)
        finally:
            for reader in readers.values():
                reader.close()


def _advance(writer: LogWriter, reader: LogReader, idle_ms: int) -> None:
    """While the disk is full or a broker away, no event can come either: time stands still."""
    with suppress(LogError):
        clock = reader.clock(writer.head.offset)
        if clock != CLOCK_NONE:
            append_tick(writer, clock + idle_ms)


def append_tick(writer: LogWriter, ts: int) -> None:
    """Move the event time of a log to `ts`."""
    columns: list[list[Any]] = [[None]] * (len(writer.schema) - SYSTEM_COUNT)
    captured_us = time.time_ns() // 1000
    kinds = [int(EventKind.TICK)]
    writer.append(record_batch(writer.schema, [ts], [captured_us], kinds, columns))
