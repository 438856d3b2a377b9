"""Declare the `time:` functions, in UTC. Those that ask what time it is get the event time.

Patterns are those of `java_dates`. Null in, null out; a text that does not fit its pattern drops
the event; a unit that is none changes nothing, and extracts 0, as in the original.
"""

from __future__ import annotations

from edgewise.event.types import AttrType
from edgewise.plan.functions.java_calendar import (
    DAY_MS,
    date_of,
    days_of,
    local_to_utc,
    month_length,
    week_of_year,
    weekday_of,
    zone_offset,
)
from edgewise.plan.functions.java_dates import DAYS, Moment, read, write
from edgewise.plan.functions.table import INT, LONG, STRING, TEXT, WHOLE, overloaded, scalar

DEFAULT = "yyyy-MM-dd HH:mm:ss.SSS"
DAY = "yyyy-MM-dd"
SECONDS = "yyyy-MM-dd HH:mm:ss"
STAMP = frozenset({LONG})
UNITS_MS = {
    "WEEK": 7 * DAY_MS,
    "DAY": DAY_MS,
    "HOUR": 3_600_000,
    "MINUTE": 60_000,
    "SECOND": 1000,
}
UNITS_MONTHS = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}
# Countries whose weeks begin on Sunday, the first one with the first day of the year.
SUNDAY_COUNTRIES = frozenset({"", "US", "CA", "MX", "IN", "JP", "KR", "BR", "IL", "ZA", "TW"})


def current_date(now_ms: int) -> str:
    return write(now_ms, DAY)


def current_time(now_ms: int) -> str:
    return write(now_ms, "HH:mm:ss")


def current_timestamp(now_ms: int, zone: str | None = None) -> str:
    return write(now_ms, SECONDS, zone or "")


def utc_timestamp(now_ms: int, pattern: str | None = None) -> str:
    return write(now_ms, pattern or SECONDS)


def date(text: str, pattern: str = DEFAULT) -> str:
    return write(read(text, pattern), DAY)


def date_add(value: str | int, amount: int, unit: str, pattern: str = DEFAULT) -> str:
    """To a text, in its pattern; to a timestamp, as the text of the number."""
    if isinstance(value, int):
        return str(_shift(value, amount, unit))
    return write(_shift(read(value, pattern), amount, unit), pattern)


def date_sub(value: str | int, amount: int, unit: str, pattern: str = DEFAULT) -> str:
    return date_add(value, -amount, unit, pattern)


def _shift(ms: int, amount: int, unit: str) -> int:
    """Months keep the day where the month has it, else take its last."""
    unit = unit.upper()
    if unit in UNITS_MS:
        return ms + amount * UNITS_MS[unit]
    if unit not in UNITS_MONTHS:
        return ms
    days, rest = divmod(ms, DAY_MS)
    year, month, day = date_of(days)
    whole = year * 12 + month - 1 + amount * UNITS_MONTHS[unit]
    year, month = whole // 12, whole % 12 + 1
    return days_of(year, month, min(day, month_length(year, month))) * DAY_MS + rest


def date_diff(
    first: str | int,
    second: str | int,
    first_pattern: str = DEFAULT,
    second_pattern: str = DEFAULT,
) -> int:
    """Whole days from the second to the first."""
    left = first if isinstance(first, int) else read(first, first_pattern)
    right = second if isinstance(second, int) else read(second, second_pattern)
    whole = abs(left - right) // DAY_MS
    return whole if left >= right else -whole


def date_format(value: str | int, target: str, source: str = DEFAULT) -> str:
    return write(value if isinstance(value, int) else read(value, source), target)


