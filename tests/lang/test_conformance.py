"""Every app of the conformance set is planned, or refused, as it says."""

import re

import pytest
from tests.support.conformance_cases import cases, problem, problems
from tests.support.conformance_gaps import ACCEPTED, UNPLANNED

pytestmark = pytest.mark.skipif(not cases("siddhi_cases"), reason="no conformance set here")


@pytest.mark.parametrize("name", ["siddhi_cases", "generated"])
def test_legal_apps_are_planned(name):
    refused = {case["id"]: problem(case) for case in cases(name)}
    refused = {i: text for i, text in refused.items() if text}
    known = {case["id"] for case in cases(name)} & set(UNPLANNED)
    assert set(refused) == known, refused


def test_illegal_apps_are_refused_with_a_place():
    accepted = {case["id"] for case in cases("invalid_apps") if not problem(case)}
    assert accepted == set(ACCEPTED)
    for case in cases("invalid_apps"):
        if case["id"] not in ACCEPTED:
            assert "^" in problem(case), case["id"]


def test_an_error_about_a_name_stands_under_that_name():
    for case in cases("invalid_apps"):
        for found in problems(case):
            name = re.search(
                r"there is no [^']*'([^']+)'|'([^']+)' is (?:already|not)", found.message
            )
            if name and "in the quotes" not in found.message:
                line = case["app"].splitlines()[found.span.line - 1]
                start = found.span.column - 1
                assert (name[1] or name[2]) in line[start : start + found.span.length], case["id"]
