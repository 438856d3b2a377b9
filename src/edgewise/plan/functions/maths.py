"""Declare the `math:` functions: Java's `Math` on doubles.

Null in, null out. Outside its domain a function is NaN or infinite, as in Java, never null; what
cannot be parsed drops the event.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from edgewise.errors import BadEvent
from edgewise.event.types import AttrType
from edgewise.plan.functions.java_text import parse_float, parse_real, parse_whole, write_whole
from edgewise.plan.functions.table import (
    BOOL,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    NUMBER,
    STRING,
    TEXT,
    WHOLE,
    Args,
    overloaded,
    scalar,
)

FRACTION = frozenset({FLOAT, DOUBLE})
_BITS = {AttrType.INT: 32, AttrType.LONG: 64}
_LOWEST_EXPONENT, _NO_EXPONENT = -1023, 1024
_FLOAT_EXPONENT_MIN = -126


def real(function: Callable[..., float]) -> Callable[..., float]:
    """A function of doubles that is NaN outside its domain and infinite beyond its range."""

    def body(*values: float) -> float:
        reals = [float(v) for v in values]
        if any(map(math.isnan, reals)):
            return math.nan
        try:
            return float(function(*reals))
        except ValueError:
            return math.nan

    return body


def _grow(function: Callable[[float], float]) -> Callable[[float], float]:
    """Of a function that leaves the range of doubles upwards."""

    def body(value: float) -> float:
        try:
            return function(value)
        except OverflowError:
            return math.inf

    return body


def _sinh(value: float) -> float:
    try:
        return math.sinh(value)
    except OverflowError:
        return math.copysign(math.inf, value)


def _logarithm(function: Callable[[float], float]) -> Callable[[float], float]:
    def body(value: float) -> float:
        return -math.inf if value == 0 else function(value)

    return body


_ln = _logarithm(math.log)


def log(value: float, base: float) -> float:
    """To any base but 1, of which there is none."""
    if base == 1:
        raise BadEvent("math:log has no base 1")
    return divide(real(_ln)(value), real(_ln)(base))


def divide(left: float, right: float) -> float:
    """Java's division of doubles."""
    if right:
        return left / right
    if left == 0 or math.isnan(left):
        return math.nan
    return math.copysign(math.inf, left) * math.copysign(1, right)


def power(base: float, exponent: float) -> float:
    if abs(base) == 1 and math.isinf(exponent):
        return math.nan
    try:
        return math.pow(base, exponent)
    except OverflowError:
        odd = exponent % 2 == 1
        return -math.inf if base < 0 and odd else math.inf
    except ValueError:
        if base != 0:
            return math.nan
        odd = exponent % 2 == 1
        return math.copysign(math.inf, base) if odd else math.inf


def _step(function: Callable[[float], int]) -> Callable[[float], float]:
    """Rounds to a whole double; zero keeps the sign."""

    def body(value: float) -> float:
        if not math.isfinite(value):
            return value
        return math.copysign(float(function(value)), value)

    return body


def _wave(function: Callable[[float], float]) -> Callable[[float], float]:
    def body(value: float) -> float:
        return math.nan if math.isinf(value) else function(value)

    return body


REALS: dict[str, Callable[..., float]] = {
    "abs": abs,
    "acos": math.acos,
    "asin": math.asin,
    "cbrt": math.cbrt,
    "ceil": _step(math.ceil),
    "cos": _wave(math.cos),
    "cosh": _grow(math.cosh),
    "exp": _grow(math.exp),
    "floor": _step(math.floor),
    "ln": _ln,
    "log10": _logarithm(math.log10),
    "log2": lambda value: _ln(value) / math.log(2),
    "sin": _wave(math.sin),
    "sinh": _sinh,
    "sqrt": math.sqrt,
    "tan": _wave(math.tan),
    "tanh": math.tanh,
    "toDegrees": lambda value: value * 180 / math.pi,
    "toRadians": lambda value: value / 180 * math.pi,
}


def _larger(left: float, right: float) -> float:
    if left == right == 0:
        return left if math.copysign(1, left) > 0 else right
    return max(left, right)


def _smaller(left: float, right: float) -> float:
    return -_larger(-left, -right)


REALS_OF_TWO: dict[str, Callable[..., float]] = {
    "atan2": math.atan2,
    "log": log,
    "max": _larger,
    "min": _smaller,
    "power": power,
}


def atan(value: float, *other: float) -> float:
    return math.atan2(value, *other) if other else math.atan(value)


