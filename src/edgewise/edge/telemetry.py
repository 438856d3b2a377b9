"""What the edge knows about itself, above all the age of information: from the capture of an
event to the client's acknowledgement of the update that shows it. Pure; time is an argument.

Topics are grouped by their first segment, so that the number of series stays bounded.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterator
from typing import Any

from edgewise.edge.session import Session
from edgewise.edge.topics import GROUPS_MAX, OTHERS, Group, TopicTree

BOUNDS_MS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 30_000, 60_000)


class Histogram:
    """Counts by upper bound, for Prometheus and for quantiles on the wall."""

    __slots__ = ("count", "counts", "total_ms")

    def __init__(self) -> None:
        self.counts = [0] * (len(BOUNDS_MS) + 1)
        self.count = 0
        self.total_ms = 0.0

    def add(self, ms: float) -> None:
        self.counts[bisect.bisect_left(BOUNDS_MS, ms)] += 1
        self.count += 1
        self.total_ms += ms

    def quantile(self, q: float) -> float:
        """Interpolated within its bucket; 0 when nothing was seen."""
        rank, below = q * self.count, 0
        for i, inside in enumerate(self.counts):
            if inside and below + inside >= rank:
                low = BOUNDS_MS[i - 1] if i else 0
                high = BOUNDS_MS[i] if i < len(BOUNDS_MS) else low
                return low + (high - low) * (rank - below) / inside
            below += inside
        return 0.0


class Telemetry:
    """Ages by group, and rates since the last look."""

    def __init__(self) -> None:
        self.ages: dict[str, Histogram] = {}
        self._before: dict[str, float] = {}
        self._at_us = 0

    def age(self, group: str, age_us: int) -> None:
        if group not in self.ages and len(self.ages) >= GROUPS_MAX:
            group = OTHERS
        self.ages.setdefault(group, Histogram()).add(max(0, age_us) / 1000)

    def look(self, stats: dict[str, float], now_us: int) -> dict[str, float]:
        """The counters and their rates since the last look, with the ages of everything."""
        seconds = (now_us - self._at_us) / 1_000_000
        rates = {
            f"{name}_per_s": round((value - self._before.get(name, 0)) / seconds, 1)
            for name, value in stats.items()
            if name in {"published", "updates_sent", "bytes_sent", "conflated"} and seconds > 0
        }
        self._before, self._at_us = dict(stats), now_us
        whole = Histogram()
        for histogram in self.ages.values():
            whole.counts = [a + b for a, b in zip(whole.counts, histogram.counts, strict=True)]
            whole.count += histogram.count
        ages = {f"age_p{int(q * 100)}_ms": round(whole.quantile(q), 1) for q in (0.5, 0.99)}
        return {**stats, **rates, **ages}

    def lines(self, tree: TopicTree) -> Iterator[str]:
        """The histograms and the counters by group in Prometheus' text format."""
        name = "edgewise_edge_age_seconds"
        yield f"# HELP {name} From the capture of an event to the client's acknowledgement."
        yield f"# TYPE {name} histogram"
        for group, histogram in sorted(self.ages.items()):
            label, seen = f'topic="{_escaped(group)}"', 0
            for bound, inside in zip((*BOUNDS_MS, 0), histogram.counts, strict=True):
                seen += inside
                edge = f"{bound / 1000:g}" if bound else "+Inf"
                yield f'{name}_bucket{{{label},le="{edge}"}} {seen}'
            yield f"{name}_sum{{{label}}} {histogram.total_ms / 1000:.6f}"
            yield f"{name}_count{{{label}}} {histogram.count}"
        groups = sorted(tree.groups.items())
        for what in ("updates", "bytes", "conflated"):
            yield f"# TYPE edgewise_edge_topic_{what}_total counter"
            for first, counted in groups:
                label = f'topic="{_escaped(first)}"'
                yield f"edgewise_edge_topic_{what}_total{{{label}}} {getattr(counted, what)}"

    def group_record(self, group: Group) -> dict[str, Any]:
        """Topics with one first segment as a `$sys/topics` value."""
        ages = self.ages.get(group.name) or Histogram()
        return {
            "topics": group.topics,
            "updates": group.updates,
            "bytes": group.bytes,
            "conflated": group.conflated,
            "age_p50_ms": round(ages.quantile(0.5), 1),
            "age_p99_ms": round(ages.quantile(0.99), 1),
        }


def session_record(session: Session, below: int, now_us: int) -> dict[str, Any]:
    """One session as a `$sys/sessions` value. Its name is a secret and stays out."""
    outbox = session.outbox
    seconds = max(1, now_us - session.opened_us) / 1_000_000
    return {
        "client": session.client,
        "principal": session.principal.name,
        "topics": len(outbox.slots),
        "pending": outbox.pending,
        "conflated": outbox.conflated,
        "updates": outbox.updates_sent,
        "bytes": outbox.bytes_sent,
        "drain_bytes_per_s": round(outbox.bytes_sent / seconds),
        "learned_bytes_per_s": session.drain.bytes_per_s,
        "bytes_below": below,
        "rtt_ms": round(session.rtt_us / 1000, 2),
        "age_ms": round(session.age_us / 1000, 1),
        "since_us": session.opened_us,
    }


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")
