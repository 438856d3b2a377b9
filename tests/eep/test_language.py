import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgewise import eep
from edgewise.eep import laws
from edgewise.eep.language import DEFINITIONS, fold
from edgewise.plan.functions import AGGREGATES

NUMBERS = st.lists(st.integers(-1000, 1000).map(float), max_size=20)
VALUES = {
    "and": st.lists(st.booleans(), max_size=20),
    "or": st.lists(st.booleans(), max_size=20),
    "unionset": st.lists(st.frozensets(st.integers(0, 5)), max_size=20),
}
REMEMBERS = {"minforever", "maxforever"}  # what left still counts: no inverse


def test_every_aggregate_of_the_language_is_defined():
    assert set(DEFINITIONS) == {f.name.lower() for f in AGGREGATES} | {"avg of whole"}


@pytest.mark.parametrize("name", DEFINITIONS)
@given(data=st.data(), cut=st.integers(0, 20))
def test_a_definition_keeps_the_laws(name, data, cut):
    values = data.draw(VALUES.get(name, NUMBERS))
    definition = DEFINITIONS[name]
    laws.merge_joins_two_runs(definition, values[:cut], values[cut:])
    if name not in REMEMBERS:
        laws.compensate_undoes_accumulate(definition, values)


@given(NUMBERS)
def test_the_language_and_the_library_agree_up_to_rounding(values):
    pairs = {"sum": eep.Sum(), "avg": eep.Mean(), "min": eep.Min(), "max": eep.Max()}
    for name, library in pairs.items():
        if values:
            assert laws.close(DEFINITIONS[name].of(values), library.of(values))


def test_a_sum_of_nothing_is_null_and_whole_numbers_wrap():
    assert DEFINITIONS["sum"].of([]) is None
    assert DEFINITIONS["sum"].of([2**63 - 1, 1]) == -(2**63)
    assert DEFINITIONS["avg of whole"].of([-3, -4]) == -3.0


def test_a_deviation_is_that_of_the_population():
    assert DEFINITIONS["stddev"].of([1.0, 2.0, 6.0]) == pytest.approx(statistics.pstdev([1, 2, 6]))


def test_nulls_are_left_out_of_a_fold_unless_they_are_taken():
    assert fold(DEFINITIONS["sum"], [1, None]) == 1
    assert fold(DEFINITIONS["count"], [1, None]) == 2
    assert fold(DEFINITIONS["distinctcount"], [1, None]) == 2
