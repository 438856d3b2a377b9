from hypothesis import given
from hypothesis import strategies as st

from edgewise.node.rates import SAMPLES_MAX, WINDOW_US, Rates


def test_a_steady_flow_has_a_steady_rate():
    rates = Rates()
    for tick in range(20):
        value = rates.update(tick * 500_000, tick * 1000, tick * 5)
    assert value == {
        "events_in_per_s": 2000.0,
        "rows_out_per_s": 10.0,
        "events_in": 19_000,
        "rows_out": 95,
    }


def test_silence_brings_the_rate_down_to_zero_within_the_window():
    rates = Rates()
    rates.update(0, 0, 0)
    rates.update(1_000_000, 5000, 1)
    for tick in range(2, 10):
        value = rates.update(tick * 1_000_000, 5000, 1)
    assert WINDOW_US < 9_000_000 - 1_000_000
    assert value["events_in_per_s"] == 0


@given(st.lists(st.integers(1, 10_000_000), max_size=3 * SAMPLES_MAX))
def test_memory_is_bounded_whatever_the_ticks(gaps):
    rates = Rates()
    now = 0
    for gap in gaps:
        now += gap
        rates.update(now, 0, 0)
    assert len(rates._samples) <= SAMPLES_MAX
