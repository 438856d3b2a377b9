import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from edgewise.kernel.functions import java


@given(st.integers())
def test_wrapping_keeps_the_low_bits(value):
    assert java.wrap32(value) == (value & 0xFFFFFFFF) - (value >> 31 & 1) * 2**32
    assert (java.wrap64(value) - value) % 2**64 == 0
    assert -(2**63) <= java.wrap64(value) < 2**63


@pytest.mark.parametrize(
    ("value", "whole"),
    [(2.9, 2), (-2.9, -2), (1e20, 2**31 - 1), (math.nan, 0), (-math.inf, -(2**31))],
)
def test_narrowing_saturates(value, whole):
    assert java.to_int(value) == whole


def test_a_long_narrows_by_its_bits():
    assert java.to_int(2**32 + 5) == 5
    assert java.to_long(1e30) == 2**63 - 1


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.0, "1.0"), (0.001, "0.001"), (1e7, "1.0E7"), (1.5e-5, "1.5E-5"),
        (12345678.9, "1.23456789E7"),
        (True, "true"), (3, "3"), ("x", "x"), (math.inf, "Infinity"), (math.nan, "NaN"),
        (0.0, "0.0"),
        (1e300, "1.0E300"), (-2.5e10, "-2.5E10"),
    ],
)  # fmt: skip
def test_text_is_java_s(value, text):
    assert java.text(value) == text


def test_the_rest_of_infinity_is_not_a_number():
    assert math.isnan(java.frem(math.inf, 2.0))
    assert java.frem(5.0, 0.0) is None


def test_hashes_and_their_order_are_those_of_java():
    assert java.map_order(["user0", "user1"]) == ["user1", "user0"]
    many = [str(n) for n in range(100)]
    assert sorted(java.map_order(many)) == sorted(many)


@given(st.floats(allow_nan=False, allow_infinity=False))
@example(1e38)
@example(-1.5e-10)
@example(1.0e7)
@example(9007199254740993.0)
def test_any_double_is_read_back_from_its_java_text(value):
    assert float(java.text(value)) == value


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
@example(9.999999680285692e37)
def test_a_float_in_a_key_is_written_as_short_as_it_can_be(value):
    assert java.f32(float(java.key_text([value]))) == value
    assert java.key_text(["a", None, java.f32(46.36), True, 7]) == "anull46.36true7"
