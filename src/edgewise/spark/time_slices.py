"""Run a window by event time in several tasks at once: slices of one batch.

A window `externalTimeBatch(t, span)` that only sums by group forgets everything when it closes
(the rule is `plan.rules.sliceable_windows`). So a batch can be divided where a window ends,
without any key. For example windows of 10, three tasks, times along the log:

    t         3  7  11 | 14  19  22 | 25  31 | 38      | 44  47  52 | 54
    windows   [3,13)     [13,23)      [23,33)  [33,43)   [43,53)      [53,63)
    task 0    3  7  11   14  19  22  (25)
    task 1                            25  31  (38)
    task 2                                     38        44  47  52   54  -> writes the state

- A slice starts with an event that closes a window. There the kernel holds nothing but the end of
  the next window, which is computed from the event's time, so that no state is needed.
- It reads one event more than its own, in brackets: that one closes the slice's last window.
- Each task finds its own bounds: it starts to look at its equal share of the offsets.
- The last slice leaves the open window, and writes it as the state of the batch.

All this holds only if times ascend along the log. A task checks that while it reads; where they
do not ascend it refuses (`is_refused`), and the engine runs the fragment by one task instead, for
this batch and for all later ones. Used by `tasks`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from edgewise.engines.batch.inputs import InputLogs
from edgewise.engines.batch.job import BatchRange, Job
from edgewise.engines.batch.live_kernels import load_kernel
from edgewise.engines.batch.outputs import FragmentOutput
from edgewise.engines.batch.run import collect_output, feed_kernel, finish_batch, join_chunks
from edgewise.engines.batch.select_rows import select_rows
from edgewise.errors import EdgewiseError
from edgewise.event.arrow import KIND
from edgewise.event.event import EventKind
from edgewise.plan.rules.sliceable_windows import TimeBatchWindow, find_time_batch_window

REFUSED = "refused"
_NO_TIME = -(1 << 63)
_MORE, _TICK = (pa.scalar(int(k), pa.int8()) for k in (EventKind.MORE, EventKind.TICK))

logger = logging.getLogger(__name__)


def is_refused(output: FragmentOutput) -> bool:
    return REFUSED in output.counts


def run_time_slice(
    inputs: InputLogs, batch: BatchRange, job: Job, slices: int, index: int
) -> FragmentOutput:
    """The output of one of `slices` slices, or a refusal."""
    window = find_time_batch_window(job.app, job.fragment)
    assert window is not None
    try:
        output = _TimeSlices(inputs, batch, job, window).run(slices, index)
    except EdgewiseError:
        raise
    except Exception:
        logger.info("fragment %s: a time slice failed", job.fragment.name, exc_info=True)
        output = None
    if output is None:
        return FragmentOutput(counts={REFUSED: {window.attribute: 1}})
    return output


@dataclass(frozen=True, slots=True)
class _TimeSlices:
    inputs: InputLogs
    batch: BatchRange
    job: Job
    window: TimeBatchWindow

    def run(self, slices: int, index: int) -> FragmentOutput | None:
        kernel = load_kernel(self.job, 0)
        first_end = kernel.batch_end()
        if first_end is None:
            first = self._find_first_time()
            if first is None:
                return None
            first_end = first + self.window.span
        start, stop = (self._find_start(first_end, slices, n) for n in (index, index + 1))
        if start >= stop:
            return FragmentOutput()
        last = stop == self.batch.end[self.window.stream]
        rows = self._read_rows(start, stop if last else stop + 1)
        times = _check_ascending(rows, self._column)
        if times is None:
            return None
        if index:
            kernel.begin_batch(self._find_window_end(first_end, int(times[0])))
        feed_kernel(kernel, self.job, join_chunks(select_rows(rows, self.job)))
        return finish_batch(self.job, 0, kernel) if last else collect_output(self.job, kernel)

    @property
    def _column(self) -> str:
        return f"s{self.job.streams.index(self.window.stream)}_{self.window.attribute}"

    def _read_rows(self, start: int, stop: int) -> Any:
        begin = {self.window.stream: start}
        clock = max(self.batch.clock_start, self.inputs.clock_at(begin))
        return self.inputs.read_table(begin, {self.window.stream: stop}, clock)

    def _find_window_end(self, first_end: int, time: int) -> int:
        """The end of the window that holds `time`, where the first one ends at `first_end`."""
        span = self.window.span
        return max(first_end, time - (time - first_end) % span + span)

    def _find_start(self, first_end: int, slices: int, index: int) -> int:
        """The offset at which a slice starts: of the first event from its share on that closes a
        window.
        """
        first, stop = self.batch.start[self.window.stream], self.batch.end[self.window.stream]
        if index in {0, slices}:
            return stop if index else first
        window_end = None
        share = max(first, first + (stop - first) * index // slices - 1)
        for offset, times in self._read_times(share):
            known = times[times > _NO_TIME]
            if window_end is None and len(known):
                window_end = self._find_window_end(first_end, int(known[0]))
            closing = [] if window_end is None else np.flatnonzero(times >= window_end).tolist()
            if closing:
                return offset + int(closing[0])
        return stop

    def _find_first_time(self) -> int | None:
        for _, times in self._read_times(self.batch.start[self.window.stream]):
            known = times[times > _NO_TIME]
            if len(known):
                return int(known[0])
        return None

    def _read_times(self, start: int) -> Iterator[tuple[int, Any]]:
        """Pieces of the log from `start` on: the offset of the first row, the times of all."""
        stream, name = self.window.stream, self.window.attribute
        none = pa.scalar(_NO_TIME, pa.int64())
        for piece in self.inputs.reader(stream).read(start, self.batch.end[stream], [name, KIND]):
            times = piece.rows.column(name).cast(pa.int64()).fill_null(none)
            is_tick = pc.equal(piece.rows.column(KIND), _TICK)
            yield piece.first, pc.if_else(is_tick, none, times).to_numpy()


def _check_ascending(rows: Any, column: str) -> Any:
    """The times of all rows; None where one is null or falls, or where rows form a chunk."""
    times = rows.column(column)
    if times.null_count or pc.any(pc.equal(rows.column(KIND), _MORE)).as_py():
        return None
    numbers = times.to_numpy()
    return numbers if bool((numbers[1:] >= numbers[:-1]).all()) else None
