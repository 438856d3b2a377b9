import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.kernel_runs import data

from edgewise.kernel.operators import sketches


def events(keys):
    return [("A", 1000 + i, key, i) for i, key in enumerate(keys)]


@given(st.lists(st.sampled_from("xyz"), min_size=1, max_size=20))
def test_few_values_are_counted_exactly(keys):
    query = "from A#approximate:count(k) select count insert into O;"
    assert data(query, events(keys))[-1] == (keys.count(keys[-1]),)


def test_what_leaves_a_window_is_counted_no_more():
    query = "from A#window.length(2)#approximate:count(k) select count insert into O;"
    assert data(query, events("xxyx"))[-1] == (1,)
    query = (
        "from A#window.length(2)#approximate:distinctCount(k) select distinctCount insert into O;"
    )
    assert data(query, events("xyzz"))[-1] == (1,)


def test_many_different_values_are_estimated_within_the_error():
    call = "approximate:distinctCountEver(v, 0.05, 0.99)"
    query = f"from A#{call} select distinctCountEver insert into O;"
    assert data(query, events("x" * 2000))[-1][0] == pytest.approx(2000, rel=0.15)


def test_bounds_stand_around_the_estimate():
    query = (
        "from A#approximate:distinctCount(k) select distinctCount, distinctCountLowerBound, "
        "distinctCountUpperBound insert into O;"
    )
    assert data(query, events("xyx"))[-1] == (2, 1, 3)


def test_hashes_are_spread():
    assert (
        len({sketches.murmur(value) for value in [*range(1000), "a", "ab", "abcde", 1.5]}) > 1000
    )
    assert sketches.murmur(True) == sketches.murmur("true")
    assert 0 <= sketches.JavaRandom(123).below(100) < 100
