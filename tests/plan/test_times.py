import pytest

from edgewise.plan import times

STAMP = "2014-11-11 13:23:44.657"
MS = 1_415_712_224_657


@pytest.mark.parametrize(
    ("found", "value"),
    [
        (times.current_date(MS), "2014-11-11"),
        (times.current_time(MS), "13:23:44"),
        (times.current_timestamp(MS), "2014-11-11 13:23:44"),
        (times.date(STAMP), "2014-11-11"),
        (times.date("x"), None),
        (times.date_add("2014-11-11", 2, "year", "yyyy-MM-dd"), "2016-11-11"),
        (times.date_add("2014-01-31", 1, "month", "yyyy-MM-dd"), "2014-02-28"),
        (times.date_add(MS, 1, "second"), str(MS + 1000)),
        (times.date_add(MS, 1, "eon"), None),
        (times.date_sub(STAMP, 1, "day"), "2014-11-10 13:23:44.657"),
        (times.date_diff("2014-11-11", "2014-11-09", "yyyy-MM-dd", "yyyy-MM-dd"), 2),
        (times.date_diff("x", STAMP), None),
        (times.date_format(STAMP, "dd MMM yyyy"), "11 Nov 2014"),
        (times.date_format(MS, "HH:mm 'at' SSS"), "13:23 at 657"),
        (times.day_of_week(STAMP), "Tuesday"),
        (times.extract("day", STAMP), 11),
        (times.extract(MS, "hour"), 13),
        (times.extract("eon", STAMP), None),
        (times.timestamp(5, STAMP), MS),
        (times.timestamp(5), 5),
        (times.timestamp(5, "x"), None),
    ],
)
def test_times(found, value):
    assert found == value
