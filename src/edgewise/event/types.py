"""Define the seven attribute types of SiddhiQL and their numeric promotion."""

from __future__ import annotations

import enum


class AttrType(enum.Enum):
    """The value is the word in the language."""

    STRING = "string"
    INT = "int"
    LONG = "long"
    FLOAT = "float"
    DOUBLE = "double"
    BOOL = "bool"
    OBJECT = "object"


# Promotion picks the later of two: any double makes double, else any float, else any long.
NUMERIC = (AttrType.INT, AttrType.LONG, AttrType.FLOAT, AttrType.DOUBLE)

INT_MIN, INT_MAX = -(2**31), 2**31 - 1
LONG_MIN, LONG_MAX = -(2**63), 2**63 - 1


def promote(left: AttrType, right: AttrType) -> AttrType:
    return NUMERIC[max(NUMERIC.index(left), NUMERIC.index(right))]
