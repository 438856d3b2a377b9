from hypothesis import given
from hypothesis import strategies as st

from edgewise.edge.pace import UNLIMITED, Budget

SECOND = 1_000_000


@given(
    st.integers(1000, 100_000),
    st.lists(st.tuples(st.integers(1, 50_000), st.integers(1, 2000)), max_size=50),
)
def test_over_any_time_no_more_than_the_rate_and_one_burst_goes_out(rate, steps):
    budget, now, spent = Budget(rate, 0, 0), 0, 0
    for wait_us, size in steps:
        now += wait_us
        if budget.bytes_left(now) > 0:
            budget.spend(size, 1)
            spent += size
        assert spent <= rate * now / SECOND + max(rate * 0.1, 1024) + 2000
        if budget.bytes_left(now) == 0:
            ready = budget.ready_us()
            assert ready > now
            assert budget.bytes_left(ready) > 0
            now = ready


def test_updates_per_second():
    budget = Budget(0, 10, 0)
    assert budget.bytes_left(0) == UNLIMITED
    budget.spend(100, 1)
    assert budget.bytes_left(0) == 0
    assert budget.updates_left(SECOND) == 1


def test_no_budget_is_no_limit():
    budget = Budget(0, 0, 0)
    assert not budget.limited
    assert (budget.bytes_left(0), budget.updates_left(0), budget.ready_us()) == (
        UNLIMITED,
        UNLIMITED,
        0,
    )
