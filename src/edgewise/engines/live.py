"""The embedded engine on logs: steps instead of micro-batches, the same guarantee.

A step is a range of offsets. It is written down before it is computed, its rows are appended with
its number as the sequence, then its state is kept. After a crash the last step is done again from
the state before it; the log knows its number and takes nothing twice.
"""

from __future__ import annotations

import dataclasses
import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow.compute as pc

from edgewise.engines.beginning import Beginning
from edgewise.engines.carry import PART, demand_own, settle, state_root
from edgewise.engines.faults import in_own_logs
from edgewise.engines.host import Cut, Job, feed, run_part
from edgewise.engines.inputs import Inputs
from edgewise.engines.kernel.compile import Compiled, compile_kernel
from edgewise.engines.progress import Progress
from edgewise.engines.results import append
from edgewise.engines.scan import wanted
from edgewise.engines.state import StateStore
from edgewise.errors import StateError
from edgewise.event.arrow import AT
from edgewise.log.api import LogWriter
from edgewise.log.files import sync_directory
from edgewise.plan.fragments import Fragment
from edgewise.plan.nodes import App
from edgewise.plan.rules.keys import split
from edgewise.plan.rules.order import rewrite
from edgewise.plan.rules.projection import reads

STEPS = "steps"
STEP_ROWS_MAX = 20_000
STEPS_KEPT = 4
REBUILD_ROWS_MAX = 10_000_000  # of history read again when a plan changes; beyond, it begins anew


