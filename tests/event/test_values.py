import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgewise.errors import BadEvent
from edgewise.event.schema import Schema
from edgewise.event.types import AttrType
from edgewise.event.values import FLOAT_MAX, convert_row, convert_value, round_to_float32

anything = st.one_of(
    st.none(), st.text(), st.booleans(), st.integers(), st.floats(), st.lists(st.none())
)


@given(anything, st.sampled_from([t for t in AttrType if t is not AttrType.OBJECT]))
def test_a_value_is_taken_as_it_is_or_refused_with_a_reason(value, wanted):
    try:
        taken = convert_value(value, wanted)
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
    assert round_to_float32(value) == float(np.float32(value))


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
        convert_value(value, wanted)


S = Schema.of("S", k="string", v="int")


@pytest.mark.parametrize("event", [("a", 1), {"v": 1, "k": "a"}])
def test_an_event_is_a_tuple_or_a_dict(event):
    assert convert_row(event, S, 1) == ("a", 1)


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        (
            ["a", 1],
            r"event 3: an event is a tuple .* not list: \['a', 1\]",
        ),
        (("a", 1, 2), "event 3: 'S' has 2 attributes, got 3"),
        ({"k": "a"}, "event 3, field 'v': is missing"),
        ({"k": "a", "x": 1}, "event 3, field 'x': 'S' has no such attribute"),
        ((1, 1), "event 3, field 'k': must be string"),
    ],
)
def test_any_other_event_is_refused_with_its_number_and_field(event, reason):
    with pytest.raises(BadEvent, match=reason):
        convert_row(event, S, 3)
