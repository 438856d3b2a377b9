"""Check all topics and connections again and again, a slice in each turn of the loop.

Topics and connections end by time: what is stale, idle or over is found here. Ten thousand
connections in one turn would delay every other session, so a sweep goes on in slices; the totals
over all sessions are counted on the way. Used by `server`.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Iterator

from edgewise.edge.access.auth import AccessControl
from edgewise.edge.metrics.reports import SystemTopics
from edgewise.edge.metrics.telemetry import SessionTotals
from edgewise.edge.server.flush_scheduler import now_us
from edgewise.edge.sessions.fanout import Fanout
from edgewise.edge.transports.connection import Connection
from edgewise.edge.transports.emulated import PollConnection

SWEEP_SLICE = 128  # connections checked in one turn of the loop
Carrier = Connection | PollConnection


class Sweeper:
    """`totals` are those of the last whole sweep. Methods belong to the loop."""

    def __init__(
        self,
        every_ms: int,
        fanout: Fanout,
        access: AccessControl,
        reports: SystemTopics,
        *,
        carriers: Callable[[], list[Carrier]],
        end: Callable[[Carrier], None],
        flush_soon: Callable[[], None],
    ) -> None:
        self.totals = SessionTotals()
        self._every_s = every_ms / 1000
        self._fanout = fanout
        self._access = access
        self._reports = reports
        self._carriers = carriers
        self._end = end
        self._flush_soon = flush_soon
        self._next: asyncio.Handle | None = None

    def start(self) -> None:
        self._next = asyncio.get_running_loop().call_later(self._every_s, self._sweep)

    def stop(self) -> None:
        if self._next is not None:
            self._next.cancel()
            self._next = None

    def _sweep(self) -> None:
        now = now_us()
        if self._fanout.sweep(now):
            self._flush_soon()
            self._next = asyncio.get_running_loop().call_soon(self._sweep)
            return
        self._access.reload_revoked()
        totals = SessionTotals() if self._reports.due(now) else None
        self._check(iter(self._carriers()), totals)

    def _check(self, carriers: Iterator[Carrier], totals: SessionTotals | None) -> None:
        """One slice; `totals` is None where this sweep is not reported."""
        now, seen = now_us(), 0
        for carrier in itertools.islice(carriers, SWEEP_SLICE):
            seen += 1
            carrier.tick(now)
            if totals is not None:
                totals.add(carrier.session, carrier.bytes_sent)
            if isinstance(carrier, PollConnection) and carrier.over:
                self._end(carrier)
        over = seen < SWEEP_SLICE
        if over and totals is not None:
            self.totals = totals
            self._reports.publish(now)
        self._flush_soon()
        if over:
            self.start()
        else:
            self._next = asyncio.get_running_loop().call_soon(self._check, carriers, totals)
