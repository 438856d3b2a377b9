"""Java's arithmetic and SiddhiQL's null results, as functions that generated code calls.

Only what Python cannot say in one expression lives here; additions and comparisons are inlined by
`exprs`. Every function takes values that are not null.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Iterable
from typing import TypeVar

from edgewise.event.types import AttrType
from edgewise.plan.functions import java_text

_c_float = ctypes.c_float
_Key = TypeVar("_Key")


def f32(value: float) -> float:
    """The nearest float32, as a Python float."""
    return _c_float(value).value


def wrap32(value: int) -> int:
    return (value + 0x80000000 & 0xFFFFFFFF) - 0x80000000


def wrap64(value: int) -> int:
    return (value + 0x8000000000000000 & 0xFFFFFFFFFFFFFFFF) - 0x8000000000000000


def idiv(left: int, right: int) -> int | None:
    """Truncates toward zero; null by zero. The caller wraps (only MIN / -1 needs it)."""
    if right == 0:
        return None
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


def irem(left: int, right: int) -> int | None:
    """The sign follows the dividend; null by zero."""
    if right == 0:
        return None
    rest = abs(left) % abs(right)
    return -rest if left < 0 else rest


def fdiv(left: float, right: float) -> float | None:
    return left / right if right else None


def frem(left: float, right: float) -> float | None:
    if not right:
        return None
    if math.isinf(left) or left != left:  # noqa: PLR0124  NaN is the value unequal to itself
        return math.nan
    return math.fmod(left, right)


def to_int(value: float) -> int:
    """A narrowing cast: NaN is 0, the rest saturates at the ends of int."""
    return _narrow(value, 32) if isinstance(value, float) else wrap32(value)


def to_long(value: float) -> int:
    return _narrow(value, 64) if isinstance(value, float) else wrap64(value)


def _narrow(value: float, bits: int) -> int:
    if value != value:  # noqa: PLR0124  NaN
        return 0
    low, high = -(1 << bits - 1), (1 << bits - 1) - 1
    if math.isinf(value):
        return high if value > 0 else low
    return max(low, min(high, int(value)))


def text(value: object) -> str:
    """How Java writes a value: `true`, `1.0`, `1.0E10`."""
    return java_text.show(value, AttrType.DOUBLE)


def key_text(values: Iterable[object]) -> str:
    """Values as Java joins them to a key; a number that a float can hold is written as one."""
    return "".join(java_text.show(v) for v in values)


def map_order(keys: Iterable[_Key], spelled: Callable[[_Key], str] = str) -> list[_Key]:
    """The order in which Java walks a hash map that these keys were put into, in this order."""
    held = list(keys)
    size = 16
    while len(held) > size * 3 // 4:  # a map doubles when it is three quarters full
        size *= 2

    def bucket(key: _Key) -> int:
        code = java_text.string_hash(spelled(key))
        return (code ^ code >> 16) & size - 1

    return sorted(held, key=bucket)
