"""Convert a value from outside to the type of an attribute, or say why that is not possible.

It never rounds silently except to single precision, which `float` means. Replay and apps
that run in process use it.
"""

from __future__ import annotations

import struct
import sys
from typing import Any

from edgewise.errors import BadEvent
from edgewise.event.schema import Attribute, Schema
from edgewise.event.types import INT_MAX, INT_MIN, LONG_MAX, LONG_MIN, AttrType

_FLOAT = struct.Struct("<f")
DOUBLE_MAX = sys.float_info.max
FLOAT_MAX = 3.4028234663852886e38
SHOWN_MAX = 80  # characters of what is no event, in the message
_RANGES = {AttrType.INT: (INT_MIN, INT_MAX), AttrType.LONG: (LONG_MIN, LONG_MAX)}


def round_to_float32(value: float) -> float:
    """The nearest single-precision number, as a Python float."""
    rounded: float = _FLOAT.unpack(_FLOAT.pack(value))[0]
    return rounded


def convert_value(value: Any, wanted: AttrType) -> Any:
    """Convert `value` to `wanted`; null stays null. ValueError says why it cannot be."""
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
            return _to_floating(value, wanted)
    raise ValueError(f"must be {wanted.value}, got {_name_type(value)}")


def _to_floating(value: float, wanted: AttrType) -> float:
    if not abs(value) <= DOUBLE_MAX:  # also false for NaN
        raise ValueError("must be a finite number")
    value = float(value)
    if wanted is AttrType.DOUBLE:
        return value
    if abs(value) > FLOAT_MAX:
        raise ValueError(f"{value} does not fit float")
    return round_to_float32(value)


def _name_type(value: Any) -> str:
    names = {str: "string", bool: "bool", int: "a whole number", float: "a fraction"}
    return names.get(type(value), "a nested value")


def convert_row(event: Any, schema: Schema, index: int) -> tuple[Any, ...]:
    """An event, a tuple of values or a dict by name, as the values of its stream in order.

    BadEvent with the attribute and the reason where it does not fit; `index` names the event.
    """
    if isinstance(event, dict):
        event = _order_values(event, schema, index)
    elif not isinstance(event, tuple):
        kind, shown = type(event).__name__, repr(event)[:SHOWN_MAX]
        raise BadEvent(
            f"an event is a tuple of values or a dict by name, not {kind}: {shown}", index=index
        )
    if len(event) != len(schema.attributes):
        wanted = len(schema.attributes)
        raise BadEvent(f"'{schema.name}' has {wanted} attributes, got {len(event)}", index=index)
    pairs = zip(event, schema.attributes, strict=True)
    return tuple([_convert_attribute(value, attribute, index) for value, attribute in pairs])


def _order_values(event: dict[str, Any], schema: Schema, index: int) -> tuple[Any, ...]:
    unknown = [name for name in event if schema.index(name) < 0]
    if unknown:
        raise BadEvent(
            f"'{schema.name}' has no such attribute", index=index, field=str(unknown[0])
        )
    missing = [name for name in schema.names if name not in event]
    if missing:
        raise BadEvent("is missing", index=index, field=missing[0])
    return tuple([event[name] for name in schema.names])


def _convert_attribute(value: Any, attribute: Attribute, index: int) -> Any:
    try:
        return convert_value(value, attribute.type)
    except ValueError as error:
        raise BadEvent(str(error), index=index, field=attribute.name) from None
