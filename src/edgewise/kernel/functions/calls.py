"""Scalar functions. Each takes plain values, null included, and gives a plain value.

`FUNCTIONS` maps the name in the language, in lower case, to the Python function; generated code
calls them as `fn.<name>`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from edgewise.errors import BadEvent
from edgewise.event.types import AttrType
from edgewise.kernel.functions import java
from edgewise.plan.functions import java_text


def single(value: float | None) -> float | None:
    return None if value is None else java.f32(value)


def truth(value: Any) -> bool:
    """What a call that is a bool gives: null is false."""
    if value is None:
        return False
    if not isinstance(value, bool):
        raise BadEvent(f"{value!r} is no bool")
    return value


def coalesce(*values: Any) -> Any:
    return next((v for v in values if v is not None), None)


def default(value: Any, instead: Any) -> Any:
    return instead if value is None else value


def maximum(*values: Any) -> Any:
    return max(_numbers(values), default=None)


def minimum(*values: Any) -> Any:
    return min(_numbers(values), default=None)


def _numbers(values: tuple[Any, ...]) -> list[Any]:
    """Those that are there; NaN is neither more nor less than another."""
    there = [v for v in values if v is not None]
    numbers = [v for v in there if v == v]  # noqa: PLR0124
    return numbers or there


def cast(value: Any, kind: str) -> Any:
    """The value itself: a cast tells the compiler its type and changes nothing."""
    del kind
    return value


def convert(value: Any, kind: str) -> Any:
    """A value in another type, null where it cannot be."""
    if value is None:
        return None
    return _CONVERSIONS[kind.lower()](value)


def _to_whole(bits: int, narrow: Callable[[Any], int]) -> Callable[[Any], int | None]:
    def convert_one(value: Any) -> int | None:
        if isinstance(value, str):
            try:
                return java_text.parse_whole(value, bits)
            except BadEvent:
                return None
        return int(value) if isinstance(value, bool) else narrow(value)

    return convert_one


def _to_real(
    parse: Callable[[str], float], narrow: Callable[[float], float]
) -> Callable[[Any], float | None]:
    def convert_one(value: Any) -> float | None:
        if isinstance(value, str):
            try:
                return parse(value)
            except BadEvent:
                return None
        return narrow(float(value))

    return convert_one


def _to_bool(value: Any) -> bool:
    return value.lower() == "true" if isinstance(value, str) else bool(value == 1)


_CONVERSIONS: dict[str, Callable[[Any], Any]] = {
    "string": java.text,
    "int": _to_whole(32, java.to_int),
    "long": _to_whole(64, java.to_long),
    "float": _to_real(java_text.parse_float, java.f32),
    "double": _to_real(java_text.parse_real, float),
    "bool": _to_bool,
    "object": lambda value: value,
}


def create_set(value: Any) -> frozenset[Any]:
    return frozenset((value,))


def size_of_set(value: Any) -> int | None:
    return None if value is None else len(value)


def instance_of_string(value: Any) -> bool:
    return isinstance(value, str)


def instance_of_integer(value: Any) -> bool:
    return type(value) is int


def instance_of_double(value: Any) -> bool:
    return isinstance(value, float)


def instance_of_boolean(value: Any) -> bool:
    return isinstance(value, bool)


def pol2cart(theta: float | None, rho: float | None, *z: float) -> tuple[float, ...]:
    """Adds x and y, and z where it was given."""
    if theta is None or rho is None:
        raise BadEvent("pol2Cart: an argument is null")
    angle = math.radians(theta)
    return rho * math.cos(angle), rho * math.sin(angle), *z


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "coalesce": coalesce,
    "default": default,
    "maximum": maximum,
    "minimum": minimum,
    "cast": cast,
    "convert": convert,
    "createset": create_set,
    "sizeofset": size_of_set,
    "instanceofstring": instance_of_string,
    "instanceofinteger": instance_of_integer,
    "instanceoflong": instance_of_integer,
    "instanceoffloat": instance_of_double,
    "instanceofdouble": instance_of_double,
    "instanceofboolean": instance_of_boolean,
}

# Where the type of the argument is known, so is the answer.
INSTANCE_OF = {
    "instanceofstring": AttrType.STRING,
    "instanceofinteger": AttrType.INT,
    "instanceoflong": AttrType.LONG,
    "instanceoffloat": AttrType.FLOAT,
    "instanceofdouble": AttrType.DOUBLE,
    "instanceofboolean": AttrType.BOOL,
}

STREAM_FUNCTIONS: dict[str, Callable[..., tuple[Any, ...]]] = {"pol2cart": pol2cart}