def copy_sign(value: float, sign: float) -> float:
    return math.copysign(value, sign)


def to_base(spec: str) -> Callable[[tuple[AttrType, ...], int], str]:
    """Digits of the two's complement, in the bits of the type."""

    def body(types: tuple[AttrType, ...], value: int) -> str:
        return format(value & (1 << _BITS[types[0]]) - 1, spec)

    return body


def to_hex(types: tuple[AttrType, ...], value: float) -> str:
    """Of whole numbers their bits, of others `Double.toHexString`."""
    if types[0] in _BITS:
        return to_base("x")(types, int(value))
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    head, exponent = float(value).hex().split("p")
    digits = head.rstrip("0") if "." in head else f"{head}."
    scale = int(exponent)
    if types[0] is FLOAT and value and scale < _FLOAT_EXPONENT_MIN:
        shifted = math.ldexp(abs(value), -_FLOAT_EXPONENT_MIN)
        bits = f"{int(math.ldexp(shifted, 24)):06x}".rstrip("0")
        return f"{'-' if value < 0 else ''}0x0.{bits or '0'}p{_FLOAT_EXPONENT_MIN}"
    return f"{digits}{'0' if digits.endswith('.') else ''}p{scale}"


def conv(text: str, source: int, target: int) -> str:
    """A number from one base to another."""
    return write_whole(parse_whole(text, 32, source), target)


def e() -> float:
    return math.e


def pi() -> float:
    return math.pi


def exponent(value: float) -> int:
    if not math.isfinite(value):
        return _NO_EXPONENT
    found = math.frexp(value)[1] - 1 if value else _LOWEST_EXPONENT
    return max(found, _LOWEST_EXPONENT)


def is_infinite(value: float) -> bool:
    return math.isinf(value)


def is_nan(value: float) -> bool:
    return math.isnan(value)


def parse_int(text: str) -> int:
    return parse_whole(text, 32)


def parse_long(text: str) -> int:
    return parse_whole(text, 64)


def rounded(types: tuple[AttrType, ...], value: float) -> int:
    """Half up, within the range of the result; NaN is 0."""
    if math.isnan(value):
        return 0
    bits = 32 if types[0] in {FLOAT, INT} else 64
    low, high = -(1 << bits - 1), (1 << bits - 1) - 1
    if math.isinf(value):
        return high if value > 0 else low
    whole = math.floor(value)
    return max(low, min(high, whole + (value - whole >= 0.5)))


def rounded_type(args: Args) -> AttrType:
    return LONG if args[0].type in {LONG, DOUBLE} else INT


def signum(value: float) -> int:
    return (value > 0) - (value < 0)


FUNCTIONS = (
    *(
        scalar(f"math:{name}", NUMBER, returns=DOUBLE, python=real(function))
        for name, function in REALS.items()
    ),
    *(
        scalar(f"math:{name}", NUMBER, NUMBER, returns=DOUBLE, python=real(function))
        for name, function in REALS_OF_TWO.items()
    ),
    overloaded("math:atan", (NUMBER,), (NUMBER, NUMBER), returns=DOUBLE, python=real(atan)),
    scalar("math:bin", WHOLE, returns=STRING, python=to_base("b"), typed=True),
    scalar("math:conv", TEXT, WHOLE, WHOLE, returns=STRING, python=conv),
    scalar("math:copySign", NUMBER, NUMBER, returns=DOUBLE, python=copy_sign),
    scalar("math:e", returns=DOUBLE, python=e),
    scalar("math:getExponent", NUMBER, returns=INT, python=exponent),
    scalar("math:hex", NUMBER, returns=STRING, python=to_hex, typed=True),
    scalar("math:isInfinite", FRACTION, returns=BOOL, python=is_infinite),
    scalar("math:isNan", FRACTION, returns=BOOL, python=is_nan),
    scalar("math:oct", WHOLE, returns=STRING, python=to_base("o"), typed=True),
    scalar("math:parseDouble", TEXT, returns=DOUBLE, python=parse_real),
    scalar("math:parseFloat", TEXT, returns=FLOAT, python=parse_float),
    scalar("math:parseInt", TEXT, returns=INT, python=parse_int),
    scalar("math:parseLong", TEXT, returns=LONG, python=parse_long),
    overloaded("math:pi", (), returns=DOUBLE, python=pi),
    scalar("math:rand", WHOLE, returns=DOUBLE, optional=1),
    scalar("math:round", NUMBER, returns=rounded_type, python=rounded, typed=True),
    scalar("math:signum", NUMBER, returns=INT, python=signum),
)
