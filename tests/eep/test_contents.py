import numpy as np
import pytest

from edgewise import eep


def test_the_most_frequent_come_first():
    assert eep.TopK(2).of("abcbcc") == ["c", "b"]
    assert eep.Distinct().of("abcbcc") == 3


def test_a_percentile_is_a_share():
    assert eep.Percentile(0.5).of([3, 1, 2]) == 2
    with pytest.raises(ValueError, match="between 0 and 1"):
        eep.Percentile(90)


def test_first_and_last():
    assert (eep.First().of("abc"), eep.Last().of("abc")) == ("a", "c")


def test_a_function_gets_the_whole_content():
    assert eep.tumbling(eep.Whole(np.sum), 2).push_many([1.0, 2.0, 3.0, 4.0]) == [3.0, 7.0]
