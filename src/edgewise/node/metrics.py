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
# As of now: the name of the metric, the key in what was told, what it means. What is not known is
# left out.
# Times are told in ms and shown in seconds, as Prometheus counts.
GAUGES = (
    ("input_rows_per_second", "input_rows_per_s", "Events that came into the input logs."),
    ("processing_rows_per_second", "processing_rows_per_s", "Rows over busy time, recently."),
    ("backlog_rows", "backlog_rows", "Rows in the input logs that are not yet processed."),
    ("watermark_seconds", "watermark", "The app's time since 1970."),
    ("watermark_lag_seconds", "watermark_lag_ms", "The app's time is so far behind the clock."),
    ("state_keys", "state_keys", "Keys in kernel state."),
    ("state_bytes", "state_bytes", "Bytes of state files."),
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
    "restarts": "Starts of the engine process after its first.",
}
WHOLE = "trigger"  # no phase: Spark's word for all of them and what lies between


def engine_metrics(progress: Mapping[str, Any]) -> str:
    """The text exposition format; counters but for restarts start anew with the engine."""
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
        if progress.get(key) is not None:
            yield from _head(f"edgewise_engine_{name}", help_text, "gauge")
            yield f"edgewise_engine_{name} {_shown(name, progress[key])}"
    for name, key, label, help_text in BY_NAME:
        yield from _head(f"edgewise_engine_{name}", help_text, "gauge")
        for who, value in sorted((progress.get(key) or {}).items()):
            if who != WHOLE:
                shown = _shown(name, value)
                yield f'edgewise_engine_{name}{{{label}="{_escape(who)}"}} {shown}'
    whole = (progress.get("batch_ms") or {}).get(WHOLE)
    if whole is not None:
        name = "edgewise_engine_trigger_seconds"
        yield from _head(name, "Spark's last batch, all phases and what lies between.", "gauge")
        yield f"{name} {_shown(name, whole)}"


def _shown(name: str, value: float) -> float:
    return value / 1000 if name.endswith("seconds") else value


def _head(name: str, help_text: str, kind: str = "counter") -> Iterator[str]:
    yield f"# HELP {name} {help_text}"
    yield f"# TYPE {name} {kind}"


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
