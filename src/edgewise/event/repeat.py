"""What an operator does when it is fed again: the scale on which queries are classed.

Recovery builds on it (`ha/recovery.py`), the plan derives it (`plan/rules/repeat.py`).
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from types import MappingProxyType


class Repeat(enum.IntEnum):
    """A query is as good as its worst operator; each level has all that those below it have."""

    ARBITRARY = 0
    DETERMINISTIC = 1
    CONVERGENT = 2
    REPEATABLE = 3

    @property
    def meaning(self) -> str:
        return _MEANINGS[self]


_MEANINGS: Mapping[Repeat, str] = MappingProxyType(
    {
        Repeat.ARBITRARY: "may depend on more than its input: a clock, a die, the outside",
        Repeat.DETERMINISTIC: "same state and same input give the same rows",
        Repeat.CONVERGENT: "and it forgets: from an empty state it comes to give the same rows",
        Repeat.REPEATABLE: "and it has no state: each row depends on its own event only",
    }
)
