"""Declare the `regex:` functions: Java's regular expressions.

A null expression drops the event; a null text matches nothing.
"""

from __future__ import annotations

from edgewise.errors import BadEvent
from edgewise.plan.functions.java_regex import compile_pattern, has_pattern
from edgewise.plan.functions.java_text import to_units
from edgewise.plan.functions.table import BOOL, STRING, TEXT, WHOLE, scalar


def _expression(pattern: str | None) -> str:
    if pattern is None:
        raise BadEvent("the regular expression is null")
    return pattern


def find(pattern: str | None, text: str | None, *start: int | None) -> bool:
    compiled = compile_pattern(_expression(pattern))
    if text is None or None in start:
        return False
    at = start[0] if start else 0
    assert at is not None
    units = to_units(text)
    if not 0 <= at <= len(units):
        raise BadEvent(f"there is no character {at} in '{text}'")
    if len(units) != len(text):  # characters before it, not units
        at = len(units[:at].encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace"))
    return compiled.search(text, at) is not None


def group(pattern: str, text: str, number: int) -> str | None:
    found = compile_pattern(pattern).search(text)
    if found is None or number > found.re.groups:
        return None
    if number < 0:
        raise BadEvent(f"there is no group {number}")
    return found[number]


def looking_at(pattern: str | None, text: str | None) -> bool:
    compiled = compile_pattern(_expression(pattern))
    return text is not None and compiled.match(text) is not None


def matches(pattern: str | None, text: str | None) -> bool:
    compiled = compile_pattern(_expression(pattern))
    return text is not None and compiled.fullmatch(text) is not None


FUNCTIONS = (
    scalar(
        "regex:find", TEXT, TEXT, WHOLE, returns=BOOL, optional=1, python=find, takes_null=True,
        rule=has_pattern(0),
    ),
    scalar(
        "regex:group", TEXT, TEXT, WHOLE, returns=STRING, python=group, drops_null=True,
        rule=has_pattern(0),
    ),
    scalar(
        "regex:lookingAt", TEXT, TEXT, returns=BOOL, python=looking_at, takes_null=True,
        rule=has_pattern(0),
    ),
    scalar(
        "regex:matches", TEXT, TEXT, returns=BOOL, python=matches, takes_null=True,
        rule=has_pattern(0),
    ),
)  # fmt: skip
