import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgewise.gateway import quotas
from edgewise.gateway.quotas import BURST_S, CallerUse, Publisher, QuotaConfig, Quotas, TokenBucket
from edgewise.gateway.refusal import Refusal

ADA, EVE = Publisher("ada"), Publisher("eve")


@given(
    st.integers(1, 1000),
    st.lists(st.tuples(st.floats(0, 5), st.integers(1, 5000)), max_size=50),
)
def test_over_any_time_no_more_is_taken_than_rate_burst_and_one_request(rate, asked):
    bucket, now_s, taken, largest = TokenBucket(rate, 0.0), 0.0, 0, 0
    for pause_s, count in asked:
        now_s += pause_s
        if not bucket.measure_wait_s(now_s):
            bucket.take(count)
            taken, largest = taken + count, max(largest, count)
    assert taken <= rate * (now_s + BURST_S) + largest + 1e-6


@given(st.integers(1, 1000), st.integers(1, 5000))
def test_who_waits_as_long_as_said_is_admitted(rate, count):
    bucket = TokenBucket(rate, 0.0)
    bucket.take(count)
    wait_s = bucket.measure_wait_s(0.0)
    assert bucket.measure_wait_s(wait_s + 1e-9) == 0.0


def test_a_clock_that_goes_back_gives_nothing():
    bucket = TokenBucket(10, 100.0)
    bucket.take(30)
    assert bucket.measure_wait_s(0.0) >= 1.0


def test_each_caller_has_its_own_limits():
    found = Quotas(QuotaConfig(events_per_s=10, requests_max=2), 100)
    use = found.begin(EVE, 0.0)
    use.charge(1000, 0)
    refusal = found.begin(EVE, 0.0)
    assert (refusal.status, refusal.code, refusal.retry_after_s) == (429, "quota", 99)
    assert isinstance(found.begin(ADA, 0.0), CallerUse)
    assert isinstance(found.begin(ADA, 0.0), CallerUse)
    assert isinstance(found.begin(ADA, 0.0), Refusal), "two requests are open"


def test_the_rates_of_a_token_replace_those_of_the_server():
    found = Quotas(QuotaConfig(events_per_s=1), 100)
    found.begin(EVE, 0.0).charge(100, 0)
    assert isinstance(found.begin(EVE, 0.0), Refusal)
    assert isinstance(found.begin(Publisher("eve", events_per_s=1000), 0.0), CallerUse)


def test_bytes_in_flight_of_one_caller_are_a_part_of_all():
    use = Quotas(QuotaConfig(in_flight_share=0.5), 100).begin(EVE, 0.0)
    assert [use.reserve(30), use.reserve(30), use.reserve(20)] == [True, False, True]
    use.release(30)
    assert use.reserve(30)


def test_one_body_of_the_largest_size_is_always_possible():
    assert Quotas(QuotaConfig(), 100, 80).begin(EVE, 0.0).reserve(80)
    assert not Quotas(QuotaConfig(), 100, 200).begin(EVE, 0.0).reserve(101)


def test_the_memory_of_callers_is_bounded_and_keeps_those_in_flight(monkeypatch):
    monkeypatch.setattr(quotas, "CALLERS_MAX", 3)
    found = Quotas(QuotaConfig(requests_max=1), 100)
    assert isinstance(found.begin(ADA, 0.0), CallerUse)
    for number in range(10):
        found.end(found.begin(Publisher(str(number)), 0.0))
    assert len(found) <= 4
    assert isinstance(found.begin(ADA, 0.0), Refusal)


@pytest.mark.parametrize("config", [QuotaConfig(), QuotaConfig(requests_max=0)])
def test_without_rates_everything_is_admitted(config):
    use = Quotas(config, 100).begin(EVE, 0.0)
    use.charge(10**9, 10**9)
    assert use.check_rates(0.0) is None
