"""Declare the `json:` functions: JSONPath over texts and objects.

A null or unreadable JSON drops the event, a path that leads to nothing is null.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, TypeVar

from edgewise.errors import BadEvent
from edgewise.plan.functions import json_path, json_text
from edgewise.plan.functions.java_text import parse_float, parse_real, parse_whole, show
from edgewise.plan.functions.table import (
    ANY,
    BOOL,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    OBJECT,
    STRING,
    TEXT,
    TRUTH,
    scalar,
)

JSON = frozenset({STRING, OBJECT})
_Number = TypeVar("_Number", int, float)


def _document(source: Any) -> Any:
    if not isinstance(source, str):
        return source
    if not source:
        raise BadEvent("an empty text is no JSON")
    return json_text.parse(source)


def _read(source: Any, path: str) -> Any:
    document = _document(source)
    if document is None:
        raise BadEvent("null has no JSON paths")
    return json_path.read(document, path)


def _find(source: Any, path: str) -> Any:
    """One value, null where there is none or where there are several."""
    try:
        found = _read(source, path)
    except json_path.MissingPath:
        return None
    if isinstance(found, list):
        return found[0] if len(found) == 1 else None
    return found


def get_bool(source: Any, path: str) -> bool | None:
    return {"true": True, "false": False}.get(show(_find(source, path)).lower())


def get_int(source: Any, path: str) -> int | None:
    return _parsed(lambda text: parse_whole(text, 32), _find(source, path))


def get_long(source: Any, path: str) -> int | None:
    return _parsed(lambda text: parse_whole(text, 64), _find(source, path))


def get_float(source: Any, path: str) -> float | None:
    return _parsed(parse_float, _find(source, path))


def get_double(source: Any, path: str) -> float | None:
    return _parsed(parse_real, _find(source, path))


def _parsed(parse: Callable[[str], _Number], value: Any) -> _Number | None:
    if value is None:
        return None
    try:
        return parse(show(value, DOUBLE))
    except BadEvent:
        return None


def get_object(source: Any, path: str) -> Any:
    try:
        found = _read(source, path)
    except json_path.MissingPath:
        return None
    return found[0] if isinstance(found, list) and len(found) == 1 else found


def get_string(source: Any, path: str) -> str | None:
    try:
        found = _read(source, path)
    except json_path.MissingPath:
        return None
    return found if found is None or isinstance(found, str) else json_text.write(found)


def is_exists(source: Any, path: str) -> bool:
    try:
        _read(source, path)
    except json_path.MissingPath:
        return False
    return True


def set_element(source: Any, path: str, element: Any, *key: str) -> Any:
    """Adds to a list, puts by key into an object, else takes the place of what is there."""
    document = copy.deepcopy(_document(source))
    try:
        found = json_path.read(document, path)
    except json_path.MissingPath:
        return document
    if isinstance(found, list):
        for holder, name in json_path.find_elements(document, path):
            if isinstance(holder[name], list):
                holder[name].append(_element(element))
        return document
    if key:
        for holder, name in json_path.find_elements(document, path):
            if isinstance(holder[name], dict):
                holder[name][key[0]] = _element(element)
        return document
    for holder, name in json_path.find_elements(document, path):
        if holder and holder[name] is not document:
            holder[name] = element
    return document


def _element(element: Any) -> Any:
    """A text that is an object or a list is read; its numbers are fractions, as there."""
    if not isinstance(element, str):
        return element
    try:
        found = json_text.parse(element)
    except BadEvent as why:
        raise BadEvent(f"'{element}' is no JSON") from why
    return _as_fractions(found) if isinstance(found, dict | list) else element


def _as_fractions(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _as_fractions(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_as_fractions(v) for v in value]
    return float(value) if type(value) is int else value


def to_object(text: str) -> Any:
    try:
        return json_text.parse(text, hashed=True)
    except BadEvent:
        return None


def to_string(value: Any, *escape: bool | None) -> str:
    if escape and (value is None or escape[0] is None):
        raise BadEvent("json:toString: an argument is null")
    text = json_text.write(value)
    return json_text.write(text) if escape and escape[0] else text


FUNCTIONS = (
    *(
        scalar(f"json:{name}", JSON, TEXT, returns=returns, python=body, drops_null=True)
        for name, returns, body in (
            ("getBool", BOOL, get_bool),
            ("getDouble", DOUBLE, get_double),
            ("getFloat", FLOAT, get_float),
            ("getInt", INT, get_int),
            ("getLong", LONG, get_long),
            ("getObject", OBJECT, get_object),
            ("getString", STRING, get_string),
            ("isExists", BOOL, is_exists),
        )
    ),
    scalar(
        "json:setElement", JSON, TEXT, ANY, TEXT,
        returns=OBJECT, optional=1, python=set_element, drops_null=True,
    ),
    scalar("json:toObject", TEXT, returns=OBJECT, python=to_object, drops_null=True),
    scalar(
        "json:toString", ANY, TRUTH, returns=STRING, optional=1, python=to_string, takes_null=True
    ),
)  # fmt: skip
