"""Render the engine's progress for Prometheus, and compute rates for `$sys/rates`. Pure.

Used by `serve`: the ingest server shows the metrics on its page.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

WINDOW_US = 3_000_000  # rates are over the last seconds
SAMPLES_MAX = 64
# Counters by name: the label, the help text.
COUNTERS = {
    "late": ("stream", "Events that came later than their stream allows."),
    "dropped": ("owner", "Matches and keys dropped by @state, by query or partition."),
    "faults": ("stream", "Events that failed in a query."),
}
# Gauges: the name of the metric, the key in the progress report, the help text. What is unknown is
# left out. Reports have milliseconds, Prometheus seconds.
GAUGES = (
    ("input_rows_per_second", "input_rows_per_s", "Events that came into the input logs."),
    ("processing_rows_per_second", "processing_rows_per_s", "Rows over busy time, recently."),
    ("backlog_rows", "backlog_rows", "Rows in the input logs that are not yet processed."),
    ("watermark_seconds", "watermark", "The app's time since 1970."),
    ("watermark_lag_seconds", "watermark_lag_ms", "The app's time is so far behind the clock."),
    ("state_keys", "state_keys", "Keys in kernel state."),
    ("state_bytes", "state_bytes", "Bytes of state files."),
    ("state_unsaved_rows", "state_unsaved_rows", "Rows since the last save of state."),
    ("state_replayed_rows", "state_replayed_rows", "Rows fed again at the last start."),
    ("partitions", "partitions", "Of the key space."),
)
BY_NAME = (
    ("batch_seconds", "batch_ms", "phase", "Of recent batches, Spark's own phases of the last."),
    ("fragment_keys", "keys", "fragment", "Keys in kernel state, by fragment."),
)
TOTALS = {
    "batches": "Batches processed.",
    "rows_in": "Events the engine has read.",
    "rows_out": "Rows the engine has written.",
    "state_saves": "Saves of state.",
    "state_written_bytes": "Bytes of state written, compaction included.",
    "state_save_seconds": "Time that batches waited for saves of state.",
    "restarts": "Starts of the engine process after its first.",
}
ALL_PHASES = "trigger"  # not a phase: all phases and the time between them


def render_engine_metrics(progress: Mapping[str, Any]) -> str:
    """The text exposition format; all counters but restarts begin at 0 with each engine."""
    return "".join(f"{line}\n" for line in _render_lines(progress))


def _render_lines(progress: Mapping[str, Any]) -> Iterator[str]:
    for key, help_text in TOTALS.items():
        yield from _render_head(f"edgewise_engine_{key}_total", help_text)
        yield f"edgewise_engine_{key}_total {progress.get(key, 0)}"
    for key, (label, help_text) in COUNTERS.items():
        name = f"edgewise_engine_{key}_total"
        yield from _render_head(name, help_text)
        for who, count in sorted(progress.get("counts", {}).get(key, {}).items()):
            yield f'{name}{{{label}="{_escape(who)}"}} {count}'
    for name, key, help_text in GAUGES:
        if progress.get(key) is not None:
            yield from _render_head(f"edgewise_engine_{name}", help_text, "gauge")
            yield f"edgewise_engine_{name} {_to_seconds(name, progress[key])}"
    for name, key, label, help_text in BY_NAME:
        yield from _render_head(f"edgewise_engine_{name}", help_text, "gauge")
        for who, value in sorted((progress.get(key) or {}).items()):
            if who != ALL_PHASES:
                shown = _to_seconds(name, value)
                yield f'edgewise_engine_{name}{{{label}="{_escape(who)}"}} {shown}'
    whole = (progress.get("batch_ms") or {}).get(ALL_PHASES)
    if whole is not None:
        name = "edgewise_engine_trigger_seconds"
        yield from _render_head(
            name, "Spark's last batch, all phases and what lies between.", "gauge"
        )
        yield f"{name} {_to_seconds(name, whole)}"


def _to_seconds(name: str, value: float) -> float:
    return value / 1000 if name.endswith("seconds") else value


def _render_head(name: str, help_text: str, kind: str = "counter") -> Iterator[str]:
    yield f"# HELP {name} {help_text}"
    yield f"# TYPE {name} {kind}"


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


class Rates:
    def __init__(self) -> None:
        self._samples: deque[tuple[int, int, int]] = deque(maxlen=SAMPLES_MAX)
        self.count = 0

    def update(self, now_us: int, events_in: int, rows_out: int) -> dict[str, float | int]:
        """Takes totals so far; returns them with the rates over the last seconds."""
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
