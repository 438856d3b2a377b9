"""Count days, weeks and zones as Java's calendar does: months run on, zones have short names.

Days before 1582-10-15 are of the Julian calendar, as in Java. Python's `datetime` ends at the
years 1 and 9999 and refuses a 13th month. Used by `java_dates` and the `time:` functions.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from edgewise.errors import BadEvent

DAY_MS = 86_400_000
GREGORIAN_START = -141_427  # 1582-10-15 in days since 1970
# What Java means by zone names of three letters.
SHORT_ZONES = {
    "ACT": "Australia/Darwin", "AET": "Australia/Sydney", "AGT": "America/Argentina/Buenos_Aires",
    "ART": "Africa/Cairo", "AST": "America/Anchorage", "BET": "America/Sao_Paulo",
    "BST": "Asia/Dhaka", "CAT": "Africa/Harare", "CNT": "America/St_Johns",
    "CST": "America/Chicago", "CTT": "Asia/Shanghai", "EAT": "Africa/Addis_Ababa",
    "ECT": "Europe/Paris", "IET": "America/Indiana/Indianapolis", "IST": "Asia/Kolkata",
    "JST": "Asia/Tokyo", "MIT": "Pacific/Apia", "NET": "Asia/Yerevan", "NST": "Pacific/Auckland",
    "PLT": "Asia/Karachi", "PNT": "America/Phoenix", "PRT": "America/Puerto_Rico",
    "PST": "America/Los_Angeles", "SST": "Pacific/Guadalcanal", "VST": "Asia/Ho_Chi_Minh",
}  # fmt: skip
FIXED_ZONES_MIN = {"EST": -300, "MST": -420, "HST": -600, "UTC": 0, "GMT": 0, "Z": 0, "UT": 0}
SUMMER_ZONES_MIN = {"EDT": -240, "CDT": -300, "MDT": -360, "PDT": -420, "CEST": 120, "CET": 60}
OFFSET = re.compile(r"(?:GMT|UTC|UT)?([+-])(\d{1,2})(?::?(\d{2}))?")


def days_of(year: int, month: int, day: int) -> int:
    """Days since 1970-01-01; months and days out of their range run on."""
    year, month = year + (month - 1) // 12, (month - 1) % 12 + 1
    shifted = year - (month <= 2)
    era, of_era = divmod(shifted, 400)
    of_year = (153 * ((month + 9) % 12) + 2) // 5
    found = era * 146_097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year + day - 719_469
    if found >= GREGORIAN_START:
        return found
    return shifted * 365 + shifted // 4 + of_year + day - 719_471


def date_of(days: int) -> tuple[int, int, int]:
    """Year, month, day."""
    if days < GREGORIAN_START:
        era, of_era = divmod(days + 719_470, 1461)
        year = min(of_era // 365, 3)
        of_year = of_era - 365 * year
        return _of_march(year + era * 4, of_year)
    era, of_era = divmod(days + 719_468, 146_097)
    year = (of_era - of_era // 1460 + of_era // 36_524 - of_era // 146_096) // 365
    of_year = of_era - (365 * year + year // 4 - year // 100)
    return _of_march(year + era * 400, of_year)


def _of_march(year: int, of_year: int) -> tuple[int, int, int]:
    """The date, from a year that begins in March and the days since then."""
    month = (5 * of_year + 2) // 153
    day = of_year - (153 * month + 2) // 5 + 1
    month = month + 3 if month < 10 else month - 9
    return year + (month <= 2), month, day


def month_length(year: int, month: int) -> int:
    return days_of(year, month + 1, 1) - days_of(year, month, 1)


def weekday_of(days: int) -> int:
    """Sunday is 0."""
    return (days + 4) % 7


def week_of_year(days: int, *, first: int = 0, least: int = 1) -> tuple[int, int]:
    """Week and its year; a week begins on `first`, the first one has `least` days in its year."""
    year = date_of(days)[0]
    for candidate in (year + 1, year, year - 1):
        new_year = days_of(candidate, 1, 1)
        start = new_year - (weekday_of(new_year) - first) % 7
        if new_year - start > 7 - least:
            start += 7
        if days >= start:
            return (days - start) // 7 + 1, candidate
    raise AssertionError("a day is in some week")


def zone_offset(ms: int, zone: str) -> int:
    """Minutes east of UTC in this zone at this moment."""
    offset = OFFSET.fullmatch(zone)
    if offset is not None:
        minutes = int(offset[2]) * 60 + int(offset[3] or 0)
        return -minutes if offset[1] == "-" else minutes
    for fixed in (FIXED_ZONES_MIN, SUMMER_ZONES_MIN):
        if zone.upper() in fixed:
            return fixed[zone.upper()]
    moment = datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=_within_years(ms))
    delta = moment.astimezone(_zone(zone)).utcoffset()
    return int(delta.total_seconds() // 60) if delta else 0


def _within_years(ms: int) -> int:
    """Python's zones know the years 1 to 9999."""
    return max(-62_000_000_000_000, min(ms, 253_000_000_000_000))


def _zone(zone: str) -> ZoneInfo:
    try:
        return ZoneInfo(SHORT_ZONES.get(zone, zone))
    except (ZoneInfoNotFoundError, ValueError, OSError) as why:
        raise BadEvent(f"'{zone}' is no time zone") from why


def local_to_utc(local_ms: int, zone: str) -> int:
    """The moment at which clocks in this zone show this; in a gap, later by its length."""
    before = local_ms - zone_offset(local_ms - DAY_MS, zone) * 60_000
    if before + zone_offset(before, zone) * 60_000 == local_ms:
        return before
    after = local_ms - zone_offset(local_ms + DAY_MS, zone) * 60_000
    if after + zone_offset(after, zone) * 60_000 == local_ms:
        return after
    return before
