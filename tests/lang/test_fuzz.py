"""A short walk of the fuzzer on every run, the long one behind the slow marker."""

import random

import pytest
from tests.lang.fuzz import INPUTS, MAKERS, big, feed, run


def test_a_thousand_inputs_are_plans_or_errors():
    run(1_000)


def test_the_same_seed_makes_the_same_inputs():
    for maker in MAKERS:
        assert maker(random.Random(5)) == maker(random.Random(5))


@pytest.mark.slow
def test_a_million_inputs_are_plans_or_errors():
    run(INPUTS)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_a_megabyte_is_read_in_time(seed):
    feed(big(random.Random(seed)))
