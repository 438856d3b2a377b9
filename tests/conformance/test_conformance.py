"""No case fails that is not in the list of exceptions. The cases live beside the project."""

import json

import pytest
from tests.conformance.__main__ import EXCEPTIONS, run_case
from tests.conformance.compare import same, same_rows

CASES = EXCEPTIONS.parents[3] / "shared" / "conformance"


def failures(name):
    path = CASES / name
    if not path.exists():
        pytest.skip(f"no {path}")
    cases = [c for c in json.loads(path.read_text()) if not c.get("engine_quirk")]
    return {c["id"] for c in cases if run_case("embedded", c)}


def test_generated_apps_give_the_rows_of_the_original():
    assert failures("generated.json") <= set(json.loads(EXCEPTIONS.read_text()))


@pytest.mark.slow
def test_the_suite_of_the_original_passes():
    assert failures("siddhi_cases.json") <= set(json.loads(EXCEPTIONS.read_text()))


def test_floats_are_compared_as_floats_and_doubles_closely():
    assert same(34.4, 34.400001525878906, "float")
    assert same(1.0, 1.0 + 1e-12, "double")
    assert not same(1.0, 1.001, "double")
    assert not same(True, 1, "bool")


def test_order_counts_where_it_is_said_to():
    one, two = [[1], [2]], [[2], [1]]
    assert not same_rows(one, two, [], ordered=True)
    assert same_rows(one, two, [], ordered=False)
