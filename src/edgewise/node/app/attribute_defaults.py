"""Read `@default(...)` of a stream: values of an attribute for events from before it was added.

    @default(city='unknown', level='0')
    define stream Logins (ip string, city string, level int);

The log keeps the default with its schema: from the next start on the annotation may be removed.
Used wherever a log is opened for writing, and by `load` to check it.
"""

from __future__ import annotations

from typing import Any

from edgewise.errors import Problem
from edgewise.event.types import INT_MAX, INT_MIN, LONG_MAX, LONG_MIN, AttrType
from edgewise.node.app.source_sink_errors import locate_option
from edgewise.plan.nodes import App, Stream

NAME = "default"
_INTEGER_RANGES = {AttrType.INT: (INT_MIN, INT_MAX), AttrType.LONG: (LONG_MIN, LONG_MAX)}


def read_defaults(stream: Stream) -> dict[str, Any]:
    """Values by attribute; ValueError where one does not fit."""
    defaults: dict[str, Any] = {}
    for annotation in stream.annotated(NAME):
        for name, text_value in annotation.pairs:
            index = stream.schema.index(name)
            if index < 0:
                raise ValueError(f"@default: {stream.name} has no attribute '{name}'")
            kind = stream.schema.attributes[index].type
            try:
                defaults[name] = _parse_value(text_value, kind)
            except ValueError:
                raise ValueError(
                    f"@default: {name}='{text_value}' is not a valid {kind.value}"
                ) from None
    return defaults


def _parse_value(text_value: str, kind: AttrType) -> Any:
    if text_value == "null":
        return None
    if kind is AttrType.BOOL:
        if text_value.lower() not in {"true", "false"}:
            raise ValueError(text_value)
        return text_value.lower() == "true"
    if kind in _INTEGER_RANGES:
        low, high = _INTEGER_RANGES[kind]
        if not low <= int(text_value) <= high:
            raise ValueError(text_value)
        return int(text_value)
    return float(text_value) if kind in {AttrType.FLOAT, AttrType.DOUBLE} else text_value


def find_default_errors(app: App, text: str) -> tuple[Problem, ...]:
    """For `check` and everything that loads an app."""
    problems = []
    for stream in app.streams:
        try:
            read_defaults(stream)
        except ValueError as bad:
            problems.append(Problem(locate_option(text, stream.name, NAME, 0, ""), str(bad)))
    return tuple(problems)
