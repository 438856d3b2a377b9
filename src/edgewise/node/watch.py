"""What the engine told of itself, for the topic `$sys/engine` and for the terminal.

Pure: time is an argument. `metrics` says the same to Prometheus.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

SAY_EVERY_S = 10.0  # a line in the terminal, when something was processed since the last
ERROR_CHARS_MAX = 400


@dataclass(slots=True)
class Watch:
    """`restarts` and `failed` are of the engine process as a whole."""

    progress: dict[str, Any] = field(default_factory=dict)
    restarts: int = 0
    failed: str = ""
    _said_s: float = 0.0
    _said_rows: int = 0

    def hear(self, progress: Mapping[str, Any]) -> None:
        self.progress = dict(progress)

    def restart(self) -> None:
        self.restarts += 1

    def topic(self) -> dict[str, Any]:
        """The value of `$sys/engine`."""
        return self.progress | {"restarts": self.restarts, "failed": self.failed}

    def line(self, now_s: float) -> str:
        """For the terminal; '' when there is nothing new to say."""
        rows = self.progress.get("rows_in", 0)
        if now_s - self._said_s < SAY_EVERY_S or rows == self._said_rows:
            return ""
        since = max(now_s - self._said_s, SAY_EVERY_S)
        rate = max(0, rows - self._said_rows) / since
        self._said_s, self._said_rows = now_s, rows
        return f"{rate:,.0f} events/s, {_words(self.progress)}"


def _words(progress: Mapping[str, Any]) -> str:
    phases = progress.get("batch_ms") or {}
    whole = phases.get("trigger") or sum(phases.values())
    named = ", ".join(f"{name} {ms:.0f}" for name, ms in phases.items() if name != "trigger")
    parts = [
        f"batch {whole:.0f} ms ({named})",
        f"backlog {progress.get('backlog_rows', 0):,}",
        f"lag {(progress.get('watermark_lag_ms') or 0) / 1000:,.1f} s",
        f"state {progress.get('state_keys', 0):,} keys, {progress.get('state_bytes', 0):,} bytes",
    ]
    for what, names in (progress.get("counts") or {}).items():
        parts.append(f"{sum(names.values()):,} {what}")
    return ", ".join(parts)
