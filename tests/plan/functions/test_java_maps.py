import math

from hypothesis import given
from hypothesis import strategies as st

from edgewise.plan.functions import java_maps


def test_values_of_two_types_are_never_equal():
    assert not java_maps.is_same(1, True)
    assert not java_maps.is_same(1, 1.0)
    assert java_maps.is_same([1, {"a": math.nan}], [1, {"a": math.nan}])
    assert not java_maps.has([1, 2], True)


def test_maps_have_the_order_of_javas_hash_map():
    assert java_maps.in_map_order(["banana", "apple", "cherry"]) == ["banana", "apple", "cherry"]
    assert java_maps.in_map_order(["b", "a"]) == ["a", "b"]
    assert java_maps.in_map_order([17, 1, 16]) == [16, 17, 1]


@given(st.dictionaries(st.text() | st.integers() | st.floats(allow_nan=False), st.integers()))
def test_a_map_in_order_is_the_same_map(values):
    assert java_maps.ordered(values) == values