class LiveApp:
    """One app, in this process, from its input logs to its output logs."""

    def __init__(
        self,
        app: App,
        *,
        logs: Mapping[str, Path | str],
        writers: Mapping[str, LogWriter],
        checkpoint: Path,
        rows_max: int = STEP_ROWS_MAX,
        skip_to: Mapping[str, int] | None = None,
    ) -> None:
        """`skip_to` leaves out what lies before these offsets, and the state with it."""
        self.app = app = rewrite(app)
        self.rows_max = rows_max
        self.fragments = split(app)
        self._reads = {f.name: reads(app, f) for f in self.fragments}
        self._beginning = Beginning(app, self.fragments)
        self.inputs = Inputs({s.name: str(logs[s.name]) for s in app.inputs})
        self.writers = writers
        self.checkpoint = checkpoint
        self.progress = Progress()
        demand_own(checkpoint, "embedded")
        self._steps = checkpoint / STEPS
        self._steps.mkdir(parents=True, exist_ok=True)
        for rest in self._steps.glob("*.tmp"):
            rest.unlink(missing_ok=True)
        written = _written_down(self._steps)
        last = None if written is None else (written.batch_id - 1, written.clock_start)

        def rebuild(fragment: Fragment) -> Compiled | None:
            assert written is not None
            return self._rebuild(fragment, written.start)

        self.home = settle(app, self.fragments, checkpoint, last, rebuild)
        self.state = str(checkpoint / "state")
        if written is None or skip_to is None:
            self._last = self._recover(written)
        else:
            self._last = self._skip(written, dict(skip_to))
        self.progress.offsets = dict(self._last.end)

    @classmethod
    def reached(cls, checkpoint: Path) -> Mapping[str, int]:
        """The offsets up to which nothing will be asked for again; none where nothing began."""
        last = _written_down(checkpoint / STEPS)
        return {} if last is None else last.start

    def step(self, timeout_s: float) -> int:
        """Waits for news, computes them, answers how many events they were."""
        start = dict(self._last.end)
        self._wait(start, timeout_s)
        heads = self.inputs.heads()
        end = self.inputs.cut(start, heads, self.rows_max)
        if end == start:
            return 0
        clock = max(self._last.clock, self.inputs.clock(end))
        cut = Cut(self._last.batch_id + 1, start, end, self._last.clock, clock)
        self._write_down(cut)
        self._compute(cut)
        return cut.rows

    def close(self) -> None:
        self.inputs.close()

    def _wait(self, offsets: Mapping[str, int], timeout_s: float) -> None:
        if self.inputs.heads() == offsets:
            share = timeout_s / len(offsets)
            for stream, offset in offsets.items():
                if self.inputs.reader(stream).wait(offset, share):
                    return

    def _compute(self, cut: Cut) -> None:
        began = time.monotonic()
        table = self.inputs.table(cut.start, cut.end, cut.clock_start)
        read = time.monotonic()
        pulse = self._beginning.of(cut, self.inputs, table)
        at = pc.max(table.column(AT)).as_py() or self.inputs.captured(cut.start, cut.end)
        out: dict[str, list[Any]] = {}
        for fragment in self.fragments:
            job = Job(
                app=self.app,
                fragment=fragment,
                version=cut.batch_id,
                clock=cut.clock,
                state_root=state_root(self.home.state, fragment),
                streams=tuple(self.inputs.paths),
                reads=self._reads[fragment.name],
                pulse=pulse,
                at=at,
            )
            made = run_part(job, 0, wanted(table, job).to_batches())
            self.progress.tell(fragment.name, made)
            for stream, rows in made.ordered():
                out.setdefault(stream, []).append(rows)
        ran = time.monotonic()
        in_own_logs(out, self.inputs)
        count = append(self.writers, out, self.home.producer, cut.batch_id)
        phases = {"read": read - began, "run": ran - read, "append": time.monotonic() - ran}
        self.progress.batch(cut, count, phases, table.num_rows)
        self._last = cut

    def _recover(self, written: Cut | None) -> Cut:
        """The last step, done again: it may have been cut off anywhere."""
        if written is None:
            earliest = self.inputs.earliest()
            clock = self.inputs.clock(earliest)
            return Cut(-1, earliest, earliest, clock, clock)
        start, end = (self.inputs.known(dict(o)) for o in (written.start, written.end))
        last = dataclasses.replace(written, start=start, end=end)
        self._compute(last)
        return last

    def _skip(self, written: Cut, heads: dict[str, int]) -> Cut:
        """A step over nothing from an empty state; numbers go on, the output logs know them."""
        for fragment in self.fragments:
            store = StateStore(state_root(self.home.state, fragment), PART)
            store.start_from(written.batch_id, {})
        clock = max(written.clock, self.inputs.clock(heads))
        cut = Cut(written.batch_id + 1, heads, heads, clock, clock)
        self._write_down(cut)
        self._compute(cut)
        return cut

    def _rebuild(self, fragment: Fragment, last: Mapping[str, int]) -> Compiled | None:
        """A fragment fed with all that the log still has up to here."""
        at = self.inputs.earliest()
        until = self.inputs.known(dict(last))
        if sum(until.values()) - sum(at.values()) > REBUILD_ROWS_MAX:
            return None
        kernel = compile_kernel(self.app, fragment)
        job = Job(self.app, fragment, 0, 0, "", tuple(self.inputs.paths))
        clock, beginning = self.inputs.clock(at), Beginning(self.app, self.fragments)
        while at != until:
            end = self.inputs.cut(at, until, STEP_ROWS_MAX)
            table = self.inputs.table(at, end, clock)
            cut = Cut(0, at, end, clock, max(clock, self.inputs.clock(end)))
            at, clock = end, cut.clock
            pulse = beginning.of(cut, self.inputs, table)
            now = dataclasses.replace(job, clock=clock, pulse=pulse)
            feed(kernel, now, wanted(table, job).to_batches())
            kernel.take_tuples()
        return kernel

    def _write_down(self, cut: Cut) -> None:
        """A step is written down once: of two engines that do not know of each other, one ends."""
        path = self._steps / f"{cut.batch_id}.json"
        temporary = path.with_suffix(f".{os.getpid()}.tmp")
        with temporary.open("w") as file:
            json.dump(dataclasses.asdict(cut), file)
            file.flush()
            os.fsync(file.fileno())
        try:
            path.hardlink_to(temporary)
        except FileExistsError:
            raise StateError(
                f"{path} was written by another engine on this data directory"
            ) from None
        finally:
            temporary.unlink()
        sync_directory(self._steps)
        (self._steps / f"{cut.batch_id - STEPS_KEPT}.json").unlink(missing_ok=True)


def _written_down(steps: Path) -> Cut | None:
    """The last step, as it was begun."""
    numbers = sorted(int(p.stem) for p in steps.glob("*.json"))
    if not numbers:
        return None
    return Cut(**json.loads((steps / f"{numbers[-1]}.json").read_text()))
