"""Every stock aggregate in every window keeps every law."""

import math
import random
from itertools import accumulate

import numpy as np
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
        laws.batching_changes_nothing(make, np.array(values), cuts)
        laws.a_snapshot_stands_still(make, values)


def by_tens(values):
    return values // 10


CLOSING = {
    "periodic": lambda aggregate, n: eep.periodic(aggregate, n, eep.Counting()),
    "monotonic": lambda aggregate, _n: eep.monotonic(
        aggregate, eep.EventTime(by_tens, stamps=by_tens)
    ),
}


@pytest.mark.parametrize("kind", CLOSING)
@pytest.mark.parametrize("name", AGGREGATES)
@settings(deadline=None, max_examples=15)
@given(values=FLOATS, n=st.integers(1, 5), cuts=st.lists(st.integers(0, 30)))
def test_a_window_that_a_clock_closes_keeps_the_laws(name, kind, values, n, cuts):
    aggregate = AGGREGATES[name]

    def make():
        return CLOSING[kind](aggregate, n)

    moments = [i // n for i in range(len(values))]
    if kind == "monotonic":
        moments = [by_tens(v) for v in accumulate(values, max)]
    laws.closing_equals_recomputation(make, aggregate, values, moments)
    laws.batching_changes_nothing(make, values, cuts)
    laws.batching_changes_nothing(make, np.array(values), cuts)
    laws.nothing_is_shared(make, values)
    laws.a_snapshot_stands_still(make, values)


@pytest.mark.parametrize("name", AGGREGATES)
@settings(deadline=None, max_examples=15)
@given(values=FLOATS, n=st.integers(1, 5))
def test_memory_of_every_aggregate_is_bounded_by_the_size(name, values, n):
    aggregate = AGGREGATES[name]
    cells = 20  # what an aggregate of constant size may hold, with room for all at once
    laws.memory_is_bounded(eep.sliding(aggregate, n), values, n)
    laws.memory_is_bounded(eep.tumbling(aggregate, n), values, n + cells)
    laws.memory_is_bounded(eep.periodic(aggregate, n, eep.Counting()), values, n + cells)


def test_whole_contents_keep_the_laws():
    def make():
        return eep.tumbling(eep.Whole(lambda prices: float(prices.sum())), 3)

    values = [float(v) for v in range(11)]
    laws.batching_changes_nothing(make, values, [2, 5])
    laws.a_snapshot_changes_nothing(make, values, 4)
    laws.a_snapshot_stands_still(make, values)
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


def test_an_error_beyond_its_bound_is_caught():
    with pytest.raises(AssertionError, match="is off by"):
        laws.error_is_bounded(1.0, 1.5, 1.0)


def ten_million():
    """Of both signs and all sizes up to a million, the same each time."""
    chance = random.Random(7)
    return [chance.uniform(-1e6, 1e6) for _ in range(100_000)] * 100


@pytest.mark.slow
def test_sums_stay_within_two_units_over_ten_million_events():
    values = ten_million()
    window = eep.sliding(eep.Sum(), 1000)
    last = 0.0
    for value in values:
        for result in window.push(value):
            last = result
    laws.error_is_bounded(last, math.fsum(values[-1000:]), 1e9)


@pytest.mark.slow
def test_arrays_stay_within_the_bound_over_ten_million_events():
    values = np.array(ten_million())
    sums = eep.sliding(eep.Sum(), 1000).push_many(values)
    means = eep.sliding(eep.Mean(), 1000).push_many(values)
    variances = eep.sliding(eep.Variance(), 1000).push_many(values)
    assert len(sums) == len(values) - 999
    for at in random.Random(8).sample(range(len(sums)), 200):
        run = values[at : at + 1000].tolist()
        exact = math.fsum(run)
        # Within a run of 1000 a sum passes 1000 roundings, each half a unit of what it holds.
        laws.error_is_bounded(float(sums[at]), exact, 1e9, units=500)
        laws.error_is_bounded(float(means[at]), exact / 1000, 1e6, units=500)
        mean = exact / 1000
        spread = math.fsum((v - mean) ** 2 for v in run) / 999
        assert math.isclose(float(variances[at]), spread, rel_tol=laws.REL_TOL)
