"""Every stock aggregate in every window keeps every law."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgewise import eep
from edgewise.eep import laws

AGGREGATES = {
    "count": eep.Count(), "sum": eep.Sum(), "min": eep.Min(), "max": eep.Max(),
    "mean": eep.Mean(), "variance": eep.Variance(), "stddev": eep.StdDev(),
    "percentile": eep.Percentile(0.9), "distinct": eep.Distinct(), "first": eep.First(),
    "last": eep.Last(), "top": eep.TopK(2), "stats": eep.Stats(),
    "composite": eep.Composite(n=eep.Count(), total=eep.Sum()),
}  # fmt: skip
VALUES = st.lists(st.integers(-1000, 1000) | st.sampled_from([0.5, -2.25, 1e6]), max_size=30)
FLOATS = VALUES.map(lambda values: [float(v) for v in values])


@pytest.mark.parametrize("name", AGGREGATES)
@settings(deadline=None, max_examples=30)
@given(values=FLOATS, n=st.integers(1, 5), cuts=st.lists(st.integers(0, 30)))
def test_an_aggregate_keeps_the_laws(name, values, n, cuts):
    aggregate = AGGREGATES[name]
    laws.compensate_undoes_accumulate(aggregate, values)
    if not isinstance(aggregate, eep.Whole):
        laws.merge_joins_two_runs(aggregate, values[: len(cuts)], values[len(cuts) :])
    for kind, law in (
        (eep.sliding, laws.sliding_equals_recomputation),
        (eep.tumbling, laws.tumbling_equals_recomputation),
    ):

        def make(kind=kind):
            return kind(aggregate, n)

        law(make, aggregate, values, n)
        laws.batching_changes_nothing(make, values, cuts)
        laws.a_snapshot_changes_nothing(make, values, min(len(values), len(cuts)))
        laws.nothing_is_shared(make, values)


@given(FLOATS, st.integers(1, 5))
def test_memory_is_bounded_by_the_size(values, n):
    laws.memory_is_bounded(eep.sliding(eep.Max(), n), values, n)
    laws.memory_is_bounded(eep.tumbling(eep.Percentile(0.5), n), values, n + 1)


def test_a_broken_aggregate_is_caught():
    class Broken(eep.Sum):
        def compensate(self, state, _value):
            return state

    with pytest.raises(AssertionError, match="after taking back 1"):
        laws.compensate_undoes_accumulate(Broken(), [1.0, 2.0])


def test_a_window_that_leaks_is_caught():
    class Leak(eep.Aggregate):
        def init(self):
            return ()

        def accumulate(self, state, value):
            return (*state, value)

    with pytest.raises(AssertionError, match="are held"):
        laws.memory_is_bounded(eep.tumbling(Leak(), 100), range(50), 10)


@pytest.mark.slow
def test_sums_stay_within_two_units_over_ten_million_events():
    import math
    import random

    window = eep.sliding(eep.Sum(), 1000)
    chance = random.Random(7)
    values = [chance.uniform(-1e6, 1e6) for _ in range(100_000)] * 100
    last = 0.0
    for value in values:
        for result in window.push(value):
            last = result
    exact = math.fsum(values[-1000:])
    assert abs(last - exact) <= 2 * math.ulp(1e9)
