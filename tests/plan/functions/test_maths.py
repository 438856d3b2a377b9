import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgewise.errors import BadEvent
from edgewise.event.types import AttrType
from edgewise.plan.functions import maths

INT, LONG = (AttrType.INT,), (AttrType.LONG,)
FLOAT, DOUBLE = (AttrType.FLOAT,), (AttrType.DOUBLE,)


@pytest.mark.parametrize("name", maths.REALS)
@given(value=st.floats())
def test_a_function_of_a_double_gives_a_double(name, value):
    assert isinstance(maths.real(maths.REALS[name])(value), float)


@pytest.mark.parametrize("name", sorted({*maths.REALS_OF_TWO} - {"log"}))
@given(left=st.floats(), right=st.floats())
def test_a_function_of_two_doubles_gives_a_double(name, left, right):
    assert isinstance(maths.real(maths.REALS_OF_TWO[name])(left, right), float)


@pytest.mark.parametrize(
    ("name", "value", "result"),
    [
        ("ln", 0.0, -math.inf),
        ("ln", -1.0, math.nan),
        ("log10", 0.0, -math.inf),
        ("sqrt", -1.0, math.nan),
        ("acos", 2.0, math.nan),
        ("exp", 1e9, math.inf),
        ("sinh", -1e9, -math.inf),
        ("cosh", -1e9, math.inf),
        ("sin", math.inf, math.nan),
        ("abs", -3, 3.0),
        ("cbrt", -27, -3.0),
    ],
)
def test_outside_its_domain_a_function_is_nan_or_infinite(name, value, result):
    assert maths.real(maths.REALS[name])(value) == pytest.approx(result, nan_ok=True)


def test_ceil_keeps_the_sign_of_zero():
    assert str(maths.REALS["ceil"](-0.5)) == "-0.0"


@pytest.mark.parametrize(
    ("base", "exponent", "result"),
    [
        (0.0, -1.0, math.inf),
        (-0.0, -3.0, -math.inf),
        (-8.0, 0.5, math.nan),
        (1.0, math.inf, math.nan),
    ],
)
def test_powers_are_those_of_java(base, exponent, result):
    assert maths.power(base, exponent) == pytest.approx(result, nan_ok=True)


def test_there_is_no_logarithm_to_base_one():
    assert maths.log(8, 2) == 3.0
    assert maths.log(1, 0) == 0.0
    with pytest.raises(BadEvent, match="base 1"):
        maths.log(8, 1)


@pytest.mark.parametrize(
    ("found", "value"),
    [
        (maths.to_base("b")(INT, 9), "1001"),
        (maths.to_base("b")(INT, -13), "11111111111111111111111111110011"),
        (maths.to_base("o")(LONG, 99), "143"),
        (maths.to_hex(INT, -1), "f" * 8),
        (maths.to_hex(LONG, -1), "f" * 16),
        (maths.to_hex(DOUBLE, 3.0), "0x1.8p1"),
        (maths.to_hex(DOUBLE, 0.0), "0x0.0p0"),
        (maths.to_hex(DOUBLE, 5e-324), "0x0.0000000000001p-1022"),
        (maths.to_hex(DOUBLE, math.inf), "Infinity"),
        (maths.conv("7f", 16, 10), "127"),
        (maths.conv("-7f", 16, 10), "-127"),
        (maths.exponent(60984.1), 15),
        (maths.exponent(0.0), -1023),
        (maths.exponent(math.nan), 1024),
        (maths.atan(4, 2), math.atan2(4, 2)),
        (maths.real(maths.REALS_OF_TWO["max"])(1, 2), 2.0),
        (maths.real(maths.REALS_OF_TWO["min"])(1, 2), 1.0),
        (maths.rounded(DOUBLE, 2.5), 3),
        (maths.rounded(DOUBLE, -2.5), -2),
        (maths.rounded(DOUBLE, 0.49999999999999994), 0),
        (maths.rounded(DOUBLE, 1e300), (1 << 63) - 1),
        (maths.rounded(FLOAT, -1e30), -(1 << 31)),
        (maths.rounded(DOUBLE, math.nan), 0),
        (maths.signum(-2.5), -1),
        (maths.parse_int("-12"), -12),
        (maths.parse_long("12345678901"), 12345678901),
    ],
)
def test_maths(found, value):
    assert found == value


@pytest.mark.parametrize("text", ["x", " 3", "3000000000", "1_0", ""])
def test_text_that_is_no_int_drops_the_event(text):
    with pytest.raises(BadEvent):
        maths.parse_int(text)
