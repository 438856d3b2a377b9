import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgewise.errors import BadEvent
from edgewise.plan.functions import java_dates

LEAP = 1_709_251_198_123  # 2024-02-29 23:59:58.123, a Thursday
WHOLE = "yyyy-MM-dd HH:mm:ss.SSS"
MOMENTS = st.integers(-62_135_596_800_000, 253_402_300_799_999)


@given(MOMENTS)
def test_what_is_written_is_read_again(ms):
    assert java_dates.read(java_dates.write(ms, WHOLE), WHOLE) == ms


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("G", "AD"), ("y", "2024"), ("yy", "24"), ("Y", "2024"), ("M", "2"), ("MMM", "Feb"),
        ("LLLL", "February"), ("w", "9"), ("W", "5"), ("D", "60"), ("d", "29"), ("F", "5"),
        ("E", "Thu"), ("EEEE", "Thursday"), ("u", "4"), ("a", "PM"), ("H", "23"), ("k", "23"),
        ("K", "11"), ("h", "11"), ("m", "59"), ("s", "58"), ("S", "123"), ("SSSS", "0123"),
        ("z", "UTC"), ("zzzz", "Coordinated Universal Time"), ("Z", "+0000"), ("ZZ", "+00:00"),
        ("XXX", "Z"), ("'at' ''", "at '"),
    ],
)  # fmt: skip
def test_every_letter_is_written(pattern, text):
    assert java_dates.write(LEAP, pattern) == text


@pytest.mark.parametrize(
    ("text", "pattern", "day"),
    [
        ("2024-1-5 1:2:3", "yyyy-MM-dd HH:mm:ss", "2024-01-05 01:02:03"),
        ("2024-13-40 25:61:61", "yyyy-MM-dd HH:mm:ss", "2025-02-09 02:02:01"),
        ("20240229", "yyyyMMdd", "2024-02-29 00:00:00"),
        ("29 february 2024", "dd MMMM yyyy", "2024-02-29 00:00:00"),
        ("5 2 2020", "W M y", "2020-02-23 00:00:00"),
        ("Sat 5 2 2020", "E W M y", "2020-02-29 00:00:00"),
        ("5 Sat 2 2020", "F E M y", "2020-02-29 00:00:00"),
        ("60 2 2020", "D M y", "2020-02-29 00:00:00"),
        ("99", "yy", "1999-01-01 00:00:00"),
        ("2024-060", "yyyy-DDD", "2024-02-29 00:00:00"),
        ("2024 10", "yyyy ww", "2024-03-03 00:00:00"),
        ("2024-02-29x", "yyyy-MM-dd", "2024-02-29 00:00:00"),
        ("24", "kk", "1970-01-02 00:00:00"),
        ("11 PM", "hh a", "1970-01-01 23:00:00"),
        ("2024-02-29 10:00 +0530", "yyyy-MM-dd HH:mm Z", "2024-02-29 04:30:00"),
        ("2024-02-29 10:00 PST", "yyyy-MM-dd HH:mm z", "2024-02-29 18:00:00"),
    ],
)
def test_text_is_read_leniently(text, pattern, day):
    assert java_dates.write(java_dates.read(text, pattern), "yyyy-MM-dd HH:mm:ss") == day


@pytest.mark.parametrize("pattern", ["", "b", "'open"])
def test_a_pattern_that_is_none_drops_the_event(pattern):
    with pytest.raises(BadEvent):
        java_dates.write(0, pattern)
