"""Classify operators by what they do when they process the same events again.

Recovery builds on it (`ha/recovery.py`), the plan derives it (`plan/rules/repeatability.py`).
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from types import MappingProxyType


class RepeatLevel(enum.IntEnum):
    """A query has the level of its lowest operator; each level includes those below it."""

    ARBITRARY = 0
    DETERMINISTIC = 1
    CONVERGENT = 2
    REPEATABLE = 3

    @property
    def meaning(self) -> str:
        return _MEANINGS[self]


_MEANINGS: Mapping[RepeatLevel, str] = MappingProxyType(
    {
        RepeatLevel.ARBITRARY: "may depend on more than its input: a clock, chance, the outside",
        RepeatLevel.DETERMINISTIC: "same state and same input give the same rows",
        RepeatLevel.CONVERGENT: "and from an empty state it comes to give the same rows",
        RepeatLevel.REPEATABLE: "and it has no state: each row depends on its own event only",
    }
)
