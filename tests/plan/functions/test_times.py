import pytest

from edgewise.errors import BadEvent
from edgewise.event.types import AttrType
from edgewise.plan.functions import times

STAMP = "2014-11-11 13:23:44.657"
MS = 1_415_712_224_657
DAYS = "yyyy-MM-dd"
LONG, STRING = AttrType.LONG, AttrType.STRING


@pytest.mark.parametrize(
    ("found", "value"),
    [
        (times.current_date(MS), "2014-11-11"),
        (times.current_time(MS), "13:23:44"),
        (times.current_timestamp(MS), "2014-11-11 13:23:44"),
        (times.current_timestamp(MS, "Asia/Kolkata"), "2014-11-11 18:53:44"),
        (times.utc_timestamp(MS, "HH:mm"), "13:23"),
        (times.date(STAMP), "2014-11-11"),
        (times.date_add("2014-11-11", 2, "year", DAYS), "2016-11-11"),
        (times.date_add("2014-01-31", 1, "month", DAYS), "2014-02-28"),
        (times.date_add("2014-01-31", -1, "quarter", DAYS), "2013-10-31"),
        (times.date_add(MS, 1, "second"), str(MS + 1000)),
        (times.date_add("2014-01-31", 1, "eon", DAYS), "2014-01-31"),
        (times.date_sub(STAMP, 1, "day"), "2014-11-10 13:23:44.657"),
        (times.date_diff("2014-11-11", "2014-11-09", DAYS, DAYS), 2),
        (times.date_diff(0, 86_399_999), 0),
        (times.date_diff(0, 86_400_000), -1),
        (times.date_format(STAMP, "dd MMM yyyy"), "11 Nov 2014"),
        (times.date_format(MS, "HH:mm 'at' SSS"), "13:23 at 657"),
        (times.day_of_week(STAMP), "Tuesday"),
        (times.day_of_week("11/11/14", "dd/MM/yy"), "Tuesday"),
        (times.extract((STRING, STRING), "day", STAMP), 11),
        (times.extract((STRING, STRING, STRING), "quarter", "2014", "yyyy"), 1),
        (times.extract((LONG, STRING), MS, "hour"), 13),
        (times.extract((LONG, STRING), MS, "week"), 46),
        (times.extract((LONG, STRING, STRING), 1609459199999, "week", "fr_FR"), 53),
        (times.extract((LONG, STRING), MS, "eon"), 0),
        (times.timestamp(5, STAMP), MS),
        (times.timestamp(5), 5),
        (times.timestamp(5, None), 5),
        (times.timestamp(5, None, DAYS), None),
        (times.timestamp(5, "2014", None), None),
        (
            times.timezone_convert("2024-02-29 23:59:58", "yyyy-MM-dd HH:mm:ss", "Asia/Kolkata"),
            "2024-03-01 05:29:58",
        ),
        (
            times.timezone_convert("2024-03-10 02:30", "yyyy-MM-dd HH:mm", "PST", "PST"),
            "2024-03-10 03:30",
        ),
    ],
)
def test_times(found, value):
    assert found == value


def test_text_that_does_not_fit_its_pattern_drops_the_event():
    with pytest.raises(BadEvent, match="no date of the pattern"):
        times.date("x")


def test_a_zone_that_is_none_drops_the_event():
    with pytest.raises(BadEvent, match="no time zone"):
        times.timezone_convert("2024", "yyyy", "Nowhere/Bad")
