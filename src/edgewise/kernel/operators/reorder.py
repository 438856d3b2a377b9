"""Put events in order of time before queries see them, as far as their streams declare it.

With a declared lateness an app's time runs behind the newest event by the largest lateness of its
streams. An event waits here until that time reaches its own, so queries see events sorted by
time; those of one moment keep the order they came in. What comes later than its stream allows goes
to the fault stream, if there is one, and is counted in any case. A stream that declares nothing is
put in order too; its events that come too late for that are passed on at once.

When an event is released does not matter for the order position of its rows: that is the event's
own time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from heapq import heappop, heappush
from itertools import groupby
from operator import itemgetter
from typing import Any

from edgewise.kernel.api import EventRun, KernelStats
from edgewise.kernel.runtime import BEGINNING, Failed
from edgewise.plan.nodes import App

HELD_MAX = 1_000_000  # events of one kernel that wait; beyond it the oldest go on early
APP_START = ""  # the stream of an event that is read elsewhere
HELD = "held"  # the name of what waits among the states of keys, which are tuples

Held = tuple[int, int, str, int, int, tuple[Any, ...]]  # time to go, offset, stream, ts, at, row


class ReorderBuffer:
    def __init__(
        self, app: App, stats: KernelStats, record_failure: Callable[[Failed], None]
    ) -> None:
        self.lag_ms = app.lateness_ms or 0
        self.floor = BEGINNING  # no event is handed on at a time before this
        self._allowed = {s.name: s.lateness_ms for s in app.streams}
        self._fault_streams = {s.name[1:]: s.name for s in app.streams if s.name.startswith("!")}
        self._held: list[Held] = []
        self._stats = stats
        self._record_failure = record_failure

    def put(self, run: EventRun) -> None:
        allowed = self._allowed.get(run.stream)
        for ts, offset, clock, at, *row in zip(
            run.ts, run.offset, run.clock, run.at, *run.columns, strict=True
        ):
            due = max(ts, clock - self.lag_ms, self.floor)
            if allowed is None or ts >= clock - allowed:
                heappush(self._held, (due, offset, run.stream, ts, at, tuple(row)))
                continue
            late = self._stats.late
            late[run.stream] = late.get(run.stream, 0) + 1
            why = f"late by {clock - allowed - ts} ms"
            self._record_failure((run.stream, clock, offset, at, why, [tuple(row)]))
            if run.stream in self._fault_streams:
                fault_row = (*row, why)
                heappush(
                    self._held, (due, offset, self._fault_streams[run.stream], ts, at, fault_row)
                )

    def note_app_start(self, clock: int, offset: int, at: int) -> None:
        """An event of a stream that is not read here: only its position waits."""
        heappush(self._held, (max(clock, self.floor), offset, APP_START, clock, at, ()))

    def release(self, clock: int) -> Iterator[EventRun]:
        """What is in order by the time `clock`, in runs of one stream."""
        watermark, held = clock - self.lag_ms, self._held
        ready: list[Held] = []
        while held and (held[0][0] <= watermark or len(held) > HELD_MAX):
            ready.append(heappop(held))
        if ready:
            self.floor = max(self.floor, ready[-1][0])
        for stream, events in groupby(ready, key=itemgetter(2)):
            clocks, offsets, _, stamps, ats, rows = zip(*events, strict=True)
            yield EventRun(stream, stamps, list(zip(*rows, strict=True)), offsets, clocks, ats)

    def state(self) -> list[Any]:
        return [self.floor, sorted(self._held)]

    def restore(self, state: list[Any]) -> None:
        self.floor, self._held = state  # sorted, so it is a heap
