"""What people watch of a running app: totals, rates, time by phase, watermark, state, counts.

Pure: times are arguments. `view` gives plain values for a topic, a metrics page and a terminal.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from edgewise.engines.host import Cut
from edgewise.engines.results import Counts, Made, add_counts
from edgewise.log.api import CLOCK_NONE

RECENT_BATCHES = 20  # rates and times are over so many


@dataclass(frozen=True, slots=True)
class Batch:
    rows_in: int
    rows_out: int
    seconds: Mapping[str, float]

    @property
    def whole_s(self) -> float:
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
    recent: deque[Batch] = field(default_factory=lambda: deque(maxlen=RECENT_BATCHES))

    def tell(self, fragment: str, made: Made) -> None:
        """What the partitions of a fragment say of themselves, with their rows."""
        self.keys[fragment] = made.keys
        add_counts(self.counts, made.counts)

    def batch(
        self, cut: Cut, rows_out: int, seconds: Mapping[str, float], rows_in: int | None = None
    ) -> None:
        """`rows_in` are its events, where someone has counted them: others may be marks."""
        events = cut.rows if rows_in is None else rows_in
        self.batches += 1
        self.rows_in += events
        self.rows_out += rows_out
        if cut.clock != CLOCK_NONE:
            self.clock = cut.clock
        self.version = cut.batch_id
        self.offsets = dict(cut.end)
        self.recent.append(Batch(events, rows_out, dict(seconds)))

    def view(self, now_ms: int, heads: Mapping[str, int], state_bytes: int) -> dict[str, Any]:
        """`heads` is where the logs end now: what lies between is the backlog."""
        recent = list(self.recent)
        busy = sum(b.whole_s for b in recent)
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
