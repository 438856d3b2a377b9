"""Load a kernel from the last save and feed it the events since, without output.

Between two saves the log is the state (`engines.state.saver`). Whoever needs a kernel that is not
in memory, after a restart or after a failing event, makes it here: rows that the events cause now
were appended when they were processed first, so they are dropped. The engines use it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from edgewise.engines.batch.app_start import AppStartFinder
from edgewise.engines.batch.inputs import InputLogs
from edgewise.engines.batch.job import AppStart, BatchRange, Job
from edgewise.engines.batch.open_stores import open_stores
from edgewise.engines.batch.run import feed_kernel
from edgewise.engines.state.saver import SavePoint
from edgewise.engines.state.store import StateStore
from edgewise.errors import EdgewiseError
from edgewise.kernel.compile import Kernel, compile_kernel
from edgewise.plan.fragments import Fragment
from edgewise.plan.nodes import App

ROWS_AT_ONCE = 200_000  # read from the logs
REBUILD_ROWS_MAX = 10_000_000  # of history read again when a plan changes; beyond, state is lost


@dataclass(frozen=True, slots=True)
class CatchUp:
    """`build_job` describes a range without state; `select` gives the rows of a key partition."""

    app: App
    fragments: tuple[Fragment, ...]
    inputs: InputLogs
    build_job: Callable[[Fragment, BatchRange, AppStart | None], Job]
    select: Callable[[Any, Job, int], Iterable[Any]]

    def load(
        self,
        job: Job,
        key_partition: int,
        saved: SavePoint,
        until: Mapping[str, int],
        *,
        guarded: bool = False,
    ) -> tuple[Kernel, int]:
        """A kernel with the state before the offsets `until`, and how many rows it was fed.

        Where an event fails that failed before, the kernel is a guarded one.
        """
        kernel = compile_kernel(self.app, job.fragment, job.taps, as_sent=guarded)
        if job.fragment.stateless:
            return kernel, 0
        kernel.session = open_stores(kernel, job)
        if kernel.session is not None:
            kernel.session.stop_writes()
        kernel.restore(StateStore(job.state_root, key_partition).load(saved.version).items())
        if job.start is not None and saved.version < 0:
            kernel.start(job.start)
        try:
            return kernel, self.feed(kernel, job.fragment, key_partition, saved, until)
        except EdgewiseError:
            raise
        except Exception:
            if kernel.session is not None:
                kernel.session.close()
            if guarded:
                raise
            return self.load(job, key_partition, saved, until, guarded=True)

    def rebuild(
        self, fragment: Fragment, key_partition: int, until: Mapping[str, int]
    ) -> Kernel | None:
        """A kernel that was fed all that the logs still have up to `until`; None where that is
        too much, or where the fragment reads the rows of another one.
        """
        first, last = self.inputs.earliest(), self.inputs.fill_missing(dict(until))
        too_long = sum(last.values()) - sum(first.values()) > REBUILD_ROWS_MAX
        if too_long or not set(fragment.inputs) <= set(self.inputs.paths):
            return None
        kernel = compile_kernel(self.app, fragment)
        begin = SavePoint(-1, first, self.inputs.clock_at(first))
        self.feed(kernel, fragment, key_partition, begin, last)
        return kernel

    def feed(
        self,
        kernel: Kernel,
        fragment: Fragment,
        key_partition: int,
        since: SavePoint,
        until: Mapping[str, int],
    ) -> int:
        """Feed what lies between two offsets and drop the rows it causes; return how many."""
        at, clock = self.inputs.fill_missing(dict(since.offsets)), since.clock
        last, count = self.inputs.fill_missing(dict(until)), 0
        finder = AppStartFinder(self.app, self.fragments)
        while at != last:
            end = self.inputs.limit_end(at, last, ROWS_AT_ONCE)
            table = self.inputs.read_table(at, end, clock)
            batch = BatchRange(0, at, end, clock, max(clock, self.inputs.clock_at(end)))
            job = self.build_job(fragment, batch, finder.find(batch, self.inputs, table))
            feed_kernel(kernel, job, self.select(table, job, key_partition))
            kernel.take_tuples()
            kernel.take_failed()
            at, clock, count = end, batch.clock, count + batch.rows
        return count
