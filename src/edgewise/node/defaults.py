"""`@default(...)` on a stream: what events from before an attribute was added have for it.

    @default(city='unknown', level='0')
    define stream Logins (ip string, city string, level int);

The log keeps the default with its schema: from the next start on the annotation may go.
"""

from __future__ import annotations

from typing import Any

from edgewise.errors import Problem
from edgewise.event.types import INT_MAX, INT_MIN, LONG_MAX, LONG_MIN, AttrType
from edgewise.node.end_problems import place_of
from edgewise.plan.nodes import App, Stream

NAME = "default"
_WHOLE = {AttrType.INT: (INT_MIN, INT_MAX), AttrType.LONG: (LONG_MIN, LONG_MAX)}


def defaults_of(stream: Stream) -> dict[str, Any]:
    """By attribute; ValueError names what no attribute can have."""
    found: dict[str, Any] = {}
    for annotation in stream.annotated(NAME):
        for name, word in annotation.pairs:
            at = stream.schema.index(name)
            if at < 0:
                raise ValueError(f"@default: {stream.name} has no attribute '{name}'")
            kind = stream.schema.attributes[at].type
            try:
                found[name] = _value(word, kind)
            except ValueError:
                raise ValueError(f"@default: {name}='{word}' is no {kind.value}") from None
    return found


def _value(word: str, kind: AttrType) -> Any:
    if word == "null":
        return None
    if kind is AttrType.BOOL:
        if word.lower() not in {"true", "false"}:
            raise ValueError(word)
        return word.lower() == "true"
    if kind in _WHOLE:
        low, high = _WHOLE[kind]
        if not low <= int(word) <= high:
            raise ValueError(word)
        return int(word)
    return float(word) if kind in {AttrType.FLOAT, AttrType.DOUBLE} else word


def default_problems(app: App, text: str) -> tuple[Problem, ...]:
    """For `check` and everything that loads an app."""
    problems = []
    for stream in app.streams:
        try:
            defaults_of(stream)
        except ValueError as bad:
            problems.append(Problem(place_of(text, stream.name, NAME, 0, ""), str(bad)))
    return tuple(problems)
