"""The embedded engine on logs: steps instead of micro-batches, the same guarantee.

A step is a range of offsets. It is written down before it is computed, its rows are appended with
its number as the sequence, then its state is kept. After a crash the last step is done again from
the state before it; the log knows its number and takes nothing twice.
"""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from edgewise.engines.host import (
    Counts,
    Cut,
    Job,
    add_counts,
    by_stream,
    counted,
    fit,
    run_part,
)
from edgewise.engines.inputs import CLOCK, MERGE_ORDER, OFFSET, STREAM, Inputs
from edgewise.errors import StateError
from edgewise.event.arrow import KIND, TS
from edgewise.event.event import Kind
from edgewise.log.api import LogWriter
from edgewise.log.files import sync_directory
from edgewise.plan.nodes import App
from edgewise.plan.rules.keys import split
from edgewise.plan.rules.order import rewrite
from edgewise.plan.rules.projection import reads

STEP_ROWS_MAX = 20_000
STEPS_KEPT = 4


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
    ) -> None:
        self.app = app = rewrite(app)
        self.rows_max = rows_max
        self.fragments = split(app)
        self._reads = {f.name: reads(app, f) for f in self.fragments}
        self.inputs = Inputs({s.name: str(logs[s.name]) for s in app.inputs})
        self.writers = writers
        self.checkpoint = checkpoint
        self.rows_in = self.rows_out = 0
        self.counts: Counts = {}
        self._steps = checkpoint / "steps"
        self._steps.mkdir(parents=True, exist_ok=True)
        self._last = self._recover()

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
        self.rows_in += cut.rows
        return cut.rows

    def progress(self) -> dict[str, Any]:
        """What people watch, since this engine started."""
        return {
            "batches": self._last.batch_id + 1,
            "rows_in": self.rows_in,
            "rows_out": self.rows_out,
            "clock": self._last.clock,
            "offsets": dict(self._last.end),
            "counts": self.counts,
        }

    def close(self) -> None:
        self.inputs.close()

    def _wait(self, offsets: Mapping[str, int], timeout_s: float) -> None:
        if self.inputs.heads() == offsets:
            share = timeout_s / len(offsets)
            for stream, offset in offsets.items():
                if self.inputs.reader(stream).wait(offset, share):
                    return

    def _compute(self, cut: Cut) -> None:
        whole = self._read(cut)
        for fragment in self.fragments:
            job = Job(
                app=self.app,
                fragment=fragment,
                version=cut.batch_id,
                clock=cut.clock,
                state_root=str(self.checkpoint / "state" / fragment.name),
                streams=tuple(self.inputs.paths),
                reads=self._reads[fragment.name],
            )
            mine = _of(whole, [job.streams.index(s) for s in fragment.inputs])
            table = run_part(job, 0, mine.to_batches())
            add_counts(self.counts, counted(job, table))
            for stream, rows in by_stream(job, table):
                self.rows_out += rows.num_rows
                writer = self.writers[stream.name]
                writer.append(fit(rows, writer.schema), producer="embedded", sequence=cut.batch_id)
        self._last = cut

    def _read(self, cut: Cut) -> Any:
        batches = [
            batch
            for stream, start in cut.start.items()
            for batch in self.inputs.read(stream, start, cut.end[stream])
        ]
        table = pa.Table.from_batches(batches, schema=self.inputs.schema())
        if len(cut.start) > 1:
            table = _merge(table, cut)
        return table.filter(pc.not_equal(table.column(KIND), pa.scalar(int(Kind.MARK))))

    def _recover(self) -> Cut:
        """The last step, done again: it may have been cut off anywhere."""
        for rest in self._steps.glob("*.tmp"):
            rest.unlink(missing_ok=True)
        numbers = sorted(int(p.stem) for p in self._steps.glob("*.json"))
        if not numbers:
            earliest = self.inputs.earliest()
            clock = self.inputs.clock(earliest)
            return Cut(-1, earliest, earliest, clock, clock)
        found = json.loads((self._steps / f"{numbers[-1]}.json").read_text())
        last = Cut(**found)
        self._compute(last)
        return last

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


def _merge(table: Any, cut: Cut) -> Any:
    """Several inputs in order of capture, numbered and clocked as one."""
    table = table.sort_by([(name, "ascending") for name in MERGE_ORDER])
    first = sum(cut.start.values())
    ts = table.column(TS).to_numpy()
    clock = np.maximum.accumulate(np.maximum(ts, cut.clock_start))
    place = np.arange(first, first + len(ts), dtype=np.int64)
    for name, values in ((CLOCK, clock), (OFFSET, place)):
        index = table.schema.get_field_index(name)
        table = table.set_column(index, name, pa.array(values, pa.int64()))
    return table


def _of(table: Any, streams: list[int]) -> Any:
    chosen = pc.is_in(table.column(STREAM), value_set=pa.array(streams, pa.int32()))
    return table.filter(chosen)
