"""Declare the `str:` functions: Java's strings, in UTF-16 units.

A null or bad argument drops the event, as the original throws; the few that answer null
themselves say so in the table.
"""

from __future__ import annotations

from edgewise.errors import BadEvent
from edgewise.event.types import AttrType
from edgewise.plan.functions import java_regex
from edgewise.plan.functions.java_text import from_units, parse_whole, show, to_units
from edgewise.plan.functions.table import (
    ANY,
    BOOL,
    INT,
    LONG,
    STRING,
    TEXT,
    WHOLE,
    Args,
    overloaded,
    same,
    scalar,
)

TEXT_UNITS_MAX = 10_000_000  # of one result; `str:repeat` is refused beyond
_TEMPLATE = r"\{\{|}}"
_HEX_DIGITS = 2


def char_at(text: str, index: int) -> str:
    units = to_units(text)
    if not 0 <= index < len(units):
        raise BadEvent(f"there is no character {index} in '{text}'")
    return units[index]


def char_frequency(text: str, char: str) -> int:
    units, wanted = to_units(text), to_units(char)
    if len(wanted) != 1:
        raise BadEvent(f"str:charFrequency counts one character, not '{char}'")
    return units.count(wanted)


def coalesce(*values: object) -> object:
    return next((v for v in values if v is not None), None)


def concat(types: tuple[AttrType, ...], *values: object) -> str:
    return "".join(show(v, kind) for v, kind in zip(values, types, strict=True) if v is not None)


def contains(text: str | None, part: str | None) -> bool:
    if text is None:
        return False
    if part is None:
        raise BadEvent("str:contains: the second argument is null")
    return part in text


def equals_ignore_case(left: str | None, right: str | None) -> bool:
    """Character by character, so that no letter equals two."""
    if left is None:
        raise BadEvent("str:equalsIgnoreCase: the first argument is null")
    if right is None or len(left) != len(right):
        return False
    return all(map(_is_same_letter, left, right))


def _is_same_letter(left: str, right: str) -> bool:
    if left == right:
        return True
    left, right = _upper(left), _upper(right)
    return left == right or _lower(left) == _lower(right)


def _upper(char: str) -> str:
    found = char.upper()
    return found if len(found) == 1 else char


def _lower(char: str) -> str:
    found = char.lower()
    return found if len(found) == 1 else char


def fill_template(types: tuple[AttrType, ...], template: str | None, *values: object) -> str:
    """`{{1}}` is the first value; with a map, `{{key}}` is the value of that key."""
    if template is None:
        raise BadEvent("str:fillTemplate: the template is null")
    parts = java_regex.split(template, _TEMPLATE)
    given = [template, *values]
    for at in range(1, len(parts), 2):
        name = parts[at].strip("".join(map(chr, range(33))))
        if isinstance(values[0], dict):
            value, kind = values[0].get(name), None
        else:
            index = parse_whole(name, 32)
            if not 0 <= index < len(given):
                raise BadEvent(f"str:fillTemplate has no value {index}")
            value, kind = given[index], types[index]
        if value is not None:
            parts[at] = show(value, kind)
    return "".join(parts)


def to_hex(text: str) -> str:
    """Two digits at least for each unit: the original gives one to a unit below 16."""
    return "".join(f"{ord(unit):02x}" for unit in to_units(text))


def from_hex(text: str) -> str:
    if len(text) % _HEX_DIGITS:
        raise BadEvent(f"'{text}' has an odd number of hexadecimal digits")
    codes = [parse_whole(text[i : i + 2], 32, 16) for i in range(0, len(text), _HEX_DIGITS)]
    if any(code < 0 for code in codes):
        raise BadEvent(f"'{text}' is not hexadecimal")
    return "".join(map(chr, codes))


def length(text: str) -> int:
    return len(to_units(text))


def locate(part: str, text: str, start: int = 0) -> int:
    """Where the first argument begins in the second, -1 where it does not.

    With a start, -1 is counted from there, as the original does.
    """
    units = to_units(text)
    if not 0 <= start <= len(units):
        raise BadEvent(f"there is no character {start} in '{text}'")
    return units[start:].find(to_units(part)) + start


def lower(text: str) -> str:
    return text.lower()


def upper(text: str) -> str:
    return text.upper()


def regexp(text: str, pattern: str) -> bool:
    return java_regex.matches(pattern, text)


def repeat(text: str, times: int) -> str:
    if len(text) * times > TEXT_UNITS_MAX:
        raise BadEvent(f"str:repeat makes no text of more than {TEXT_UNITS_MAX} characters")
    return text * times


