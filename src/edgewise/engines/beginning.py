"""When an app begins: with the first event that any query reads, whosever fragment that is.

Triggers, rate limits and absence count from then on. The embedded engine sees that event, being
one kernel; fragments that live apart are told of it with the batch that has it. Where events are
put in order first it is the first in that order, known once time has gone on by the lateness.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from edgewise.engines.host import Cut, Pulse
from edgewise.engines.inputs import CLOCK, OFFSET, STREAM, Inputs
from edgewise.event.arrow import AT, TS
from edgewise.plan.fragments import Fragment
from edgewise.plan.nodes import App

LOOK_ROWS = 4096  # of a large batch, at first; more where its events do not tell yet


class Beginning:
    """Asked batch by batch, from where an engine starts or goes on; a kernel that has begun long
    ago does not listen.
    """

    def __init__(self, app: App, fragments: Iterable[Fragment]) -> None:
        read = {name for fragment in fragments for name in fragment.inputs}
        self._lag = app.lateness_ms or 0
        self._behind = np.array(  # how far behind the clock an event of each stream may be
            [-1 if s.name not in read else _allowed(s.lateness_ms) for s in app.inputs]
        )
        self._first: int | None = None
        self._over = False

    def of(self, cut: Cut, inputs: Inputs, table: Any = None) -> Pulse | None:
        """The event in this batch, if it may be the one; `table` are its rows, if at hand."""
        if self._over:
            return None
        rows = self._look(cut, inputs) if table is None else table
        stream, ts, clock, offset, at = (
            rows.column(name).to_numpy() for name in (STREAM, TS, CLOCK, OFFSET, AT)
        )
        seen = np.flatnonzero(self._behind[stream] >= clock - ts)
        if not len(seen):
            return None
        due = np.maximum(ts, clock - self._lag)[seen]
        first = seen[np.lexsort((offset[seen], due))[0]]
        if self._first is None:
            self._first = int(clock[seen[0]])
        self._over = cut.clock >= self._first + self._lag
        return int(due.min()), int(offset[first]), int(at[first])

    def _look(self, cut: Cut, inputs: Inputs) -> Any:
        """As many rows from the beginning of a batch as are needed."""
        count, end = LOOK_ROWS, dict(cut.end)
        while True:
            some = inputs.cut(dict(cut.start), end, count)
            rows = inputs.table(cut.start, some, cut.clock_start)
            if some == end:
                return rows
            read = rows.filter(self._behind[rows.column(STREAM).to_numpy()] >= 0).column(CLOCK)
            if len(read) and read[-1].as_py() > read[0].as_py() + self._lag:
                return rows
            count *= 4


def _allowed(lateness_ms: int | None) -> int:
    return np.iinfo(np.int64).max if lateness_ms is None else lateness_ms
