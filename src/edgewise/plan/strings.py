"""Bodies of the `str:` functions. Null in, null out; indexes count from 0."""

from __future__ import annotations

import re
from functools import lru_cache

PATTERNS_MAX = 256  # compiled regular expressions kept


@lru_cache(maxsize=PATTERNS_MAX)
def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(text)


def char_at(text: str, index: int) -> str | None:
    return text[index] if 0 <= index < len(text) else None


def coalesce(*texts: str | None) -> str | None:
    return next((t for t in texts if t is not None), None)


def concat(*values: object) -> str:
    return "".join(_plain(v) for v in values)


def _plain(value: object) -> str:
    """As the original prints it: bools in lower case, null as a word."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def contains(text: str, part: str) -> bool:
    return part in text


def equals_ignore_case(left: str, right: str) -> bool:
    return left.casefold() == right.casefold()


def fill_template(template: str, *values: object) -> str:
    """`{{1}}` is the first value."""
    for place, value in enumerate(values, start=1):
        template = template.replace(f"{{{{{place}}}}}", _plain(value))
    return template


def to_hex(text: str) -> str:
    return text.encode().hex()


def from_hex(text: str) -> str | None:
    try:
        return bytes.fromhex(text).decode()
    except ValueError:
        return None


def length(text: str) -> int:
    return len(text)


def locate(text: str, part: str, start: int = 0) -> int:
    return text.find(part, start)


def lower(text: str) -> str:
    return text.lower()


def upper(text: str) -> str:
    return text.upper()


def regexp(text: str, pattern: str) -> bool:
    return _pattern(pattern).fullmatch(text) is not None


def repeat(text: str, times: int) -> str:
    return text * times


def replace_all(text: str, pattern: str, replacement: str) -> str:
    return _pattern(pattern).sub(_java(replacement), text)


def replace_first(text: str, pattern: str, replacement: str) -> str:
    return _pattern(pattern).sub(_java(replacement), text, count=1)


def _java(replacement: str) -> str:
    r"""`$1` is how the original writes a group, `\1` how Python does."""
    return re.sub(r"\$(\d)", r"\\\1", replacement)


def reverse(text: str) -> str:
    return text[::-1]


def split(text: str, separator: str, group: int) -> str | None:
    parts = text.split(separator) if separator else [text]
    return parts[group] if 0 <= group < len(parts) else None


def strcmp(left: str, right: str) -> int:
    return (left > right) - (left < right)


def substr(text: str, start: int, count: int | None = None) -> str:
    return text[start:] if count is None else text[start : start + count]


def trim(text: str) -> str:
    return text.strip()
