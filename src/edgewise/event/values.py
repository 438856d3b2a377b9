"""A value from outside as the typed value an attribute holds, or the reason why it cannot be."""

from __future__ import annotations

import struct
import sys
from typing import Any

from edgewise.event.types import INT_MAX, INT_MIN, LONG_MAX, LONG_MIN, AttrType

_FLOAT = struct.Struct("<f")
DOUBLE_MAX = sys.float_info.max
FLOAT_MAX = 3.4028234663852886e38
_RANGES = {AttrType.INT: (INT_MIN, INT_MAX), AttrType.LONG: (LONG_MIN, LONG_MAX)}


def float32(value: float) -> float:
    """The nearest single-precision number, as a Python float."""
    rounded: float = _FLOAT.unpack(_FLOAT.pack(value))[0]
    return rounded


def typed(value: Any, wanted: AttrType) -> Any:
    """`value` as `wanted`; null stays null. ValueError says what is wrong with it."""
    if value is None or wanted is AttrType.OBJECT:
        return value
    match wanted:
        case AttrType.STRING if isinstance(value, str):
            return value
        case AttrType.BOOL if isinstance(value, bool):
            return value
        case AttrType.INT | AttrType.LONG if type(value) is int:
            low, high = _RANGES[wanted]
            if not low <= value <= high:
                raise ValueError(f"{value} does not fit {wanted.value} ({low} to {high})")
            return value
        case AttrType.FLOAT | AttrType.DOUBLE if type(value) in {int, float}:
            return _floating(value, wanted)
    raise ValueError(f"must be {wanted.value}, got {_name(value)}")


def _floating(value: float, wanted: AttrType) -> float:
    if not abs(value) <= DOUBLE_MAX:  # also false for NaN
        raise ValueError("must be a finite number")
    value = float(value)
    if wanted is AttrType.DOUBLE:
        return value
    if abs(value) > FLOAT_MAX:
        raise ValueError(f"{value} does not fit float")
    return float32(value)


def _name(value: Any) -> str:
    names = {str: "string", bool: "bool", int: "a whole number", float: "a fraction"}
    return names.get(type(value), "a nested value")
