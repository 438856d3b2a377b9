"""Find the app's first event, so that timers in all fragments start there.

Triggers, rate limits and absence count from the first event that any query reads. A single kernel
sees that event itself. An app that is split into fragments has several kernels, and the event may
belong to one of them only: the engine looks for it in each batch and passes it to all others.

With a declared lateness the first event in event time counts, and it is known only when time has
moved on by the lateness: until then a batch may bring an earlier one. Used by both engines.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from edgewise.engines.batch.columns import CLOCK, OFFSET, STREAM
from edgewise.engines.batch.inputs import InputLogs
from edgewise.engines.batch.job import AppStart, BatchRange
from edgewise.event.arrow import AT, TS
from edgewise.plan.fragments import Fragment
from edgewise.plan.nodes import App

FIRST_ROWS = 4096  # read of a large batch at first; four times as many where these do not decide
_NO_LIMIT = np.iinfo(np.int64).max


class AppStartFinder:
    """Looks through the batches of an engine until the app's first event is certain.

    A kernel that has started ignores what it is given here, so that a restart is harmless.
    """

    def __init__(self, app: App, fragments: Iterable[Fragment]) -> None:
        read = {name for fragment in fragments for name in fragment.inputs}
        self._lateness = app.lateness_ms or 0
        # Per input, how far an event may be behind the clock; -1 where no query reads the stream.
        self._allowed = np.array(
            [_allowed_delay(s.lateness_ms, s.name in read) for s in app.inputs]
        )
        self._first_clock: int | None = None
        self._certain = False

    def find(self, batch: BatchRange, inputs: InputLogs, table: Any = None) -> AppStart | None:
        """The earliest event of this batch, while it may be the app's first.

        `table` has the batch's rows; without it as many as needed are read.
        """
        if self._certain:
            return None
        rows = self._read_first_rows(batch, inputs) if table is None else table
        stream, ts, clock, offset, at = (
            rows.column(name).to_numpy() for name in (STREAM, TS, CLOCK, OFFSET, AT)
        )
        seen = np.flatnonzero(self._allowed[stream] >= clock - ts)
        if not len(seen):
            return None
        due = np.maximum(ts, clock - self._lateness)[seen]
        first = seen[np.lexsort((offset[seen], due))[0]]
        if self._first_clock is None:
            self._first_clock = int(clock[seen[0]])
        self._certain = batch.clock >= self._first_clock + self._lateness
        return AppStart(int(due.min()), int(offset[first]), int(at[first]))

    def _read_first_rows(self, batch: BatchRange, inputs: InputLogs) -> Any:
        """The beginning of a batch, long enough to hold the earliest event."""
        count, end = FIRST_ROWS, dict(batch.end)
        while True:
            until = inputs.limit_end(dict(batch.start), end, count)
            rows = inputs.read_table(batch.start, until, batch.clock_start)
            if until == end:
                return rows
            read = rows.filter(self._allowed[rows.column(STREAM).to_numpy()] >= 0).column(CLOCK)
            if len(read) and read[-1].as_py() > read[0].as_py() + self._lateness:
                return rows
            count *= 4


def _allowed_delay(lateness_ms: int | None, read: bool) -> int:
    if not read:
        return -1
    return _NO_LIMIT if lateness_ms is None else lateness_ms
