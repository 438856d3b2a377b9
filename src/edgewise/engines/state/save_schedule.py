"""Decide when to save state.

The interval is a setting. It grows by itself where saving takes long: saving takes at most SHARE
of the engine's time, so bytes written per event do not grow with the size of a window. It ends
early where a restart would have to feed more than REPLAY_ROWS_MAX rows. Pure: times are arguments.
Used by `saver` and by the configurations of the engines.
"""

from __future__ import annotations

from dataclasses import dataclass

INTERVAL_S = 10.0
SHARE = 0.1  # of the engine's time that saving may take
REPLAY_ROWS_MAX = 5_000_000  # fed again by a restart, some seconds of work


@dataclass(slots=True)
class SaveSchedule:
    """When to save next."""

    interval_s: float = INTERVAL_S
    last_s: float = 0.0  # when the last save ended
    took_s: float = 0.0  # how long it kept the engine from its batches

    def is_due(self, now_s: float, rows: int) -> bool:
        """`rows` came since the last save."""
        if rows >= REPLAY_ROWS_MAX:
            return True
        pause_s = self.took_s * (1 - SHARE) / SHARE
        return rows > 0 and now_s - self.last_s >= max(self.interval_s, pause_s)

    def record(self, now_s: float, took_s: float) -> None:
        self.last_s, self.took_s = now_s, took_s
