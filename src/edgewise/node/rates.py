"""Events in and rows out per second, smoothed over a few seconds. Pure: time is an argument."""

from __future__ import annotations

from collections import deque

WINDOW_US = 3_000_000
SAMPLES_MAX = 64


class Rates:
    def __init__(self) -> None:
        self._samples: deque[tuple[int, int, int]] = deque(maxlen=SAMPLES_MAX)
        self.count = 0

    def update(self, now_us: int, events_in: int, rows_out: int) -> dict[str, float | int]:
        """Totals so far in, rates over the last seconds out."""
        self.count += 1
        self._samples.append((now_us, events_in, rows_out))
        while len(self._samples) > 2 and now_us - self._samples[1][0] >= WINDOW_US:
            self._samples.popleft()
        then_us, events_then, rows_then = self._samples[0]
        seconds = max(now_us - then_us, 1) / 1_000_000
        return {
            "events_in_per_s": round((events_in - events_then) / seconds, 1),
            "rows_out_per_s": round((rows_out - rows_then) / seconds, 1),
            "events_in": events_in,
            "rows_out": rows_out,
        }
