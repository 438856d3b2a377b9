"""No case fails that is not in the list of exceptions. The cases live beside the project."""

import json

import pytest
from tests.conformance.__main__ import EXCEPTIONS, known, run_case
from tests.conformance.compare import same, same_rows

CASES = EXCEPTIONS.parents[3] / "shared" / "conformance"


def failures(name):
    path = CASES / name
    if not path.exists():
        pytest.skip(f"no {path}")
    cases = [c for c in json.loads(path.read_text()) if not c.get("engine_quirk")]
    return {c["id"] for c in cases if run_case(c)}


def test_generated_apps_give_the_rows_of_the_original():
    assert failures("generated.json") <= set(known("embedded"))


@pytest.mark.slow
def test_the_suite_of_the_original_passes():
    assert failures("siddhi_cases.json") <= set(known("embedded"))


def test_floats_are_compared_as_floats_and_doubles_closely():
    assert same(34.4, 34.400001525878906, "float")
    assert not same(34.4, 34.40001, "float")
    assert same(1.0, 1.0 + 1e-12, "double")
    assert not same(34.4, 34.400001525878906, "double")


def test_a_value_is_of_the_type_of_its_column():
    assert same(5, 5, "long")
    assert same(5, 5.0, "double")
    assert not same(5, 5.0, "long")
    assert not same(5, 5, "double")
    assert not same(True, 1, "bool")
    assert not same("5", 5, "string")
    assert not same(None, 0, "int")


def test_a_value_that_cannot_be_of_its_column_is_compared_as_what_it_is():
    assert same(True, True, "double")
    assert same("90.3", "90.3", "double")
    assert not same(True, 1.0, "double")


def test_without_a_type_the_expected_value_shows_it():
    assert same(5, 5, None)
    assert not same(5, 5.0, None)
    assert same([1, 2], (1, 2), None)
    assert same([1, 2], frozenset({2, 1}), None)


def test_order_counts_where_it_is_said_to():
    one, two = [[1], [2]], [[2], [1]]
    assert not same_rows(one, two, ["int"], ordered=True)
    assert same_rows(one, two, ["int"], ordered=False)


def test_a_row_of_another_width_is_another_row():
    assert not same_rows([[1, None]], [[1]], ["int"], ordered=True)


def test_the_moment_a_row_came_counts():
    case = {
        "app": "define stream S (v int); @info(name='q') from S#window.timeBatch(1 sec) "
        "select v insert into O;",
        "clock": "virtual",
        "steps": [{"send": "S", "data": [1], "at_ms": 0}, {"sleep_ms": 1500}],
        "asserted_stream_or_query": {"type": "query", "name": "q"},
        "expected": [[1]],
        "expected_removed": [],
        "expected_types": ["int"],
        "expected_at_ms": [1000],
        "expected_removed_at_ms": [],
        "row_order": "ordered",
        "id": "ours",
    }
    assert not run_case(case)
    assert run_case({**case, "expected_at_ms": [1001]})
