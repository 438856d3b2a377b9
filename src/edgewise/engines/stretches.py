"""One batch of a window by the events' own time, as stretches that are computed side by side.

The rule is `plan.rules.stretch`. A stretch begins with an event that closes a batch, where the
kernel holds nothing but the end of the next one, and goes on up to and with the event that begins
the next stretch: that one closes its last batch. The last stretch leaves the state. Whether times
ascend is only seen on the way: where they do not, a stretch refuses, and all is done by one task.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from edgewise.engines import host
from edgewise.engines.host import Cut, Job
from edgewise.engines.inputs import Inputs
from edgewise.engines.results import Made
from edgewise.engines.scan import fed
from edgewise.errors import EdgewiseError
from edgewise.event.arrow import KIND
from edgewise.event.event import Kind
from edgewise.plan.rules.stretch import Batches, batches_of

REFUSED = "refused"
_NO_TIME = -(1 << 63)
_MORE, _MARK = (pa.scalar(int(k), pa.int8()) for k in (Kind.MORE, Kind.MARK))

logger = logging.getLogger(__name__)


def refused(made: Made) -> bool:
    return REFUSED in made.counts


def run_stretch(inputs: Inputs, cut: Cut, job: Job, parts: int, part: int) -> Made:
    """The rows of one of `parts` stretches, or a refusal."""
    by = batches_of(job.app, job.fragment)
    assert by is not None
    try:
        made = _Stretches(inputs, cut, job, by).run(parts, part)
    except EdgewiseError:
        raise
    except Exception:
        logger.info("fragment %s: a stretch failed", job.fragment.name, exc_info=True)
        made = None
    return Made(counts={REFUSED: {by.attribute: 1}}) if made is None else made


@dataclass(frozen=True, slots=True)
class _Stretches:
    inputs: Inputs
    cut: Cut
    job: Job
    by: Batches

    def run(self, parts: int, part: int) -> Made | None:
        kernel = host.fresh(self.job, 0)
        end = kernel.batch_end()
        if end is None:
            first = self._first_time()
            if first is None:
                return None
            end = first + self.by.span
        start, stop = (self._begin(end, parts, n) for n in (part, part + 1))
        if start >= stop:
            return Made()
        last = stop == self.cut.end[self.by.stream]
        rows = self._rows(start, stop if last else stop + 1)
        times = _ascending(rows, self._column)
        if times is None:
            return None
        if part:
            kernel.begin_batch(self._end_after(end, int(times[0])))
        host.feed(kernel, self.job, host.whole_chunks(fed(rows, self.job)))
        return host.finish(self.job, 0, kernel) if last else host.made_by(self.job, kernel)

    @property
    def _column(self) -> str:
        return f"s{self.job.streams.index(self.by.stream)}_{self.by.attribute}"

    def _rows(self, start: int, stop: int) -> Any:
        begin = {self.by.stream: start}
        clock = max(self.cut.clock_start, self.inputs.clock(begin))
        return self.inputs.table(begin, {self.by.stream: stop}, clock)

    def _end_after(self, end: int, time: int) -> int:
        """The end of the batch that holds `time`, where one ends at `end`, the first of them."""
        return max(end, time - (time - end) % self.by.span + self.by.span)

    def _begin(self, end: int, parts: int, number: int) -> int:
        """The first event of a stretch: one that closes a batch, from about its share on."""
        first, stop = self.cut.start[self.by.stream], self.cut.end[self.by.stream]
        if number in {0, parts}:
            return stop if number else first
        bound = None
        for offset, times in self._times(max(first, first + (stop - first) * number // parts - 1)):
            known = times[times > _NO_TIME]
            if bound is None and len(known):
                bound = self._end_after(end, int(known[0]))
            late = [] if bound is None else np.flatnonzero(times >= bound).tolist()
            if late:
                return offset + int(late[0])
        return stop

    def _first_time(self) -> int | None:
        for _, times in self._times(self.cut.start[self.by.stream]):
            known = times[times > _NO_TIME]
            if len(known):
                return int(known[0])
        return None

    def _times(self, start: int) -> Iterator[tuple[int, Any]]:
        """Runs of rows from `start` on: the offset of the first, and their times."""
        stream, name = self.by.stream, self.by.attribute
        none = pa.scalar(_NO_TIME, pa.int64())
        for batch in self.inputs.reader(stream).read(start, self.cut.end[stream], [name, KIND]):
            times = batch.rows.column(name).cast(pa.int64()).fill_null(none)
            mark = pc.equal(batch.rows.column(KIND), _MARK)
            yield batch.first, pc.if_else(mark, none, times).to_numpy()


def _ascending(rows: Any, column: str) -> Any:
    """The times of all rows; None where one is null or before another, or some are one chunk."""
    times = rows.column(column)
    if times.null_count or pc.any(pc.equal(rows.column(KIND), _MORE)).as_py():
        return None
    numbers = times.to_numpy()
    return numbers if bool((numbers[1:] >= numbers[:-1]).all()) else None
