from edgewise import eep


def test_a_sum_loses_nothing_to_rounding():
    assert eep.Sum().of([1e100, 1.0, -1e100]) == 1.0


def test_a_variance_of_one_value_is_not_there():
    assert eep.Variance().of([3.0]) is None
    assert eep.StdDev().of([1.0, 3.0]) == 2**0.5
