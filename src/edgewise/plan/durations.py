"""Format milliseconds as people write them, and read them back."""

from __future__ import annotations

import re

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


def parse_duration(text: str) -> int:
    """`1 min 30 sec` as `90000`; 0 where it says nothing."""
    total = 0
    for amount, unit in re.findall(r"(\d+)\s*([a-zA-Z]+)", text):
        sizes = [size for name, size in UNITS if unit.lower().startswith(name)]
        total += int(amount) * (sizes[0] if sizes else 1)
    return total
