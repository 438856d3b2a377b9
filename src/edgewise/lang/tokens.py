"""Define the tokens of SiddhiQL.

A keyword is legal as a name everywhere, so the lexer does not tell them apart: a word is a word,
and the parser decides by its place. `KEYWORDS` only serves hints and the formatter.
"""

from __future__ import annotations

import enum
from typing import NamedTuple

from edgewise.lang.source import At


class Kind(enum.Enum):
    """The value is what an error calls it."""

    WORD = "a name"
    QUOTED = "a quoted name"
    INT = "an int"
    LONG = "a long"
    FLOAT = "a float"
    DOUBLE = "a double"
    STRING = "a string"
    SCRIPT = "a function body"
    OP = "a sign"
    BROKEN = "a broken string"
    END = "the end of the app"


class Token(NamedTuple):
    """`value` is the text that counts: without quotes; `word` is its lower case for keywords."""

    kind: Kind
    value: str
    start: int
    end: int
    word: str = ""

    @property
    def at(self) -> At:
        return self.start, self.end


_KEYWORD_TEXT = """
    app stream define function trigger table from partition window select group by order limit
    offset asc desc having insert delete update set return events into output expired current
    snapshot for raw of as at or and in on is not within with begin end null every last all first
    join inner outer right left full unidirectional false true string int long float double bool
    object aggregation aggregate per
"""
KEYWORDS = frozenset(_KEYWORD_TEXT.split())

# Milliseconds of each unit, largest first: the order in which a time literal is written.
UNITS_MS = {
    "year": 31_556_900_000,
    "month": 2_630_000_000,
    "week": 604_800_000,
    "day": 86_400_000,
    "hour": 3_600_000,
    "min": 60_000,
    "sec": 1_000,
    "millisec": 1,
}
UNIT_ORDER = tuple(UNITS_MS)
UNIT_WORDS = {
    **{unit: unit for unit in UNITS_MS},
    **{f"{unit}s": unit for unit in ("year", "month", "week", "day", "hour")},
    "minute": "min",
    "minutes": "min",
    "second": "sec",
    "seconds": "sec",
    "millisecond": "millisec",
    "milliseconds": "millisec",
}
