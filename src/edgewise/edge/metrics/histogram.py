"""Count values by upper bound: bounded memory for any number of ages, at the price of exactness.

Quantiles are interpolated within a bound. Telemetry keeps one per group of topics and per session.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterator

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
        rank, unsent = q * self.count, 0
        for i, inside in enumerate(self.counts):
            if inside and unsent + inside >= rank:
                low = BOUNDS_MS[i - 1] if i else 0
                high = BOUNDS_MS[i] if i < len(BOUNDS_MS) else low
                return low + (high - low) * (rank - unsent) / inside
            unsent += inside
        return 0.0

    def lines(self, name: str, label: str) -> Iterator[str]:
        """As Prometheus reads it, in seconds."""
        seen = 0
        for bound, inside in zip((*BOUNDS_MS, 0), self.counts, strict=True):
            seen += inside
            edge = f"{bound / 1000:g}" if bound else "+Inf"
            yield f'{name}_bucket{{{label},le="{edge}"}} {seen}'
        yield f"{name}_sum{{{label}}} {self.total_ms / 1000:.6f}"
        yield f"{name}_count{{{label}}} {self.count}"
