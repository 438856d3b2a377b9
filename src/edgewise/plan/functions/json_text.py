"""Read and write JSON as the libraries of the original do.

Reading is lenient: quotes may be single or missing, commas may be too many, and a text that is
no JSON at all is itself. Writing gives numbers Java's digits, and escapes what may not stand in
HTML. Python's own `json` is strict where these are lenient, so the grammar stands here.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any

from edgewise.errors import BadEvent
from edgewise.plan.functions.java_maps import ordered
from edgewise.plan.functions.java_text import from_units, shortest, show, show_double

DEPTH_MAX = 200  # objects and arrays inside each other
_NUMBER = re.compile(r"-?\d+(\.\d+)?([eE][+-]?\d+)?")
_BLANKS = " \t\r\n"
_WORDS: dict[str, Any] = {"true": True, "false": False, "null": None, "NaN": math.nan}
_ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_HTML = {c: f"\\u{ord(c):04x}" for c in "<>&='\u2028\u2029"}
_ESCAPED = {
    '"': '\\"',
    "\\": "\\\\",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
}


def parse(text: str, *, hashed: bool = False) -> Any:
    """A lenient reading; objects keep their order, or have that of a hash map."""
    return _Reader(text, hashed=hashed).read()


def parse_strict(text: str) -> Any:
    """Plain JSON, with single quotes at most."""
    try:
        return json.loads(text)
    except ValueError:
        found = parse(text)
    if not isinstance(found, dict | list):
        raise BadEvent(f"'{text}' is no JSON")
    return found


class _Reader:
    def __init__(self, text: str, *, hashed: bool) -> None:
        self.text, self.at, self.hashed, self.depth = text, 0, hashed, 0

    def read(self) -> Any:
        return self._value("")

    def _fail(self) -> BadEvent:
        return BadEvent(f"'{self.text}' is no JSON at character {self.at}")

    def _skip(self, more: str = "") -> str:
        while self.at < len(self.text) and self.text[self.at] in _BLANKS + more:
            self.at += 1
        return self.text[self.at : self.at + 1]

    def _value(self, stops: str) -> Any:
        char = self._skip()
        self.depth += 1
        if self.depth > DEPTH_MAX:
            raise BadEvent(f"JSON is nested deeper than {DEPTH_MAX}")
        try:
            if char == "{":
                return self._object()
            if char == "[":
                return self._array()
            if char and char in "\"'":
                return self._quoted(char)
            return self._bare(stops)
        finally:
            self.depth -= 1

    def _object(self) -> dict[str, Any]:
        self.at += 1
        found: dict[str, Any] = {}
        while True:
            char = self._skip(",")
            if char == "}":
                self.at += 1
                return ordered(found) if self.hashed else found
            if not char:
                raise self._fail()
            key = self._quoted(char) if char in "\"'" else self._until(":}")
            if self._skip() != ":":
                raise self._fail()
            self.at += 1
            found[key] = self._value(",}")
            if self._skip() not in {",", "}"}:
                raise self._fail()

    def _array(self) -> list[Any]:
        self.at += 1
        found: list[Any] = []
        while True:
            char = self._skip(",")
            if char == "]":
                self.at += 1
                return found
            if not char:
                raise self._fail()
            found.append(self._value(",]"))
            if self._skip() not in {",", "]"}:
                raise self._fail()

    def _until(self, stops: str) -> str:
        start = self.at
        while self.at < len(self.text) and self.text[self.at] not in stops:
            self.at += 1
        return self.text[start : self.at].strip(_BLANKS)

    def _bare(self, stops: str) -> Any:
        start = self.at
        text = self._until(stops)
        if stops and not text and self.at >= len(self.text):
            self.at = start
            raise self._fail()
        if text in _WORDS:
            return _WORDS[text]
        if _NUMBER.fullmatch(text):
            return float(text) if set(text) & set(".eE") else int(text)
        return text

    def _quoted(self, quote: str) -> str:
        self.at += 1
        out: list[str] = []
        while True:
            char = self.text[self.at : self.at + 1]
            self.at += 1
            if not char:
                raise self._fail()
            if char == quote:
                return from_units("".join(out))
            if char == "\\":
                char = self._escape()
            out.append(char)

    def _escape(self) -> str:
        char = self.text[self.at : self.at + 1]
        self.at += 1
        if char == "u":
            digits = self.text[self.at : self.at + 4]
            self.at += 4
            try:
                return chr(int(digits, 16))
            except ValueError:
                raise self._fail() from None
        return _ESCAPES.get(char, char)


def write(value: Any) -> str:
    """As Gson writes: nulls shown, HTML escaped."""
    return _write(value, html=True)


def _write(value: Any, *, html: bool) -> str:
    if isinstance(value, str):
        return _write_text(value, html=html)
    if isinstance(value, float) and not math.isfinite(value):
        raise BadEvent("JSON has no NaN and no infinite number")
    if isinstance(value, dict):
        parts = (
            f"{_write_text(show(k), html=html)}:{_write(v, html=html)}" for k, v in value.items()
        )
        return "{" + ",".join(parts) + "}"
    if isinstance(value, list | tuple | frozenset):
        return "[" + ",".join(_write(v, html=html) for v in value) + "]"
    return show(value)


def _write_text(text: str, *, html: bool) -> str:
    out = []
    for char in text:
        if char in _ESCAPED:
            out.append(_ESCAPED[char])
        elif char < " ":
            out.append(f"\\u{ord(char):04x}")
        else:
            out.append(_HTML.get(char, char) if html else char)
    return '"' + "".join(out) + '"'


def write_plain(value: Any) -> str:
    """As json-smart writes: slashes escaped."""
    return _write(value, html=False).replace("/", "\\/")


def write_compact(value: Any) -> str:
    """As org.json writes: whole numbers without a fraction, `</` escaped."""
    if isinstance(value, float):
        if not math.isfinite(value):
            raise BadEvent("JSON has no NaN and no infinite number")
        text = show_double(shortest(value))
        return text if "E" in text else text.rstrip("0").rstrip(".")
    if isinstance(value, str):
        return _write_text(value, html=False).replace("</", "<\\/")
    if isinstance(value, dict):
        parts = (
            f"{_write_text(show(k), html=False)}:{write_compact(v)}" for k, v in value.items()
        )
        return "{" + ",".join(parts) + "}"
    if isinstance(value, list | tuple | frozenset):
        return "[" + ",".join(map(write_compact, value)) + "]"
    return show(value)
