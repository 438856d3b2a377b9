import math

import pytest
from tests.support.kernel_runs import data

from edgewise.kernel.operators import turning_points

HEAD = "define stream A (v double);"


def found(call, values):
    query = f"from A#{call} select v, extremaType insert into O;"
    return data(query, [("A", 1000 + i, float(v)) for i, v in enumerate(values)], HEAD)


def test_an_extreme_has_values_that_differ_before_and_after_it():
    values = [10, 20, 10, 5, 12]
    assert (
        found("extrema:minMax(v, 4, 4, 1, 2, 'max')", values) == [(20.0, "max"), (12.0, "max")][:1]
    )
    assert (5.0, "min") in found("extrema:minMax(v, 4, 4, 1, 2, 'minmax')", values)


def test_a_kernel_finds_the_top_of_a_wave():
    wave = [10 + 5 * math.sin(i / 3) for i in range(40)]
    tops = [v for v, kind in found("extrema:kernelMinMax(v, 3.0, 17, 'max')", wave)]
    assert tops
    assert all(v > 14 for v in tops)
    assert found("timeseries:kernelMinMax(v, 3.0, 17, 'max')", wave)


def test_a_kalman_filter_finds_the_bottom_of_a_wave():
    wave = [10 + 5 * math.sin(i / 8) for i in range(160)]
    bottoms = [v for v, _ in found("extrema:kalmanMinMax(v, 0.1, 0.1, 45, 'min')", wave)]
    assert bottoms
    assert all(v < 6 for v in bottoms)


def test_smoothing_keeps_a_constant():
    assert turning_points.gaussian_smooth([2.0] * 5, 3.0) == pytest.approx([2.0] * 5)
    assert turning_points.kalman_smooth([2.0] * 50, 0.1, 0.1)[-1] == pytest.approx(2.0)


def test_the_last_extreme_is_found():
    assert turning_points.find_extreme([1, 3, 1, 2, 1], 1, 1, largest=True) == 3
    assert turning_points.find_extreme([3, 1, 3], 1, 1, largest=False) == 1
    assert turning_points.find_extreme([1, 2], 1, 1, largest=True) is None
