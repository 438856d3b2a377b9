import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgewise.event.types import AttrType
from edgewise.event.values import FLOAT_MAX, float32, typed

anything = st.one_of(
    st.none(), st.text(), st.booleans(), st.integers(), st.floats(), st.lists(st.none())
)


@given(anything, st.sampled_from([t for t in AttrType if t is not AttrType.OBJECT]))
def test_a_value_is_taken_as_it_is_or_refused_with_a_reason(value, wanted):
    try:
        taken = typed(value, wanted)
    except ValueError as error:
        assert str(error)
        return
    if wanted is AttrType.FLOAT and value is not None:
        assert taken == float(np.float32(value))
    elif wanted is AttrType.DOUBLE and value is not None:
        assert taken == float(value)  # a whole number beyond 2**53 is the nearest double
    else:
        assert taken == value


@given(st.floats(-FLOAT_MAX, FLOAT_MAX))
def test_single_precision_is_what_numpy_says(value):
    assert float32(value) == float(np.float32(value))


@pytest.mark.parametrize(
    ("value", "wanted", "reason"),
    [
        (2**31, AttrType.INT, "does not fit int"),
        (2**63, AttrType.LONG, "does not fit long"),
        (True, AttrType.INT, "must be int, got bool"),
        ("1", AttrType.DOUBLE, "must be double, got string"),
        (math.nan, AttrType.DOUBLE, "finite"),
        (1e39, AttrType.FLOAT, "does not fit float"),
        (1.5, AttrType.LONG, "must be long, got a fraction"),
        ([1], AttrType.STRING, "must be string, got a nested value"),
    ],
)
def test_reasons_name_the_type_and_what_came(value, wanted, reason):
    with pytest.raises(ValueError, match=reason.replace("(", r"\(")):
        typed(value, wanted)
