"""A column gives the values that were put in, however one looks at them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgewise.event.arrow import to_column
from edgewise.event.column import Column, to_arrow_array
from edgewise.event.types import AttrType

VALUES = {
    AttrType.STRING: st.text(max_size=3),
    AttrType.INT: st.integers(-(2**31), 2**31 - 1),
    AttrType.LONG: st.integers(-(2**63), 2**63 - 1),
    AttrType.FLOAT: st.floats(width=32, allow_nan=False),
    AttrType.DOUBLE: st.floats(allow_nan=False),
    AttrType.BOOL: st.booleans(),
    AttrType.OBJECT: st.lists(st.integers(0, 9), max_size=2),
}


@st.composite
def columns(draw):
    kind = draw(st.sampled_from(list(VALUES)))
    values = draw(st.lists(st.one_of(st.none(), VALUES[kind]), max_size=50))
    return kind, values, Column(to_column(values, kind), kind)


@given(columns(), st.data())
def test_iterated_indexed_sliced_and_taken(made, data):
    kind, values, column = made
    if values:
        singly = data.draw(st.lists(st.integers(-len(values), len(values) - 1), max_size=9))
        assert [column[i] for i in singly] == [values[i] for i in singly]
    low, high = (data.draw(st.integers(0, 45)) for _ in range(2))
    assert list(column[low:high]) == values[low:high]
    assert list(column) == values
    assert list(column[low:high]) == values[low:high]
    places = data.draw(st.lists(st.integers(0, len(values) - 1), max_size=9)) if values else []
    assert list(column.take(np.array(places, dtype=np.int64))) == [values[i] for i in places]
    assert [type(v) for v in column] == [type(v) for v in values]
    assert to_arrow_array(column, kind).equals(to_column(values, kind))


@given(columns())
def test_coded_values_are_the_values(made):
    kind, values, column = made
    if kind is not AttrType.OBJECT:
        codes, distinct = column.coded()
        assert [distinct[c] for c in codes] == values
        assert len(distinct) == len({(v, repr(v)) for v in values})


@given(columns())
def test_whole_numbers_are_an_array_where_none_is_null(made):
    kind, values, column = made
    found = column.whole()
    if kind in (AttrType.INT, AttrType.LONG) and None not in values:
        assert found.dtype == np.int64
        assert found.tolist() == values
    else:
        assert found is None


def test_columns_are_equal_to_what_holds_the_same():
    column = Column(to_column([1, 2], AttrType.LONG), AttrType.LONG)
    assert column == Column(to_column([1, 2], AttrType.LONG), AttrType.LONG)
    assert column == [1, 2]
    assert column != [1, 3]
    assert column != 7
    with pytest.raises(TypeError):
        hash(column)
