"""A short walk of the fuzzer on every run, the long one behind the slow marker."""

import random

import pytest
from tests.lang.fuzz import INPUTS, MAKERS, SECONDS_PER_MB_MAX, feed, run
from tests.support.large_texts import SHAPES, megabyte


def test_a_thousand_inputs_are_plans_or_errors():
    run(1_000)


def test_the_same_seed_makes_the_same_inputs():
    for maker in MAKERS:
        assert maker(random.Random(5)) == maker(random.Random(5))


@pytest.mark.slow
def test_a_million_inputs_are_plans_or_errors():
    run(INPUTS)


@pytest.mark.parametrize("shape", SHAPES)
def test_ten_thousand_characters_of_any_shape_are_a_plan_or_an_error(shape):
    feed(megabyte(shape, size=10_000))


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
def test_a_megabyte_is_read_in_time(shape):
    assert feed(megabyte(shape)) < SECONDS_PER_MB_MAX
