"""Read and write events in Siddhi's binary form: `@map(type='binary')` without a layout. Pure.

    count of events (int), then for each: time (long), then its values in the order of the schema

Numbers are big-endian as in Java, a bool is a byte, text is its length in bytes (int) and UTF-8;
text of length 0 is null. Other values have no form for null: a row with one cannot be sent. Used
by `mappers` and `renderers`; the TCP source and sink carry it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from edgewise.event.schema import Schema
from edgewise.event.types import AttrType
from edgewise.gateway.json_body import TS_MAX_MS, Checked, check_values, gather
from edgewise.gateway.payload_values import check_options
from edgewise.gateway.refusal import Refusal, refuse_request
from edgewise.gateway.spec import BadSpec, MapSpec

if TYPE_CHECKING:  # `edgewise check` checks mappings and must not load Arrow
    from edgewise.gateway.admit import Admission, AdmittedEvents

_INT, _LONG = struct.Struct(">i"), struct.Struct(">q")
_FORMATS = {
    AttrType.INT: _INT,
    AttrType.LONG: _LONG,
    AttrType.FLOAT: struct.Struct(">f"),
    AttrType.DOUBLE: struct.Struct(">d"),
    AttrType.BOOL: struct.Struct(">?"),
}


def _require_known_types(schema: Schema) -> None:
    for attribute in schema.attributes:
        if attribute.type is AttrType.OBJECT:
            raise BadSpec(f"'{attribute.name}' is an object, which the binary form cannot hold")


def iterate_events(payload: bytes, schema: Schema) -> Iterator[tuple[int, list[Any]]]:
    """Time and values of each event; ValueError where the bytes are no such events."""
    at = 0

    def take(size: int) -> bytes:
        nonlocal at
        if size < 0 or at + size > len(payload):
            raise ValueError(f"{len(payload)} bytes end inside a value at byte {at}")
        at += size
        return payload[at - size : at]

    def take_text() -> str | None:
        size = _INT.unpack(take(4))[0]
        return take(size).decode() if size else None

    count = _INT.unpack(take(4))[0]
    for _ in range(count):
        ts = _LONG.unpack(take(8))[0]
        values = [
            take_text()
            if attribute.type is AttrType.STRING
            else _FORMATS[attribute.type].unpack(take(_FORMATS[attribute.type].size))[0]
            for attribute in schema.attributes
        ]
        yield ts, values
    if at != len(payload):
        raise ValueError(f"{len(payload) - at} bytes too many after {count} events")


class EventBinaryMapper:
    """Events carry their own time."""

    def __init__(self, spec: MapSpec, schema: Schema) -> None:
        check_options(spec, set())
        _require_known_types(schema)

    def read(self, payload: bytes, at_us: int, admission: Admission) -> AdmittedEvents | Refusal:
        try:
            found = list(iterate_events(payload, admission.schema))
        except ValueError as error:  # also text that is not UTF-8
            return refuse_request(400, "malformed", f"not Siddhi's binary form: {error}")
        return admission.stamp(gather(_check(ts, v, admission.schema) for ts, v in found), at_us)


def _check(ts: int, values: list[Any], schema: Schema) -> Checked:
    if abs(ts) > TS_MAX_MS:
        return None, [], [("event", f"time {ts} is out of range")]
    return ts, *check_values(values, schema)


def build_event_renderer(spec: MapSpec, schema: Schema) -> Callable[[int, Sequence[Any]], bytes]:
    """A payload of one event for each row."""
    del spec
    _require_known_types(schema)
    kinds = [a.type for a in schema.attributes]

    def render(ts: int, row: Sequence[Any]) -> bytes:
        parts = [_INT.pack(1), _LONG.pack(ts)]
        for kind, value in zip(kinds, row, strict=True):
            if kind is AttrType.STRING:
                text = (value or "").encode()
                parts += (_INT.pack(len(text)), text)
            elif value is None:
                raise ValueError(f"the binary form has no null of type {kind.value}")
            else:
                parts.append(_FORMATS[kind].pack(value))
        return b"".join(parts)

    return render
