from zoneinfo import ZoneInfo

import pytest
from tests.support.kernel_runs import data

from edgewise.errors import BadEvent
from edgewise.kernel.functions import java
from edgewise.kernel.operators.aggregation_buckets import floor, span_of, stamp, unit_of

JUNE_2017 = 1496275200000


def test_buckets_start_with_their_unit():
    ts = 1496289950123
    assert floor(ts, "sec") == 1496289950000
    assert floor(ts, "min") == 1496289900000
    assert floor(ts, "month") == JUNE_2017
    assert floor(ts, "year") == 1483228800000


def test_units_begin_by_the_clocks_of_a_zone():
    ts = 1580486401000  # one second into February in Singapore, still January in UTC
    zone = ZoneInfo("Asia/Singapore")
    assert [floor(ts, u, zone) for u in ("sec", "hour", "day", "month")] == [
        1580486401000, 1580486400000, 1580486400000, 1580486400000,
    ]  # fmt: skip
    assert floor(ts, "year", zone) == 1577808000000
    assert floor(ts, "hour", ZoneInfo("Asia/Kolkata")) == 1580484600000


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


HEAD = (
    "define stream T (k string, v int, t long); define stream Q (q int); define aggregation G "
    "from T select k, sum(v) as s group by k aggregate {}every sec...min; "
)
ASK = (
    "from Q join G within 0L, 100000000L per 'seconds' "
    "select AGG_TIMESTAMP as at, k, s {}insert into O;"
)
SENT = [("T", 1000, k, t, 1000 * t) for t in (3, 1, 2) for k in ("user0", "user1")]


def test_rows_come_by_time_or_as_the_original_gathers_them():
    asked = [*SENT, ("Q", 90_000, 1)]
    by_arrival = [row[:2] for row in data(ASK.format(""), asked, HEAD.format(""))]
    assert by_arrival == [(1000, "user0"), (1000, "user1")]
    by_attribute = [row[:2] for row in data(ASK.format(""), asked, HEAD.format("by t "))]
    keys = [f"{at}:-:{k}:-:" for at, k in by_attribute]
    assert keys == java.map_order(sorted(keys, key=lambda key: not key.startswith("3000")))
    assert len(keys) == 6


def test_rows_are_ordered_by_what_they_do_not_show():
    query = ASK.replace("AGG_TIMESTAMP as at, ", "").format("order by AGG_TIMESTAMP desc ")
    found = data(query, [*SENT, ("Q", 90_000, 1)], HEAD.format("by t "))
    assert [s for _, s in found] == [3, 3, 2, 2, 1, 1]


def test_what_was_kept_long_enough_goes_and_the_rest_stays():
    purge = "@purge(enable='true', interval='10 sec', @retentionPeriod(sec='20 sec', min='all')) "
    head = HEAD.format("").replace("define aggregation", purge + "define aggregation")
    sent = [("T", ts, "a", 1, 0) for ts in (1000, 2000, 15_000, 31_000)]
    shown = [row[0] for row in data(ASK.format(""), [*sent, ("Q", 32_000, 1)], head)]
    assert shown == [15_000, 31_000]
    by_minute = ASK.format("").replace("seconds", "minutes")
    assert [row[2] for row in data(by_minute, [*sent, ("Q", 32_000, 1)], head)] == [4]
    late = [*sent, 500_000, ("T", 500_001, "b", 1, 0), ("Q", 500_002, 1)]
    assert [
        row[1] for row in data(ASK.format("").replace("100000000", "9000000"), late, head)
    ] == ["b"]
