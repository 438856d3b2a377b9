import numpy as np
import pytest

from edgewise import eep
from edgewise.eep.aggregate import fold_sliding


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


@pytest.mark.parametrize("n", [1, 2, 3, 7, 10, 11])
def test_a_sliding_fold_equals_folding_each_run(n):
    values = np.array([5, 3, 8, 1, 9, 2, 2, 7, 4, 6], dtype=float)
    wanted = [values[i : i + n].min() for i in range(10 - n + 1)]
    assert fold_sliding(np.minimum, values, n).tolist() == wanted
