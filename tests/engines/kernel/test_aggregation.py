import pytest

from edgewise.engines.kernel.aggregation import floor, span_of, stamp, unit_of
from edgewise.errors import BadEvent

JUNE_2017 = 1496275200000


def test_buckets_start_with_their_unit():
    ts = 1496289950123
    assert floor(ts, "sec") == 1496289950000
    assert floor(ts, "min") == 1496289900000
    assert floor(ts, "month") == JUNE_2017
    assert floor(ts, "year") == 1483228800000


def test_a_span_with_wildcards_ends_with_the_last_part_given():
    assert span_of(("2017-06-** **:**:**",)) == (JUNE_2017, 1498867200000)
    low, high = span_of(("2017-06-01 04:05:**",))
    assert high - low == 60_000
    assert span_of(("2017-**-** **:**:**",))[1] == 1514764800000


def test_a_zone_moves_the_span():
    assert stamp("2017-06-01 05:30:00 +05:30") == JUNE_2017
    assert stamp(JUNE_2017) == JUNE_2017


@pytest.mark.parametrize("within", [("yesterday",), (5,), (10, 5), ("2017-06-** 12:**:**",)])
def test_what_is_no_span_is_refused(within):
    with pytest.raises(BadEvent):
        span_of(within)


def test_units_are_known_by_many_names():
    assert [unit_of(t) for t in ("seconds", "sec", "Hours", "years")] == [
        "sec", "sec", "hour", "year",
    ]  # fmt: skip
    with pytest.raises(BadEvent, match="not 'moons'"):
        unit_of("moons")
