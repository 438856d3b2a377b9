import pytest
from tests.support.kernel_runs import play

from edgewise.errors import BadEvent
from edgewise.kernel.operators.cron import parse

MIDNIGHT = 1599955200000  # Sunday, 2020-09-13 00:00:00 UTC


@pytest.mark.parametrize(
    ("text", "seconds_later"),
    [
        ("*/5 * * * * ?", 5),
        ("0 * * * * ?", 60),
        ("0 15 10 * * ?", 10 * 3600 + 15 * 60),
        ("0 0 0 ? * MON-FRI", 86_400),
        ("0 0 0 1 JAN ?", 110 * 86_400),
        ("10,20 30 1 * * ?", 5410),
    ],
)
def test_the_next_time(text, seconds_later):
    assert parse(text).after(MIDNIGHT) == MIDNIGHT + seconds_later * 1000


@pytest.mark.parametrize("text", ["* * *", "99 * * * * ?", "x * * * * ?"])
def test_what_is_no_cron_time_is_refused(text):
    with pytest.raises(BadEvent):
        parse(text)


def test_a_cron_window_lets_its_batch_out():
    query = "from A#window.cron('*/5 * * * * ?') select v insert all events into O;"
    rows = play(query, [("A", 1000, "x", 1), ("A", 6000, "x", 2), 20_000])
    assert [row[1:] for row in rows] == [("+", 1), ("-", 1), ("+", 2)]


def test_a_cron_trigger_comes_on_time():
    query = "define trigger T at '*/5 * * * * ?'; from T select triggered_time as t insert into O;"
    assert [row[2] for row in play(query, [12_000])] == [5000, 10_000]
