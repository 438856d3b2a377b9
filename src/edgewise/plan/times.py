"""Bodies of the `time:` functions, in UTC. Those that ask what time it is are told: event time.

Formats are the original's (`yyyy-MM-dd HH:mm:ss.SSS`). Text that does not fit its format is null.
"""

from __future__ import annotations

import calendar
import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache

DEFAULT = "yyyy-MM-dd HH:mm:ss.SSS"
DAY = "yyyy-MM-dd"
MILLIS = "\x01"  # strftime knows no milliseconds; filled in after it
FORMATS_MAX = 64  # formats kept as translated
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
UNITS_MS = {
    "WEEK": 604_800_000,
    "DAY": 86_400_000,
    "HOUR": 3_600_000,
    "MINUTE": 60_000,
    "SECOND": 1000,
    "MILLISECOND": 1,
}
_LETTERS = re.compile(r"y+|M+|d+|H+|m+|s+|S+|E+|a+|h+|'[^']*'|[A-Za-z]+")
_STRPTIME = {
    "yyyy": "%Y",
    "yy": "%y",
    "MM": "%m",
    "M": "%m",
    "MMM": "%b",
    "MMMM": "%B",
    "dd": "%d",
    "d": "%d",
    "HH": "%H",
    "H": "%H",
    "hh": "%I",
    "mm": "%M",
    "ss": "%S",
    "SSS": "%f",
    "a": "%p",
    "E": "%a",
    "EEEE": "%A",
}


@lru_cache(maxsize=FORMATS_MAX)
def _translated(pattern: str) -> str:
    def letters(match: re.Match[str]) -> str:
        found = match[0]
        return found[1:-1] if found.startswith("'") else _STRPTIME.get(found, found)

    return _LETTERS.sub(letters, pattern.replace("%", "%%"))


def _read(text: str, pattern: str) -> datetime | None:
    try:
        return datetime.strptime(text, _translated(pattern)).replace(tzinfo=UTC)
    except ValueError:
        return None


def _write(moment: datetime, pattern: str) -> str:
    text = moment.strftime(_translated(pattern).replace("%f", MILLIS))
    return text.replace(MILLIS, f"{moment.microsecond // 1000:03d}")


def _at(ms: int) -> datetime:
    return EPOCH + timedelta(milliseconds=ms)


def _ms(moment: datetime) -> int:
    return (moment - EPOCH) // timedelta(milliseconds=1)


def _moment(value: str | int, pattern: str = DEFAULT) -> datetime | None:
    return _at(value) if isinstance(value, int) else _read(value, pattern)


def current_date(now_ms: int) -> str:
    return _write(_at(now_ms), DAY)


def current_time(now_ms: int) -> str:
    return _write(_at(now_ms), "HH:mm:ss")


def current_timestamp(now_ms: int) -> str:
    return _write(_at(now_ms), "yyyy-MM-dd HH:mm:ss")


def date(text: str, pattern: str = DEFAULT) -> str | None:
    moment = _read(text, pattern)
    return _write(moment, DAY) if moment else None


def date_add(value: str | int, amount: int, unit: str, pattern: str = DEFAULT) -> str | None:
    moment = _moment(value, pattern)
    if moment is None:
        return None
    moved = _moved(moment, amount, unit.upper())
    if moved is None:
        return None
    return str(_ms(moved)) if isinstance(value, int) else _write(moved, pattern)


def date_sub(value: str | int, amount: int, unit: str, pattern: str = DEFAULT) -> str | None:
    return date_add(value, -amount, unit, pattern)


def _moved(moment: datetime, amount: int, unit: str) -> datetime | None:
    """Months and years keep the day where the month has it, else take its last."""
    if unit in UNITS_MS:
        return moment + timedelta(milliseconds=amount * UNITS_MS[unit])
    if unit not in {"MONTH", "YEAR"}:
        return None
    months = moment.year * 12 + moment.month - 1 + amount * (12 if unit == "YEAR" else 1)
    year, month = divmod(months, 12)
    if not 1 <= year <= 9999:
        return None
    day = min(moment.day, calendar.monthrange(year, month + 1)[1])
    return moment.replace(year=year, month=month + 1, day=day)


def date_diff(
    first: str, second: str, first_pattern: str = DEFAULT, second_pattern: str = DEFAULT
) -> int | None:
    """Whole days from the second to the first."""
    left, right = _read(first, first_pattern), _read(second, second_pattern)
    return (left.date() - right.date()).days if left and right else None


def date_format(value: str | int, target: str, source: str = DEFAULT) -> str | None:
    moment = _moment(value, source)
    return _write(moment, target) if moment else None


def day_of_week(text: str, pattern: str = DEFAULT) -> str | None:
    moment = _read(text, pattern)
    return moment.strftime("%A") if moment else None


def extract(first: str | int, second: str, pattern: str = DEFAULT) -> int | None:
    """`extract('day', date)` or `extract(timestamp, 'day')`."""
    value, unit = (first, second) if isinstance(first, int) else (second, first)
    moment = _moment(value, pattern)
    if moment is None:
        return None
    return {
        "YEAR": moment.year,
        "MONTH": moment.month,
        "WEEK": moment.isocalendar().week,
        "DAY": moment.day,
        "HOUR": moment.hour,
        "MINUTE": moment.minute,
        "SECOND": moment.second,
    }.get(unit.upper())


def timestamp(now_ms: int, text: str | None = None, pattern: str = DEFAULT) -> int | None:
    if text is None:
        return now_ms
    moment = _read(text, pattern)
    return _ms(moment) if moment else None
