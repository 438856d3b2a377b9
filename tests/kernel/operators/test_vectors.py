"""Sums over a sliding window by key, against adding up."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgewise.kernel.operators import vectors

EVENTS = st.lists(st.tuples(st.sampled_from("xyz"), st.integers(-9, 9)), max_size=30)


@pytest.fixture(autouse=True, scope="module")
def few():
    """Short examples are enough."""
    kept, vectors.LEAST_EVENTS = vectors.LEAST_EVENTS, 1
    yield
    vectors.LEAST_EVENTS = kept


@given(EVENTS, EVENTS, st.integers(1, 8))
def test_a_slide_equals_adding_up(before, events, size):
    before = before[-size:]
    together = before + events
    keys = [k for k, _ in together]
    if not events:
        return
    slide = vectors.Slide(keys, len(before), size)
    inside = [
        [v for k, v in together[max(0, i + 1 - size) : i + 1] if k == together[i][0]]
        for i in range(len(before), len(together))
    ]
    sums = slide.sums([v for _, v in together])
    assert sums.tolist() == [sum(vs) for vs in inside]
    assert slide.counts() == [len(vs) for vs in inside]
    assert slide.means(sums) == [sum(vs) / len(vs) for vs in inside]


@pytest.mark.parametrize("odd", [None, 1 << 52, 1 << 80, -(1 << 63)])
def test_what_might_not_be_exact_is_refused(odd):
    assert vectors.Slide(["k"] * 3, 0, 2).sums([1, odd, 2]) is None


@given(st.lists(st.integers(0, 9), max_size=20), st.integers(0, 20), st.integers(0, 9))
def test_the_first_place_that_reaches_a_bound(times, start, bound):
    wanted = next((i for i in range(start, len(times)) if times[i] >= bound), None)
    for found in (vectors.whole(times), vectors.moments(times)):
        assert found is None or vectors.first_from(found, start, bound) == wanted


def test_times_that_ascend_stay_a_list():
    assert vectors.moments((1, 1, 3)) == [1, 1, 3]
    assert vectors.moments([1, 3, 2]).tolist() == [1, 3, 2]
    assert vectors.moments([1, None, 2]) is None


def test_totals_wrap_as_javas_do():
    assert vectors.wrapped({"a": (1 << 63) + 1, "b": 2}, "abc") == [-(1 << 63) + 1, 2, None]
    assert vectors.wrapped({"b": 2}, "cb") == [None, 2]
