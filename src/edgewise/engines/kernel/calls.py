"""Scalar functions. Each takes plain values, null included, and gives a plain value.

`FUNCTIONS` maps the name in the language, in lower case, to the Python function; generated code
calls them as `fn.<name>`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from edgewise.engines.kernel import java
from edgewise.event.types import AttrType


def single(value: float | None) -> float | None:
    return None if value is None else java.f32(value)


def coalesce(*values: Any) -> Any:
    return next((v for v in values if v is not None), None)


def default(value: Any, instead: Any) -> Any:
    return instead if value is None else value


def maximum(*values: Any) -> Any:
    return max((v for v in values if v is not None), default=None)


def minimum(*values: Any) -> Any:
    return min((v for v in values if v is not None), default=None)


def cast(value: Any, kind: str) -> Any:
    """The value itself: a cast tells the compiler its type and changes nothing."""
    del kind
    return value


def convert(value: Any, kind: str) -> Any:
    """A value in another type, null where it cannot be."""
    if value is None:
        return None
    return _CONVERSIONS[kind.lower()](value)


def _to_whole(narrow: Callable[[Any], int]) -> Callable[[Any], int | None]:
    def convert_one(value: Any) -> int | None:
        if isinstance(value, str):
            try:
                return narrow(int(value))
            except ValueError:
                return None
        return int(value) if isinstance(value, bool) else narrow(value)

    return convert_one


def _to_real(narrow: Callable[[float], float]) -> Callable[[Any], float | None]:
    def convert_one(value: Any) -> float | None:
        try:
            return narrow(float(value))
        except ValueError:
            return None

    return convert_one


def _to_bool(value: Any) -> bool:
    return value.lower() == "true" if isinstance(value, str) else bool(value == 1)


_CONVERSIONS: dict[str, Callable[[Any], Any]] = {
    "string": java.text,
    "int": _to_whole(java.to_int),
    "long": _to_whole(java.to_long),
    "float": _to_real(java.f32),
    "double": _to_real(float),
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


def pol2cart(theta: float, rho: float, *z: float) -> tuple[float, ...]:
    """Adds x and y, and z where it was given."""
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