def day_of_week(text: str, pattern: str = "") -> str:
    """Without a pattern the day alone counts."""
    ms = read(text, pattern) if pattern else read(text.split(" ", maxsplit=1)[0], DAY)
    return DAYS[weekday_of(ms // DAY_MS)]


def extract(types: tuple[AttrType, ...], first: str | int, second: str, *more: str) -> int:
    """`extract('day', date, pattern, locale)` or `extract(timestamp, 'day', locale)`."""
    if types[0] is LONG:
        ms, unit, locale = int(first), second, more[0] if more else ""
    else:
        ms = read(second, more[0] if more else DEFAULT)
        unit, locale = str(first), more[1] if len(more) > 1 else ""
    moment = Moment(ms)
    year, month, day = date_of(moment.days)
    match unit.upper():
        case "YEAR":
            return year
        case "QUARTER":
            return (month - 1) // 3 + 1
        case "MONTH":
            return month
        case "WEEK":
            return _week(moment.days, locale)
        case "DAY":
            return day
        case "HOUR":
            return moment.of_day // 3_600_000
        case "MINUTE":
            return moment.of_day // 60_000 % 60
        case "SECOND":
            return moment.of_day // 1000 % 60
    return 0


def _week(days: int, locale: str) -> int:
    """By the rules of the country: from Sunday, or ISO's in Europe."""
    country = locale.partition("_")[2][:2].upper()
    if country in SUNDAY_COUNTRIES and locale[:2] in {"", "en", "ja", "ko", "hi", "es", "pt"}:
        return week_of_year(days)[0]
    if country in {"GB", "IE"} or locale[:2] != "en":
        return week_of_year(days, first=1, least=4)[0]
    return week_of_year(days)[0]


def timestamp(now_ms: int, text: str | None = None, *pattern: str | None) -> int | None:
    """Without a text, or with a null one alone, the event time."""
    if None in pattern:
        return None
    if text is None:
        return None if pattern else now_ms
    return read(text, str(pattern[0]) if pattern else DEFAULT)


def timezone_convert(text: str, pattern: str, target: str, source: str = "UTC") -> str:
    """What clocks in the target zone show when those in the source zone show the text."""
    zone_offset(0, target)
    local = read(text, pattern, zones=False)
    return write(local_to_utc(local, source), pattern, target)


FUNCTIONS = (
    scalar("time:currentDate", returns=STRING, python=current_date, clocked=True),
    scalar("time:currentTime", returns=STRING, python=current_time, clocked=True),
    scalar(
        "time:currentTimestamp", TEXT, returns=STRING, optional=1, python=current_timestamp,
        clocked=True, takes_null=True,
    ),
    scalar("time:date", TEXT, TEXT, returns=STRING, optional=1, python=date),
    *(
        overloaded(
            f"time:{name}", (TEXT, WHOLE, TEXT), (TEXT, WHOLE, TEXT, TEXT), (STAMP, WHOLE, TEXT),
            returns=STRING, python=body,
        )
        for name, body in (("dateAdd", date_add), ("dateSub", date_sub))
    ),
    overloaded(
        "time:dateDiff", (STAMP, STAMP), (TEXT, TEXT), (TEXT, TEXT, TEXT), (TEXT,) * 4,
        returns=LONG, python=date_diff,
    ),
    overloaded(
        "time:dateFormat", (STAMP, TEXT), (TEXT, TEXT), (TEXT, TEXT, TEXT),
        returns=STRING, python=date_format,
    ),
    scalar("time:dayOfWeek", TEXT, TEXT, returns=STRING, optional=1, python=day_of_week),
    overloaded(
        "time:extract", (STAMP, TEXT), (STAMP, TEXT, TEXT), (TEXT, TEXT), (TEXT, TEXT, TEXT),
        (TEXT,) * 4, returns=INT, python=extract, typed=True,
    ),
    scalar(
        "time:timestampInMilliseconds", TEXT, TEXT, returns=LONG, optional=2, python=timestamp,
        clocked=True, takes_null=True,
    ),
    overloaded(
        "time:timezoneConvert", (TEXT, TEXT, TEXT), (TEXT,) * 4,
        returns=STRING, python=timezone_convert,
    ),
    scalar(
        "time:utcTimestamp", TEXT, returns=STRING, optional=1, python=utc_timestamp,
        clocked=True, takes_null=True,
    ),
)  # fmt: skip
