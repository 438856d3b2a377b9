from hypothesis import given
from hypothesis import strategies as st

from edgewise.edge.metrics.histogram import BOUNDS_MS, Histogram


@given(st.lists(st.floats(0, 59_000), min_size=1), st.floats(0.01, 0.99))
def test_a_quantile_lies_in_the_bucket_of_the_true_one(values, q):
    histogram = Histogram()
    for value in values:
        histogram.add(value)
    true = sorted(values)[min(len(values) - 1, int(q * len(values) - 1e-9))]
    low = max((b for b in (0, *BOUNDS_MS) if b < true), default=0)
    high = next(b for b in BOUNDS_MS if b >= true)
    assert low <= histogram.quantile(q) + 1e-6
    assert histogram.quantile(q) <= high + 1e-6
    assert histogram.count == len(values)
