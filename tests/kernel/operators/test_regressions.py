import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.kernel_runs import data

from edgewise.kernel.operators import regressions

HEAD = "define stream A (y double, x double, z double);"
NOISE = (0.1, -0.2, 0.15, 0.05, -0.1, 0.2, -0.15, 0.0)


def line(n):
    return [
        ("A", 1000 + 10 * i, 2 + 3 * i + NOISE[i % 8], float(i), float(i * i)) for i in range(n)
    ]


def last(call, n=12):
    return data(f"from A#timeseries:{call} select * insert into O;", line(n), HEAD)[-1][3:]


def test_a_line_is_found():
    error, intercept, slope = last("regress(y, x)")
    assert (intercept, slope) == (pytest.approx(2, abs=0.3), pytest.approx(3, abs=0.1))
    assert 0 < error < 0.3


def test_what_is_not_significant_is_zero():
    _, _, slope, square = last("regress(1, 100, 0.95, y, x, z)")
    assert slope == pytest.approx(3, abs=0.1)
    assert square == 0


def test_a_line_says_what_comes_next_and_what_is_far_from_it():
    assert last("forecast(1, 100, 0.95, x + 5, y, x)")[-1] == pytest.approx(2 + 3 * 16, abs=1)
    assert last("outlier(1, 100, 0.95, 50, y, x)")[-1] is False
    assert last("outlier(1, 100, 0.95, 0, y, x)")[-1] is True


def test_points_are_forgotten_by_time_and_number():
    assert last("lengthTimeRegress(50, 100, y, x)")[2] == pytest.approx(3, abs=0.4)
    assert last("lengthTimeForecast(50, 100, x + 1, 1, 0.9, y, x)")[-1] == pytest.approx(38, abs=2)
    assert last("lengthTimeOutlier(50, 100, 50, y, x)")[-1] is False


def test_a_line_is_fitted_at_every_nth_event():
    query = "from A#timeseries:regress(3, 100, 0.95, y, x) select x insert into O;"
    assert [row[0] for row in data(query, line(7), HEAD)] == [2.0, 5.0]


@given(st.floats(0, 50), st.integers(1, 60))
def test_students_tail_is_a_probability_that_falls(t, freedom):
    tail = regressions.student_tail(t, freedom)
    assert -1e-12 <= tail <= 1 + 1e-12
    assert regressions.student_tail(t + 1, freedom) <= tail + 1e-12


@pytest.mark.parametrize(
    ("t", "freedom", "tail"), [(12.706, 1, 0.05), (2.228, 10, 0.05), (0, 5, 1)]
)
def test_students_tail_is_that_of_the_tables(t, freedom, tail):
    assert regressions.student_tail(t, freedom) == pytest.approx(tail, abs=1e-4)


def test_too_few_points_give_zeros():
    assert regressions.fit([(1.0, 2.0)], 0.95) == [0.0, 0.0, 0.0]
    assert all(map(math.isnan, regressions.fit([(1.0, 2.0)] * 4, 0.95)))
