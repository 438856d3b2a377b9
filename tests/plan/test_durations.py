import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgewise.lang.parse.app import parse_expression
from edgewise.lang.report import Report
from edgewise.lang.source import SourceText
from edgewise.plan.durations import format_duration, parse_duration


@given(st.integers(0, 10**12))
def test_a_spelled_time_is_a_legal_literal_of_the_same_length(ms):
    assert parse_expression(Report(SourceText(format_duration(ms)))).ms == ms


@pytest.mark.parametrize("ms", [1, 999, 60_000, 90_061_001])
def test_durations_are_read_as_they_are_written(ms):
    assert parse_duration(format_duration(ms)) == ms
