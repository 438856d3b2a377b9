"""Write and read values as Java does: text of numbers, whole numbers, UTF-16 strings.

Functions of the original show what Java's own methods show (`1.0E-5`, lengths in UTF-16 units,
parse errors where Python is lenient), so each rule stands here once. Used by the bodies of
functions and by the kernel.
"""

from __future__ import annotations

import math
import re
from array import array
from collections.abc import Mapping
from decimal import Decimal

from edgewise.errors import BadEvent
from edgewise.event.types import AttrType
from edgewise.event.values import round_to_float32

FLOAT_DIGITS_MAX = 9  # decimal digits that always tell two 32-bit floats apart
BASES = range(2, 37)
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
_REAL = re.compile(
    r"[+-]?(NaN|Infinity|((\d+\.?\d*|\.\d+)([eE][+-]?\d+)?)[fFdD]?"
    r"|0[xX]([0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?\d+[fFdD]?)",
    re.ASCII,
)


def show(value: object, kind: AttrType | None = None) -> str:
    """A value as `String.valueOf` writes it; the type tells a float from a double.

    Without a type, as inside a collection, a number that a 32-bit float can hold is written as
    one: a double that is none has the same digits either way.
    """
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        if kind is AttrType.DOUBLE:
            return show_double(value)
        return show_double(shortest(value))
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{show(k)}={show(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list | tuple | set | frozenset):
        return "[" + ", ".join(show(v) for v in value) + "]"
    return str(value)


def show_double(value: float) -> str:
    """`Double.toString`."""
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if math.isnan(value):
        return "NaN"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        plain = format(value, "f") if "e" in repr(value) else repr(value)
        return plain.rstrip("0") + "0" if plain.endswith(".") else plain
    exact = Decimal(repr(value))  # the shortest digits that are this number
    digits = "".join(map(str, exact.as_tuple().digits)).rstrip("0")
    sign = "-" if value < 0 else ""
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{exact.adjusted()}"


def shortest(value: float) -> float:
    """The shortest decimal that is the same 32-bit float; the value itself where it is none."""
    if not math.isfinite(value):
        return value
    try:
        if round_to_float32(value) != value:
            return value
    except OverflowError:
        return value
    digits = (float(format(value, f".{n}g")) for n in range(1, FLOAT_DIGITS_MAX + 1))
    return next((short for short in digits if _is_same_float(short, value)), value)


def _is_same_float(short: float, value: float) -> bool:
    try:
        return round_to_float32(short) == value
    except OverflowError:
        return False


def parse_whole(text: str, bits: int, base: int = 10) -> int:
    """`Integer.parseInt` and `Long.parseLong`: no blanks, no underscores, within the range."""
    digits = text[1:] if text[:1] in {"+", "-"} else text
    if base not in BASES or not digits:
        raise BadEvent(f"'{text}' is no whole number to base {base}")
    value = 0
    for char in digits:
        digit = _DIGITS.find(char.lower()) if char.isascii() else _unicode_digit(char)
        if not 0 <= digit < base:
            raise BadEvent(f"'{text}' is no whole number to base {base}")
        value = value * base + digit
    value = -value if text[0] == "-" else value
    if not -(1 << bits - 1) <= value < 1 << bits - 1:
        raise BadEvent(f"'{text}' does not fit {bits} bits")
    return value


def _unicode_digit(char: str) -> int:
    return int(char) if char.isdecimal() else -1


def write_whole(value: int, base: int) -> str:
    """`Integer.toString(value, base)`: a base out of range is 10."""
    base = base if base in BASES else 10
    digits = ""
    rest = abs(value)
    while rest:
        rest, digit = divmod(rest, base)
        digits = _DIGITS[digit] + digits
    return ("-" if value < 0 else "") + (digits or "0")


def parse_real(text: str) -> float:
    """`Double.parseDouble`: blanks around it, a suffix and hexadecimal digits are legal."""
    plain = text.strip("".join(map(chr, range(33))))
    if not _REAL.fullmatch(plain):
        raise BadEvent(f"'{text}' is no number")
    if "x" in plain or "X" in plain:
        return float.fromhex(plain.rstrip("fFdD") if "p" in plain.lower() else plain)
    return float(plain if plain[-1] in "Ny" else plain.rstrip("fFdD"))


def parse_float(text: str) -> float:
    """`Float.parseFloat`: what is too large is infinite."""
    value = parse_real(text)
    try:
        return round_to_float32(value)
    except OverflowError:
        return math.copysign(math.inf, value)


def to_units(text: str) -> str:
    """The text with one character for each UTF-16 unit."""
    if text.isascii() or max(text) <= "\uffff":
        return text
    return "".join(map(chr, array("H", text.encode("utf-16-le", "surrogatepass"))))


def from_units(units: str) -> str:
    """The text again; a half of a pair stays a half."""
    if units.isascii():
        return units
    return units.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def string_hash(text: str) -> int:
    """`String.hashCode`, as an unsigned int."""
    found = 0
    for unit in to_units(text):
        found = (31 * found + ord(unit)) & 0xFFFFFFFF
    return found
