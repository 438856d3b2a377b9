from hypothesis import given
from hypothesis import strategies as st

from edgewise.edge.sessions.budget import UNLIMITED, UNSENT_MAX, Budget, LinkRate

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


@given(st.integers(2_000, 1_000_000), st.integers(0, 60_000))
def test_what_a_link_carries_is_learned_and_the_pile_below_goes(link, pile):
    """A link that drains `link` bytes/s under a sender that always has more."""
    rate, written, unsent, now, step = LinkRate(0), pile, pile, 0, 250_000
    room = 16_384  # what the kernel takes before it says stop
    depths = []
    for _ in range(400):
        now += step
        offered = rate.bytes_per_s * step // 1_000_000 if rate.bytes_per_s else 10**9
        sent = max(0, min(offered, room + link * step // 1_000_000 - unsent))
        written += sent
        unsent = max(0, unsent + sent - link * step // 1_000_000)
        rate.observe(written, unsent, now)
        depths.append(unsent)
    late = sorted(depths[200:])
    assert late[len(late) // 2] <= max(UNSENT_MAX, link // 8)
    assert written - unsent >= 0.75 * link * 100


def test_a_limit_that_is_not_used_is_lifted():
    rate = LinkRate(0)
    rate.observe(100_000, 50_000, 5_000_000)
    assert rate.bytes_per_s == 0  # a rest says nothing
    rate.observe(125_000, 50_000, 5_500_000)
    assert rate.bytes_per_s == 40_000
    rate.observe(135_000, 0, 6_000_000)
    assert rate.bytes_per_s == 50_000
    rate.observe(136_000, 0, 6_500_000)
    assert rate.bytes_per_s == 0


@given(st.integers(1, 10**6), st.integers(1, 10**6), st.integers(0, 10**6))
def test_another_rate_gives_nothing_away(first, second, spent):
    budget = Budget(first, 0, 0)
    budget.spend(spent, 0)
    left = budget.bytes_left(0)
    budget.retune(second, 0, 0)
    assert budget.bytes_left(0) <= left
