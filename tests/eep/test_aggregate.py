import numpy as np
import pytest

from edgewise import eep
from edgewise.eep.aggregate import sliding_fold


def test_your_own_in_four_lines():
    class Product(eep.Aggregate):
        def init(self):
            return 1

        def accumulate(self, state, value):
            return state * value

        def compensate(self, state, value):
            return state / value

        def emit(self, state):
            return state

    assert eep.sliding(Product(), 2).push_many([2.0, 3.0, 4.0]) == [6.0, 12.0]


def test_all_at_once():
    found = eep.Stats().of([1.0, 2.0, 3.0])
    assert (found["count"], found["sum"], found["min"], found["max"]) == (3, 6.0, 1.0, 3.0)
    assert (found["mean"], found["variance"], found["stddev"]) == (2.0, 1.0, 1.0)


def test_the_most_frequent_come_first():
    assert eep.TopK(2).of("abcbcc") == ["c", "b"]
    assert eep.Distinct().of("abcbcc") == 3


def test_a_percentile_is_a_share():
    assert eep.Percentile(0.5).of([3, 1, 2]) == 2
    with pytest.raises(ValueError, match="between 0 and 1"):
        eep.Percentile(90)


def test_a_sum_loses_nothing_to_rounding():
    assert eep.Sum().of([1e100, 1.0, -1e100]) == 1.0


@pytest.mark.parametrize("n", [1, 2, 3, 7, 10, 11])
def test_a_sliding_fold_equals_folding_each_run(n):
    values = np.array([5, 3, 8, 1, 9, 2, 2, 7, 4, 6], dtype=float)
    wanted = [values[i : i + n].min() for i in range(10 - n + 1)]
    assert sliding_fold(np.minimum, values, n).tolist() == wanted
