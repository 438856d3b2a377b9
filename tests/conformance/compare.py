"""Rows against rows: floats as float32, doubles to 1e-9, order where it matters."""

from __future__ import annotations

import ctypes
import math
from typing import Any

from tests.conformance.engines import Case, Outcome, Rows

ANSWER_WIDTH_MAX = 64  # answers carry no types: their numbers are compared as floats


def same(expected: Any, found: Any, kind: str | None) -> bool:
    if isinstance(expected, bool) or isinstance(found, bool):
        return expected is found
    if isinstance(expected, int | float) and isinstance(found, int | float):
        if kind == "float":
            return ctypes.c_float(expected).value == ctypes.c_float(found).value or math.isclose(
                expected, found, rel_tol=1e-6
            )
        if isinstance(expected, float) or isinstance(found, float):
            if ctypes.c_float(expected).value == found:
                return True  # a float attribute holds floats, whatever was sent into it
            return math.isclose(expected, found, rel_tol=1e-9, abs_tol=1e-9)
        return expected == found
    if isinstance(expected, list) and isinstance(found, list | tuple | frozenset):
        return len(expected) == len(found) and all(
            same(e, f, kind) for e, f in zip(expected, found, strict=True)
        )
    return bool(expected == found)


def same_row(expected: list[Any], found: list[Any], kinds: list[str | None]) -> bool:
    if len(expected) != len(found):
        return False
    kinds = (kinds + [None] * len(expected))[: len(expected)]
    return all(same(e, f, k) for e, f, k in zip(expected, found, kinds, strict=True))


def same_rows(expected: Any, found: Any, kinds: list[str | None], *, ordered: bool) -> bool:
    if expected is None or found is None:
        return bool(expected == found)
    if len(expected) != len(found):
        return False
    if ordered:
        return all(same_row(e, f, kinds) for e, f in zip(expected, found, strict=True))
    rest = list(found)
    for row in expected:
        match = next((i for i, f in enumerate(rest) if same_row(row, f, kinds)), None)
        if match is None:
            return False
        del rest[match]
    return True


def differences(case: Case, outcome: Outcome) -> list[str]:
    """What is wrong, in words; nothing when the case passes."""
    found: list[str] = []
    asserted = case["asserted_stream_or_query"]
    if asserted:
        rows = outcome.of(asserted["type"], asserted["name"])
        found += _check(case, case, rows)
    for other in case.get("other_outputs") or ():
        found += _check(case, other, outcome.of(other["type"], other["name"]))
    answers = case.get("query_results")
    if answers is not None:
        ok = len(answers) == len(outcome.answers) and all(
            same_rows(a, f, ["float"] * ANSWER_WIDTH_MAX, ordered=False)
            for a, f in zip(answers, outcome.answers, strict=True)
        )
        if not ok:
            found.append(f"answers: expected {answers}, found {outcome.answers}")
    return found


def _check(case: Case, wanted: Case, rows: Rows) -> list[str]:
    if "expected" not in wanted:
        counts = (case["expected_count_in"], case["expected_count_removed"])
        seen = (len(rows.current), len(rows.expired))
        return [] if counts == seen else [f"counts: expected {counts}, found {seen}"]
    kinds = wanted.get("expected_types") or []
    ordered = case["row_order"] == "ordered"
    found = []
    for what, expected, seen in (
        ("current", wanted["expected"], rows.current),
        ("expired", wanted.get("expected_removed", []), rows.expired),
    ):
        if not same_rows(expected, seen, kinds, ordered=ordered):
            found.append(f"{what}: expected {expected}, found {seen}")
    return found
