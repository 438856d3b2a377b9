"""Rows against rows: floats as float32, doubles to 1e-9, the rest exactly, each in its own type.

Order counts where the case says so; the moment a row came out counts where the case carries it
and the engine tells it.
"""

from __future__ import annotations

import math
from typing import Any

from tests.conformance.engines import Case, Kinds, Outcome, Rows

from edgewise.event.values import round_to_float32
from edgewise.plan.functions import java_text

DOUBLE_TOLERANCE = 1e-9
_TYPES = {"string": str, "bool": bool, "int": int, "long": int, "float": float, "double": float}


def same(expected: Any, found: Any, kind: str | None) -> bool:
    """`kind` is the type of the column; without one the expected value shows it.

    So it does where it cannot be of that type: the original takes any value for any attribute.
    """
    if expected is None or found is None:
        return expected is found
    if isinstance(expected, list):
        return _same_list(expected, found)
    if isinstance(expected, dict):
        return _same_map(expected, found)
    if not _may_be(expected, kind):
        kind = None
    wanted = _TYPES.get(kind or "", type(expected))
    if type(found) is not wanted:
        return False
    if wanted is not float:
        return bool(expected == found)
    if math.isnan(expected) or math.isnan(found):
        return math.isnan(expected) and math.isnan(found)
    if kind == "float":
        return round_to_float32(expected) == round_to_float32(found)
    return math.isclose(expected, found, rel_tol=DOUBLE_TOLERANCE, abs_tol=DOUBLE_TOLERANCE)


def _may_be(expected: Any, kind: str | None) -> bool:
    """Whether a value of this type is written so; a fraction may be written without one."""
    wanted = _TYPES.get(kind or "")
    return type(expected) is wanted or (wanted is float and type(expected) is int)


def _same_list(expected: list[Any], found: Any) -> bool:
    if isinstance(found, frozenset):
        return same_rows([[e] for e in expected], [[f] for f in found], [None], ordered=False)
    return (
        isinstance(found, list | tuple)
        and len(expected) == len(found)
        and all(same(e, f, None) for e, f in zip(expected, found, strict=True))
    )


def _same_map(expected: dict[str, Any], found: Any) -> bool:
    """Keys are written as text in a case."""
    if not isinstance(found, dict):
        return False
    spelled = {java_text.show(key): value for key, value in found.items()}
    return expected.keys() == spelled.keys() and all(
        same(value, spelled[key], None) for key, value in expected.items()
    )


def same_row(expected: list[Any], found: list[Any], kinds: Kinds) -> bool:
    if not len(expected) == len(found) == len(kinds):
        return False
    return all(same(e, f, k) for e, f, k in zip(expected, found, kinds, strict=True))


def same_rows(expected: Any, found: Any, kinds: Kinds, *, ordered: bool) -> bool:
    if expected is None or found is None:
        return expected is found
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


def _sort_lists(case: Case) -> Case:
    """A case whose lists came in the order of a hash map: each is compared as a set."""
    parts = {
        k: [_sorted_list(row) for row in case.get(k) or []]
        for k in ("expected", "expected_removed")
    }
    return {**case, **parts}


def _sorted_list(row: list[Any]) -> list[Any]:
    return [sorted(v, key=repr) if isinstance(v, list) else v for v in row]


def differences(case: Case, outcome: Outcome) -> list[str]:
    """What is wrong, in words; nothing when the case passes."""
    found: list[str] = []
    if "hash_order" in case.get("features", ()):
        case, outcome = _sort_lists(case), outcome.sorted_lists(_sorted_list)
    ordered = case["row_order"] == "ordered"
    asserted = case["asserted_stream_or_query"]
    if asserted:
        rows = outcome.of(asserted["type"], asserted["name"])
        found += _check(case, case, rows, case.get("expected_types") or [])
    for other in case.get("other_outputs") or ():
        rows = outcome.of(other["type"], other["name"])
        found += _check(case, other, rows, rows.kinds)
    answers = case.get("query_results")
    if answers is not None:
        ok = len(answers) == len(outcome.answers) and all(
            same_rows(a, f.current, f.kinds, ordered=ordered)
            for a, f in zip(answers, outcome.answers, strict=True)
        )
        if not ok:
            found.append(f"answers: expected {answers}, found {outcome.answers}")
    return found


def _check(case: Case, wanted: Case, rows: Rows, kinds: Kinds) -> list[str]:
    if "expected" not in wanted:
        counts = (case["expected_count_in"], case["expected_count_removed"])
        seen = (len(rows.current or ()), len(rows.expired))
        return [] if counts == seen else [f"counts: expected {counts}, found {seen}"]
    ordered = case["row_order"] == "ordered"
    found = []
    for what, part, seen, moments in (
        ("current", "expected", rows.current, rows.current_at),
        ("expired", "expected_removed", rows.expired, rows.expired_at),
    ):
        expected, due = wanted.get(part, []), wanted.get(f"{part}_at_ms")
        if not same_rows(expected, seen, kinds, ordered=ordered):
            found.append(f"{what}: expected {expected}, found {seen}")
        elif due is not None and moments is not None and not _same_moments(due, moments, ordered):
            found.append(f"{what}: expected at {due}, came at {moments}")
    return found


def _same_moments(due: list[int], found: list[int], ordered: bool) -> bool:
    return due == found if ordered else sorted(due) == sorted(found)
