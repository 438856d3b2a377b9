"""Format milliseconds as people write them."""

from __future__ import annotations

UNITS = (("day", 86_400_000), ("hour", 3_600_000), ("min", 60_000), ("sec", 1_000))


def format_duration(ms: int) -> str:
    """`90000` as `1 min 30 sec`: also a legal time literal."""
    parts: list[str] = []
    for unit, size in UNITS:
        amount, ms = divmod(ms, size)
        if amount:
            parts.append(f"{amount} {unit}")
    if ms or not parts:
        parts.append(f"{ms} millisec")
    return " ".join(parts)