def replace_all(text: str, pattern: str, replacement: str) -> str:
    return java_regex.replace(text, pattern, replacement)


def replace_first(text: str, pattern: str, replacement: str) -> str:
    return java_regex.replace(text, pattern, replacement, count=1)


def reverse(text: str) -> str:
    return text[::-1]


def split(text: str, separator: str, index: int) -> str:
    parts = java_regex.split(text, separator)
    if not 0 <= index < len(parts):
        raise BadEvent(f"'{text}' has no part {index} between '{separator}'")
    return parts[index]


def strcmp(left: str, right: str) -> int:
    """The distance of the first units that differ, else of the lengths."""
    first, second = to_units(left), to_units(right)
    for a, b in zip(first, second, strict=False):
        if a != b:
            return ord(a) - ord(b)
    return len(first) - len(second)


def substr(types: tuple[AttrType, ...], text: str, second: str | int, *third: int) -> str | None:
    """By index and length, or what a regular expression finds, or one group of it."""
    if types[1] is STRING:
        found = java_regex.compile_pattern(str(second)).search(text)
        if found is None:
            return ""
        group = third[0] if third else 0
        if not 0 <= group <= found.re.groups:
            raise BadEvent(f"'{second}' has no group {group}")
        return found[group]
    units, begin = to_units(text), int(second)
    end = begin + third[0] if third else len(units)
    if not 0 <= begin <= end <= len(units):
        raise BadEvent(f"'{text}' has no characters {begin} to {end}")
    return from_units(units[begin:end])


def trim(text: str) -> str:
    return text.strip("".join(map(chr, range(33))))


def _template_is_plain(args: Args) -> str:
    if args[1].type is AttrType.OBJECT and len(args) > 2:
        return "a template takes a map, or values; not both"
    return ""


FUNCTIONS = (
    scalar("str:charAt", TEXT, WHOLE, returns=STRING, python=char_at, drops_null=True),
    scalar("str:charFrequency", TEXT, TEXT, returns=LONG, python=char_frequency, drops_null=True),
    scalar(
        "str:coalesce", ANY, returns=same, variadic=True, agree=(), python=coalesce,
        takes_null=True,
    ),
    scalar(
        "str:concat", ANY, ANY, returns=STRING, variadic=True, python=concat, takes_null=True,
        typed=True,
    ),
    scalar("str:contains", TEXT, TEXT, returns=BOOL, python=contains, takes_null=True),
    scalar(
        "str:equalsIgnoreCase", TEXT, TEXT, returns=BOOL, python=equals_ignore_case,
        takes_null=True,
    ),
    scalar(
        "str:fillTemplate", TEXT, ANY, returns=STRING, variadic=True, python=fill_template,
        takes_null=True, typed=True, rule=_template_is_plain,
    ),
    scalar("str:hex", TEXT, returns=STRING, python=to_hex, drops_null=True),
    scalar("str:length", TEXT, returns=INT, python=length, drops_null=True),
    scalar(
        "str:locate", TEXT, TEXT, WHOLE, returns=INT, optional=1, python=locate, drops_null=True
    ),
    scalar("str:lower", TEXT, returns=STRING, python=lower, drops_null=True),
    scalar(
        "str:regexp", TEXT, TEXT, returns=BOOL, python=regexp, drops_null=True,
        rule=java_regex.has_pattern(1),
    ),
    scalar("str:repeat", TEXT, WHOLE, returns=STRING, python=repeat, drops_null=True),
    scalar(
        "str:replaceAll", TEXT, TEXT, TEXT, returns=STRING, python=replace_all, drops_null=True
    ),
    scalar(
        "str:replaceFirst", TEXT, TEXT, TEXT, returns=STRING, python=replace_first,
        drops_null=True,
    ),
    scalar("str:reverse", TEXT, returns=STRING, python=reverse, drops_null=True),
    scalar("str:split", TEXT, TEXT, WHOLE, returns=STRING, python=split, drops_null=True),
    scalar("str:strcmp", TEXT, TEXT, returns=INT, python=strcmp, drops_null=True),
    overloaded(
        "str:substr", (TEXT, WHOLE), (TEXT, WHOLE, WHOLE), (TEXT, TEXT), (TEXT, TEXT, WHOLE),
        returns=STRING, python=substr, drops_null=True, typed=True, rule=java_regex.has_pattern(1),
    ),
    scalar("str:trim", TEXT, returns=STRING, python=trim, drops_null=True),
    scalar("str:unhex", TEXT, returns=STRING, python=from_hex, drops_null=True),
    scalar("str:upper", TEXT, returns=STRING, python=upper, drops_null=True),
)  # fmt: skip
