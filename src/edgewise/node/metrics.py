"""What the engine told, as Prometheus reads it. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

# What is counted by name, the label of the name, and what it means.
COUNTERS = {
    "late": ("stream", "Events that came later than their stream allows."),
    "dropped": ("owner", "Matches and keys dropped by @state, by query or partition."),
    "faults": ("stream", "Events that failed in a query."),
}
# As of now: the name of the metric, the key in what was told, what it means.
GAUGES = (
    ("input_rows_per_second", "input_rows_per_s", "Rows that came into the input logs."),
    ("processing_rows_per_second", "processing_rows_per_s", "Rows over busy time, recently."),
    ("backlog_rows", "backlog_rows", "Rows in the input logs that are not yet processed."),
    ("watermark_ms", "watermark", "The app's time."),
    ("watermark_lag_ms", "watermark_lag_ms", "How far the app's time is behind the wall clock."),
    ("state_keys", "state_keys", "Keys in kernel state."),
    ("state_bytes", "state_bytes", "Bytes of state files."),
    ("partitions", "partitions", "Of the key space."),
    ("restarts", "restarts", "Of the engine process, by its supervisor."),
)
BY_NAME = (
    ("batch_ms", "batch_ms", "phase", "Time of a batch by phase, mean of the recent ones."),
    ("fragment_keys", "keys", "fragment", "Keys in kernel state, by fragment."),
)
TOTALS = {
    "batches": "Batches processed.",
    "rows_in": "Events the engine has read.",
    "rows_out": "Rows the engine has written.",
}


def engine_metrics(progress: Mapping[str, Any]) -> str:
    """The text exposition format; counters start anew with the engine."""
    return "".join(f"{line}\n" for line in _lines(progress))


def _lines(progress: Mapping[str, Any]) -> Iterator[str]:
    for key, help_text in TOTALS.items():
        yield from _head(f"edgewise_engine_{key}_total", help_text)
        yield f"edgewise_engine_{key}_total {progress.get(key, 0)}"
    for key, (label, help_text) in COUNTERS.items():
        name = f"edgewise_engine_{key}_total"
        yield from _head(name, help_text)
        for who, count in sorted(progress.get("counts", {}).get(key, {}).items()):
            yield f'{name}{{{label}="{_escape(who)}"}} {count}'
    for name, key, help_text in GAUGES:
        if key in progress:
            yield from _head(f"edgewise_engine_{name}", help_text, "gauge")
            yield f"edgewise_engine_{name} {progress[key]}"
    for name, key, label, help_text in BY_NAME:
        yield from _head(f"edgewise_engine_{name}", help_text, "gauge")
        for who, value in sorted((progress.get(key) or {}).items()):
            yield f'edgewise_engine_{name}{{{label}="{_escape(who)}"}} {value}'


def _head(name: str, help_text: str, kind: str = "counter") -> Iterator[str]:
    yield f"# HELP {name} {help_text}"
    yield f"# TYPE {name} {kind}"


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
