"""Cron times as Quartz writes them: `sec min hour day month weekday`; `*`, `?`, `,`, `-`, `/`.

Weekdays count from 1 (Sunday) to 7 or by name. Times are UTC.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from edgewise.errors import BadEvent

_RANGES = ((0, 59), (0, 59), (0, 23), (1, 31), (1, 12), (1, 7))
_MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_DAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
_NAMES: tuple[dict[str, int], ...] = (
    {}, {}, {}, {}, {n: i + 1 for i, n in enumerate(_MONTHS)},
    {n: i + 1 for i, n in enumerate(_DAYS)},
)  # fmt: skip
DAYS_MAX = 366 * 5  # a time that is further away never comes


@dataclass(frozen=True, slots=True)
class Cron:
    """The numbers each field allows."""

    fields: tuple[frozenset[int], ...]

    def after(self, ts: int) -> int:
        """The first time later than `ts`, both in ms."""
        moment = datetime.fromtimestamp(ts // 1000, UTC) + timedelta(seconds=1)
        seconds, minutes, hours, days, months, weekdays = self.fields
        for _ in range(DAYS_MAX):
            weekday = moment.isoweekday() % 7 + 1
            if moment.month in months and moment.day in days and weekday in weekdays:
                start = (moment.hour, moment.minute, moment.second)
                for hour in sorted(hours):
                    for minute in sorted(minutes):
                        for second in sorted(seconds):
                            if (hour, minute, second) >= start:
                                found = moment.replace(hour=hour, minute=minute, second=second)
                                return int(found.timestamp()) * 1000
            moment = (moment + timedelta(days=1)).replace(hour=0, minute=0, second=0)
        raise BadEvent("this cron time never comes")


def parse(text: str) -> Cron:
    parts = text.split()
    if len(parts) < len(_RANGES):
        raise BadEvent(f"'{text}' is no cron time; write: sec min hour day month weekday")
    fields = (
        _field(part, low, high, names)
        for part, (low, high), names in zip(parts, _RANGES, _NAMES, strict=False)
    )
    return Cron(tuple(fields))


def _field(text: str, low: int, high: int, names: dict[str, int]) -> frozenset[int]:
    found: set[int] = set()
    for part in text.upper().split(","):
        span, _, step = part.partition("/")
        first, _, last = span.partition("-")
        if first in {"*", "?", ""}:
            begin, end = low, high
        else:
            begin = _number(first, names)
            end = _number(last, names) if last else (high if step else begin)
        found.update(range(begin, end + 1, int(step or 1)))
    if not found or min(found) < low or max(found) > high:
        raise BadEvent(f"'{text}' is not between {low} and {high}")
    return frozenset(found)


def _number(text: str, names: dict[str, int]) -> int:
    try:
        return names.get(text) or int(text)
    except ValueError as why:
        raise BadEvent(f"'{text}' is no number of a cron time") from why
