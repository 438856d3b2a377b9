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
TOTALS = {"rows_in": "Events the engine has read.", "rows_out": "Rows the engine has written."}


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


def _head(name: str, help_text: str) -> Iterator[str]:
    yield f"# HELP {name} {help_text}"
    yield f"# TYPE {name} counter"


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
