"""Judge whether each part of a node does its work, and tell callers, topics and the terminal.

    /livez             200 while the process answers: whether to start it again
    /readyz, /healthz  200 while every part works, else 503: whether to send it traffic
    $sys/health        the same for clients and pages

A part is judged by what it did, not by being alive: an engine that holds a processor in an endless
loop is a living process. The price is that a batch that takes longer than `stall_s` counts as
stalled until it ends. Reasons may name files, so callers without a token get the names of the
failing parts only. `HealthMonitor` takes what it judges as arguments; `serve` gives it the real
parts.
"""

from __future__ import annotations

import asyncio
import shutil
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CHECK_EVERY_S = 1.0
RECENT_S = 10.0  # a refused append counts for so long
CLOCK_JUMP_S = 5.0
CLOCK_RECENT_S = 60.0
# The disk: from the first limit on ingest slows down, from the second on it stops.
LOW_SHARE, LOW_BYTES_MAX = 0.05, 2 * 1024**3
FULL_SHARE, FULL_BYTES_MAX = 0.01, 256 * 1024**2
SLOW_MAX_S = 1.0  # the longest pause before a request
OK = "ok"

Parts = Mapping[str, str]  # the reason of each part; '' where it works


@dataclass(frozen=True, slots=True)
class HealthReport:
    """`parts`: why each part does not work; '' where it does."""

    parts: Parts

    @property
    def ready(self) -> bool:
        return not any(self.parts.values())

    def to_dict(self, *, detailed: bool) -> dict[str, Any]:
        hidden = {name: "failing" if reason else OK for name, reason in self.parts.items()}
        shown = {name: reason or OK for name, reason in self.parts.items()}
        return {"status": OK if self.ready else "failing", "parts": shown if detailed else hidden}


@dataclass(frozen=True, slots=True)
class DiskSpace:
    free: int
    total: int

    @property
    def low(self) -> int:
        return min(int(self.total * LOW_SHARE), LOW_BYTES_MAX)

    @property
    def full(self) -> int:
        return min(int(self.total * FULL_SHARE), FULL_BYTES_MAX)

    @property
    def pause_s(self) -> float:
        """How long a request waits before it is read: longer, the less is left."""
        span = max(self.low - self.full, 1)
        return SLOW_MAX_S * min(1.0, max(0.0, (self.low - self.free) / span))

    @property
    def problem(self) -> str:
        """Why ingest stops; '' while it may go on."""
        if self.free > self.full:
            return ""
        return (
            f"{self.free // 1024**2:,} MB are free, ingest needs {self.full // 1024**2:,} MB: "
            "free some, or keep less with --retain-mb"
        )


def measure_disk(directory: Path) -> DiskSpace:
    usage = shutil.disk_usage(directory)
    return DiskSpace(usage.free, usage.total)


class RecentIncrease:
    """Whether a count grew in the last RECENT_S seconds."""

    def __init__(self) -> None:
        self._count, self._until_s = 0, 0.0

    def check(self, count: int, now_s: float) -> bool:
        if count > self._count:
            self._count, self._until_s = count, now_s + RECENT_S
        return now_s < self._until_s


class ClockWatch:
    """Finds jumps of the wall clock by comparing it with the monotonic one."""

    def __init__(self) -> None:
        self._difference_s: float | None = None
        self._jump_s, self._until_s = 0.0, 0.0

    def describe(self, wall_s: float, now_s: float) -> str:
        difference_s = wall_s - now_s
        last, self._difference_s = self._difference_s, difference_s
        if last is not None and abs(difference_s - last) > CLOCK_JUMP_S:
            self._jump_s, self._until_s = difference_s - last, now_s + CLOCK_RECENT_S
        if now_s >= self._until_s:
            return ""
        return f"the clock jumped by {self._jump_s:+.0f} s: event times of this node jump too"


class HealthMonitor:
    """Keeps the last report. `examine` returns the reason of each part at a time."""

    def __init__(self, examine: Callable[[float], Parts]) -> None:
        self._examine = examine
        self.report = HealthReport({"node": "starting"})

    def check(self, now_s: float) -> Iterable[str]:
        """Judge all parts; returns a line for each part that failed or works again."""
        last, parts = self.report.parts, dict(self._examine(now_s))
        self.report = HealthReport(parts)
        for name, reason in parts.items():
            failed_before = bool(last.get(name))
            if reason and not failed_before:
                yield f"{name}: {reason}"
            elif failed_before and not reason:
                yield f"{name}: works again"

    async def run(
        self, publish: Callable[[dict[str, Any]], None], say: Callable[[str], None]
    ) -> None:
        """Until the task is cancelled; `publish` gets the value of `$sys/health`."""
        published: dict[str, Any] | None = None
        while True:
            for line in self.check(time.monotonic()):
                say(line)
            value = self.report.to_dict(detailed=True)
            if value != published:
                publish(value)
                published = value
            await asyncio.sleep(CHECK_EVERY_S)
