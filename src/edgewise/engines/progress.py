"""Count what an engine has done: totals, rates, time by phase, watermark, state, faults.

Pure: times are arguments. The engines record into it, the node reads `summarize` once a second for
its topics, metrics page and terminal.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from edgewise.engines.batch.job import BatchRange
from edgewise.engines.batch.outputs import Counts, FragmentOutput, add_counts
from edgewise.log.api import CLOCK_NONE

RECENT_BATCHES = 20  # rates and times are averages over so many


@dataclass(frozen=True, slots=True)
class BatchTiming:
    """One batch: its rows and the seconds of each phase."""

    rows_in: int
    rows_out: int
    seconds: Mapping[str, float]

    @property
    def total_s(self) -> float:
        return sum(self.seconds.values())


@dataclass(slots=True)
class Progress:
    partitions: int = 1
    batches: int = 0
    rows_in: int = 0
    rows_out: int = 0
    clock: int | None = None
    version: int = -1
    offsets: dict[str, int] = field(default_factory=dict)
    keys: dict[str, int] = field(default_factory=dict)  # by fragment
    counts: Counts = field(default_factory=dict)  # late, dropped, faults
    recent: deque[BatchTiming] = field(default_factory=lambda: deque(maxlen=RECENT_BATCHES))

    def record_fragment(self, fragment: str, output: FragmentOutput) -> None:
        self.keys[fragment] = output.keys
        add_counts(self.counts, output.counts)

    def record_batch(
        self,
        batch: BatchRange,
        rows_out: int,
        seconds: Mapping[str, float],
        rows_in: int | None = None,
    ) -> None:
        """`rows_in` counts events; without it all rows of the range count, idle ticks too."""
        events = batch.rows if rows_in is None else rows_in
        self.batches += 1
        self.rows_in += events
        self.rows_out += rows_out
        if batch.clock != CLOCK_NONE:
            self.clock = batch.clock
        self.version = batch.batch_id
        self.offsets = dict(batch.end)
        self.recent.append(BatchTiming(events, rows_out, dict(seconds)))

    def summarize(self, now_ms: int, heads: Mapping[str, int], state_bytes: int) -> dict[str, Any]:
        """Plain values. `heads` are the ends of the logs now: rows before them are the backlog."""
        recent = list(self.recent)
        busy = sum(b.total_s for b in recent)
        rows = sum(b.rows_in for b in recent)
        phases = {name for b in recent for name in b.seconds}
        return {
            "batches": self.batches,
            "version": self.version,
            "rows_in": self.rows_in,
            "rows_out": self.rows_out,
            "processing_rows_per_s": round(rows / busy, 1) if busy else 0.0,
            "batch_ms": {
                name: round(sum(b.seconds.get(name, 0.0) for b in recent) / len(recent) * 1e3, 2)
                for name in sorted(phases)
            },
            "watermark": self.clock,
            "watermark_lag_ms": None if self.clock is None else max(0, now_ms - self.clock),
            "backlog_rows": sum(max(0, h - self.offsets.get(s, 0)) for s, h in heads.items()),
            "partitions": self.partitions,
            "state_keys": sum(self.keys.values()),
            "state_bytes": state_bytes,
            "keys": dict(self.keys),
            "counts": {kind: dict(names) for kind, names in self.counts.items()},
            "offsets": dict(self.offsets),
        }
