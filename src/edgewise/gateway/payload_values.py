"""Read values out of payloads: text, paths into JSON, words as typed values. Pure.

What the mappers of several formats share. Used by `mappers`, `siddhi_mappers` and
`renderers`.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from edgewise.event.schema import Schema
from edgewise.event.types import AttrType
from edgewise.gateway.json_body import (
    Checked,
    EventColumns,
    Fault,
    Framing,
    check_values,
    gather,
    json_values,
)
from edgewise.gateway.refusal import Refusal, refuse_request
from edgewise.gateway.spec import BadSpec, MapSpec

_STEP = re.compile(r"([^.\[\]]+)|\[(\d+)\]")


def check_options(spec: MapSpec, known: set[str]) -> None:
    for name in spec.options:
        if name not in known:
            near = difflib.get_close_matches(name, sorted(known), n=1)
            all_known = f"known: {', '.join(sorted(known))}" if known else "it has none"
            hint = f"did you mean '{near[0]}'?" if near else all_known
            raise BadSpec(f"@map(type='{spec.type}') has no option '{name}'; {hint}", name)


def parse_path(text: str) -> list[str | int]:
    return [m[1] or int(m[2]) for m in _STEP.finditer(text.removeprefix("$."))]


def pick(event: Any, path: Iterable[str | int]) -> Any:
    for step in path:
        if isinstance(step, int):
            event = event[step] if isinstance(event, list) and step < len(event) else None
        else:
            event = event.get(step) if isinstance(event, dict) else None
    return event


def decode_text(payload: bytes) -> str | Refusal:
    try:
        return payload.decode()
    except UnicodeDecodeError as error:
        reason = f"not UTF-8: byte {error.start} is 0x{payload[error.start]:02x}"
        return refuse_request(400, "charset", reason)


def check_rows(rows: Iterable[list[Any]], schema: Schema) -> EventColumns | list[Fault]:
    return gather((None, *check_values(row, schema)) for row in rows)


def to_text(value: Any) -> Any:
    """Bytes as text, without the zeros that pad it to a fixed width."""
    if isinstance(value, bytes):
        return value.rstrip(b"\0").decode(errors="replace")
    return value


def parse_words(words: list[str | Any], schema: Schema) -> Checked:
    """Texts as values of their attributes: an empty one is null."""
    values: list[Any] = []
    reasons: list[tuple[str, str]] = []
    for word, attribute in zip(words, schema.attributes, strict=True):
        try:
            values.append(_WORDS[attribute.type](word) if word else None)
        except ValueError:
            reasons.append((attribute.name, f"expected {attribute.type.value}, got '{word[:50]}'"))
    if reasons:
        return None, [], reasons
    return None, *check_values(values, schema)


def _parse_bool(word: str) -> bool:
    if word.lower() not in {"true", "false"}:
        raise ValueError(word)
    return word.lower() == "true"


def _parse_json(word: str) -> Any:
    values = json_values(f"[{word}]", Framing.JSON)
    if isinstance(values, Fault) or len(values) != 1:
        raise ValueError(word)
    return values[0]


def _parse_int(word: str) -> int:
    if "_" in word:
        raise ValueError(word)
    return int(word)


def _parse_float(word: str) -> float:
    if "_" in word:
        raise ValueError(word)
    return float(word)


_WORDS: Mapping[AttrType, Callable[[str], Any]] = {
    AttrType.STRING: str,
    AttrType.INT: _parse_int,
    AttrType.LONG: _parse_int,
    AttrType.FLOAT: _parse_float,
    AttrType.DOUBLE: _parse_float,
    AttrType.BOOL: _parse_bool,
    AttrType.OBJECT: _parse_json,
}
