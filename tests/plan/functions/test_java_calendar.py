from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgewise.errors import BadEvent
from edgewise.plan.functions import java_calendar, java_dates

MOMENTS = st.integers(-12_180_000_000_000, 253_402_300_799_999)  # years from 1584 on


@given(st.integers(-1_000_000, 100_000))
def test_a_day_has_one_date_in_both_calendars(days):
    year, month, day = java_calendar.date_of(days)
    assert java_calendar.days_of(year, month, day) == days


def test_the_calendar_leaves_ten_days_out_in_1582():
    start = java_calendar.GREGORIAN_START
    assert java_calendar.date_of(start) == (1582, 10, 15)
    assert java_calendar.date_of(start - 1) == (1582, 10, 4)
    assert java_calendar.days_of(1500, 2, 29) + 1 == java_calendar.days_of(1500, 3, 1)


@given(MOMENTS)
def test_days_are_those_of_pythons_calendar(ms):
    moment = datetime.fromtimestamp(ms / 1000, UTC)
    days = ms // java_calendar.DAY_MS
    assert java_calendar.date_of(days) == (moment.year, moment.month, moment.day)
    assert java_calendar.days_of(moment.year, moment.month, moment.day) == days
    assert java_calendar.week_of_year(days, first=1, least=4)[0] == moment.isocalendar().week


def test_a_moment_that_no_clock_shows_is_later_by_the_gap():
    local = java_dates.read("2024-03-10 02:30", "yyyy-MM-dd HH:mm")
    found = java_calendar.local_to_utc(local, "America/New_York")
    assert java_dates.write(found, "HH:mm", "America/New_York") == "03:30"


@pytest.mark.parametrize(
    ("zone", "minutes"), [("GMT+5", 300), ("-05:30", -330), ("EST", -300), ("PST", -480), ("Z", 0)]
)
def test_zones_have_javas_names(zone, minutes):
    assert java_calendar.zone_offset(0, zone) == minutes


def test_a_zone_that_is_none_drops_the_event():
    with pytest.raises(BadEvent, match="no time zone"):
        java_calendar.zone_offset(0, "Nowhere/Bad")


def test_months_run_on():
    assert java_calendar.date_of(java_calendar.days_of(2024, 14, 31)) == (2025, 3, 3)
    assert java_calendar.month_length(2024, 2) == 29
