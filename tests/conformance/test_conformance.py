"""No case fails that is not in the list of exceptions. The cases live beside the project."""

import contextlib
import json

import pytest
from tests.conformance.__main__ import EXCEPTIONS, known, run_case
from tests.conformance.compare import differences, same, same_rows
from tests.conformance.engines import Outcome, Rows

from edgewise.engines.embedded import InMemoryEngine
from edgewise.errors import EdgewiseError
from edgewise.lang import compile_app
from edgewise.plan.functions import FUNCTIONS
from edgewise.plan.streamcalls import STREAM_FUNCTIONS
from edgewise.plan.windows import WINDOWS

SPACES = frozenset({
    "json", "map", "list", "regex", "unique", "reorder", "str", "math", "time", "env",
    "unitconversion", "extrema", "timeseries", "approximate", "geo", "stats", "streamingml",
})  # fmt: skip
CASES = EXCEPTIONS.parents[3] / "shared" / "conformance"


def failures(name):
    path = CASES / name
    if not path.exists():
        pytest.skip(f"no {path}")
    cases = [c for c in json.loads(path.read_text()) if not c.get("engine_quirk")]
    return {c["id"] for c in cases if run_case(c)}


def test_generated_apps_give_the_rows_of_the_original():
    assert failures("generated.json") <= set(known("embedded"))


def test_functions_give_the_values_of_the_original():
    assert failures("functions.json") <= set(known("embedded"))


def test_apps_that_the_original_refuses_are_refused_or_accepted_for_a_reason():
    accepted = json.loads(EXCEPTIONS.read_text())["accepted"]
    path = CASES / "functions_invalid.json"
    if not path.exists():
        pytest.skip(f"no {path}")
    taken = set()
    for case in json.loads(path.read_text()):
        with contextlib.suppress(EdgewiseError):
            InMemoryEngine(compile_app(case["app"]).app)
            taken.add(case["id"].split("/")[1])
    assert taken == set(accepted)


def test_every_extension_is_here_or_is_missing_for_a_reason():
    path = CASES / "siddhi_extensions.json"
    if not path.exists():
        pytest.skip(f"no {path}")
    known_names = {name.lower() for name in (*FUNCTIONS, *WINDOWS, *STREAM_FUNCTIONS)}
    absent = {
        f"{space}:{name}"
        for space, found in json.loads(path.read_text()).items()
        for name in found
        if space in SPACES and f"{space}:{name}".lower() not in known_names
    }
    assert absent == set(json.loads(EXCEPTIONS.read_text())["missing"])


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


def test_maps_are_compared_by_the_text_of_their_keys():
    assert same({"1": "one"}, {1: "one"}, None)
    assert not same({"1": "one"}, {1: 1}, None)
    assert not same({"1": 1}, [1], None)


def test_lists_in_hash_order_are_compared_as_sets():
    case = {
        "asserted_stream_or_query": {"type": "query", "name": "q"},
        "expected": [[["a", "b"]]],
        "expected_types": [None],
        "row_order": "ordered",
        "features": [],
    }

    def outcome():
        return Outcome(queries={"q": Rows(current=[[["b", "a"]]])})

    assert differences(case, outcome())
    assert not differences({**case, "features": ["hash_order"]}, outcome())
