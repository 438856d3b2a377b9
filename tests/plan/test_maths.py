import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgewise.plan import maths


@pytest.mark.parametrize("name", maths.REALS)
@given(left=st.floats(), right=st.floats())
def test_a_real_function_gives_a_number_or_null(name, left, right):
    body = maths.real(maths.REALS[name])
    args = (left, right) if name in {"atan2", "copySign", "log", "power"} else (left,)
    assert body(*args) is None or isinstance(body(*args), float)


@pytest.mark.parametrize(
    ("found", "value"),
    [
        (maths.absolute(-3), 3),
        (maths.to_bin(9), "1001"),
        (maths.to_hex(200), "c8"),
        (maths.to_oct(99), "143"),
        (maths.to_hex(-1), "f" * 16),
        (maths.conv("7f", 16, 10), "127"),
        (maths.conv("-7f", 16, 10), "-127"),
        (maths.conv("x", 10, 2), None),
        (maths.conv("1", 1, 99), None),
        (maths.e(), math.e),
        (maths.pi(), math.pi),
        (maths.exponent(60984.1), 15),
        (maths.is_infinite(math.inf), True),
        (maths.is_nan(1.0), False),
        (maths.larger(1, 2), 2),
        (maths.smaller(1, 2), 1),
        (maths.parse_whole("12"), 12),
        (maths.parse_whole("x"), None),
        (maths.parse_real("1.5"), 1.5),
        (maths.parse_real("x"), None),
        (maths.rounded(2.5), 3),
        (maths.rounded(math.nan), None),
        (maths.signum(-2.5), -1),
    ],
)
def test_maths(found, value):
    assert found == value
