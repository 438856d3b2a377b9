"""Bodies of the `math:` functions. Null in, null out; what has no value is null too."""

from __future__ import annotations

import math
from collections.abc import Callable

DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


def real(function: Callable[..., float]) -> Callable[..., float | None]:
    """A function of reals that is null outside its domain."""

    def body(*values: float) -> float | None:
        try:
            return float(function(*(float(v) for v in values)))
        except (ValueError, OverflowError, ZeroDivisionError):
            return None

    return body


def cbrt(value: float) -> float:
    return math.copysign(abs(value) ** (1 / 3), value)


def log(value: float, base: float) -> float:
    return math.log(value) / math.log(base)


REALS: dict[str, Callable[..., float]] = {
    "acos": math.acos,
    "asin": math.asin,
    "atan": math.atan,
    "atan2": math.atan2,
    "cbrt": cbrt,
    "ceil": math.ceil,
    "copySign": math.copysign,
    "cos": math.cos,
    "cosh": math.cosh,
    "exp": math.exp,
    "floor": math.floor,
    "ln": math.log,
    "log": log,
    "log10": math.log10,
    "log2": math.log2,
    "power": math.pow,
    "sin": math.sin,
    "sinh": math.sinh,
    "sqrt": math.sqrt,
    "tan": math.tan,
    "tanh": math.tanh,
    "toDegrees": math.degrees,
    "toRadians": math.radians,
}


def absolute(value: float) -> float:
    return abs(value)


def to_bin(value: int) -> str:
    return f"{value & 0xFFFFFFFFFFFFFFFF:b}" if value < 0 else f"{value:b}"


def to_hex(value: int) -> str:
    return f"{value & 0xFFFFFFFFFFFFFFFF:x}" if value < 0 else f"{value:x}"


def to_oct(value: int) -> str:
    return f"{value & 0xFFFFFFFFFFFFFFFF:o}" if value < 0 else f"{value:o}"


def conv(text: str, source: int, target: int) -> str | None:
    """A number from one base to another."""
    if not (2 <= source <= 36 and 2 <= target <= 36):
        return None
    try:
        value = int(text, source)
    except ValueError:
        return None
    digits = ""
    rest = abs(value)
    while rest:
        rest, digit = divmod(rest, target)
        digits = DIGITS[digit] + digits
    return ("-" if value < 0 else "") + (digits or "0")


def e() -> float:
    return math.e


def pi() -> float:
    return math.pi


def exponent(value: float) -> int:
    return math.frexp(value)[1] - 1


def is_infinite(value: float) -> bool:
    return math.isinf(value)


def is_nan(value: float) -> bool:
    return math.isnan(value)


def larger(left: float, right: float) -> float:
    return max(left, right)


def smaller(left: float, right: float) -> float:
    return min(left, right)


def parse_whole(text: str) -> int | None:
    try:
        return int(text)
    except ValueError:
        return None


def parse_real(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def rounded(value: float) -> int | None:
    """Half up, as the original."""
    return math.floor(value + 0.5) if math.isfinite(value) else None


def signum(value: float) -> int:
    return (value > 0) - (value < 0)
