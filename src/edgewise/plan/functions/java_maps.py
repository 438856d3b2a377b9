"""Keep Java's collections: equality by type, and the order in which a HashMap is walked.

Maps are dicts whose order is that of Java's HashMap, so that keys, JSON and XML come out as in
the original; lists are lists. Functions give a new collection and change none: two events, two
engines and a state store may share one.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable
from typing import Any, TypeVar

from edgewise.plan.functions.java_text import string_hash

_Key = TypeVar("_Key")
_TABLE_LEAST = 16


def is_same(left: Any, right: Any) -> bool:
    """`equals`: values of two types are never equal, NaN is equal to itself."""
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(is_same, left, right))
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(is_same(v, right[k]) for k, v in left.items())
    if type(left) is not type(right):
        return False
    if isinstance(left, float) and math.isnan(left):
        return math.isnan(right)
    return bool(left == right)


def has(values: Iterable[Any], wanted: Any) -> bool:
    return any(is_same(value, wanted) for value in values)


def hash_of(value: Any) -> int:
    """`hashCode`, as an unsigned int."""
    if value is None:
        return 0
    if isinstance(value, bool):
        return 1231 if value else 1237
    if isinstance(value, int):
        return (
            (value ^ value >> 32) & 0xFFFFFFFF if value.bit_length() > 31 else value & 0xFFFFFFFF
        )
    if isinstance(value, float):
        bits = int.from_bytes(struct.pack(">d", value))
        return (bits ^ bits >> 32) & 0xFFFFFFFF
    return string_hash(str(value))


def in_map_order(keys: Iterable[_Key]) -> list[_Key]:
    """The order in which Java walks a hash map that these keys were put into, in this order."""
    held = list(keys)
    size = _TABLE_LEAST
    while len(held) > size * 3 // 4:  # a map doubles when it is three quarters full
        size *= 2

    def bucket(key: _Key) -> int:
        code = hash_of(key)
        return (code ^ code >> 16) & size - 1

    return sorted(held, key=bucket)


def ordered(values: dict[Any, Any]) -> dict[Any, Any]:
    """The same map in the order of Java's HashMap."""
    return {key: values[key] for key in in_map_order(values)}
