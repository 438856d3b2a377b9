import math
from collections import deque

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgewise import eep
from edgewise.eep import laws
from edgewise.eep.retaining import Retaining

AGGREGATES = [eep.Max(), eep.Last(), eep.Variance(), eep.Sum()]
NUMBERS = st.integers(-9, 9).map(float)


@pytest.mark.parametrize("inner", AGGREGATES, ids=lambda a: type(a).__name__)
@given(values=st.lists(NUMBERS, max_size=20))
def test_any_aggregate_takes_values_back_in_order(inner, values):
    laws.compensate_undoes_accumulate(Retaining(inner), values)


@pytest.mark.parametrize("inner", AGGREGATES, ids=lambda a: type(a).__name__)
@given(values=st.lists(NUMBERS, max_size=12), data=st.data())
def test_a_value_leaves_from_anywhere(inner, values, data):
    """The first one like it leaves, as a window would let it go."""
    aggregate, held = Retaining(inner), list(values)
    state = aggregate.init()
    for value in values:
        state = aggregate.accumulate(state, value)
    while held:
        gone = data.draw(st.sampled_from(held))
        held.remove(gone)
        state = aggregate.compensate(state, gone)
        assert laws.close(aggregate.emit(state), inner.of(held))


def test_a_value_that_is_not_there_is_ignored_and_nan_is_found_again():
    aggregate = Retaining(eep.Count())
    state = aggregate.accumulate(aggregate.init(), math.nan)
    state = aggregate.compensate(state, 5.0)
    assert aggregate.emit(state) == 1
    state = aggregate.compensate(state, float("nan"))
    assert state == [deque(), [], 0]
    assert aggregate.compensate(state, 1.0) is state
