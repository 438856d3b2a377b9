"""Decode a request body, check it against the schema, and stamp its capture time. Pure.

Bytes and a content type become one record batch, or a `Refusal` that names the events at fault,
the field and the reason. A request is accepted as a whole or not at all.

There are two JSON readers, and they accept exactly the same bodies. The fast one decodes straight
into struct types generated for the stream, and gives up at the first doubt. The careful one
(`json_body`) then decides, and finds every fault. The fast decoder cannot see a key that comes
twice; it counts colons instead: all fields are required, so a body without a second `ip` has
exactly as many colons as fields plus those inside its strings.

Used by `http` and `websocket` for bodies, and by every mapper, which ends in `Admission.stamp`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, repeat
from typing import Annotated, Any

import msgspec
import numpy as np
import pyarrow as pa

from edgewise.event.arrow import ARROW_TYPES, to_arrow
from edgewise.event.schema import Schema
from edgewise.event.types import INT_MAX, INT_MIN, LONG_MAX, LONG_MIN, AttrType
from edgewise.gateway.arrow_body import CONTENT_TYPE as ARROW_STREAM
from edgewise.gateway.arrow_body import read_arrow
from edgewise.gateway.json_body import (
    FLOAT_MAX,
    PROBLEMS_MAX,
    TS_MAX_MS,
    EventColumns,
    Fault,
    Framing,
    read_json,
)
from edgewise.gateway.refusal import Refusal, refuse_request

BODY_BYTES_MAX = 8 * 1024 * 1024
EVENTS_MAX = 64 * 1024
# Requests of this size and more are converted to Arrow one by one, while their values are in the
# processor's cache; smaller ones are converted together, when they are appended.
ARROW_EVENTS_MIN = 256
_BOM = b"\xef\xbb\xbf"
_COLON = ord(":")
_NUMPY_BYTES_MIN = 4096  # of a body: below it bytes.count is faster than a call of numpy
_ESCAPED_COLON = (b"\\u003a", b"\\u003A")

FRAMINGS: dict[str, Framing] = {
    ARROW_STREAM: Framing.ARROW,
    "application/json": Framing.JSON,
    "application/x-ndjson": Framing.LINES,
    "application/ndjson": Framing.LINES,
    "application/jsonl": Framing.LINES,
    "application/jsonlines": Framing.LINES,
}
CHARSETS = ("utf-8", "utf8", "us-ascii")


@dataclass(frozen=True, slots=True)
class AdmissionLimits:
    body_bytes_max: int = BODY_BYTES_MAX
    events_max: int = EVENTS_MAX
    problems_max: int = PROBLEMS_MAX


@dataclass(frozen=True, slots=True)
class AdmittedEvents:
    """The events of one request, checked and stamped."""

    count: int
    ts: list[int] | int  # one for all where it is a number
    at_us: int  # of the first event; each next one is a microsecond later
    values: list[Any]  # for each attribute a list, or an Arrow array


def admit(
    body: bytes,
    content_type: str,
    schema: Schema,
    at_us: int,
    limits: AdmissionLimits | None = None,
) -> Any | Refusal:
    """A record batch of `event.arrow.to_arrow(schema)`, or a refusal."""
    return admission(schema, limits or AdmissionLimits()).admit(body, content_type, at_us)


@lru_cache(maxsize=1024)
def admission(schema: Schema, limits: AdmissionLimits) -> Admission:
    return Admission(schema, limits)


class Admission:
    """Admits the events of one stream; holds the decoders generated for it."""

    def __init__(self, schema: Schema, limits: AdmissionLimits) -> None:
        self.schema = schema
        self.arrow_schema = to_arrow(schema)
        self._limits = limits
        self._types = [ARROW_TYPES[a.type] for a in schema.attributes]
        self._fast = (
            None
            if not schema.attributes or AttrType.OBJECT in {a.type for a in schema.attributes}
            else _FastReader(schema)
        )

    def warm(self) -> None:
        """Make an empty batch now: pyarrow loads pandas for its first array, for a second."""
        self.to_record_batch([])

    def admit(self, body: bytes, content_type: str, at_us: int) -> Any | Refusal:
        got = self.read(body, content_type, at_us)
        return got if isinstance(got, Refusal) else self.to_record_batch([got])

    def read(self, body: bytes, content_type: str, at_us: int) -> AdmittedEvents | Refusal:
        limits = self._limits
        if len(body) > limits.body_bytes_max:
            reason = (
                f"larger than the limit of {limits.body_bytes_max} bytes; send smaller batches"
            )
            return refuse_request(413, "too_large", reason)
        framing = parse_content_type(content_type)
        if isinstance(framing, Refusal):
            return framing
        columns = self._columns(body, framing)
        return columns if isinstance(columns, Refusal) else self.stamp(columns, at_us)

    def stamp(self, found: EventColumns | list[Fault], at_us: int) -> AdmittedEvents | Refusal:
        """Stamp what a reader found with the capture time; every mapper ends here."""
        limits = self._limits
        columns = (
            self._require_events(found) if isinstance(found, EventColumns) else self._refuse(found)
        )
        if isinstance(columns, Refusal):
            return columns
        count = columns.count
        if count > limits.events_max:
            reason = f"{count} events, the limit is {limits.events_max}; send smaller batches"
            return refuse_request(413, "too_many", reason)
        arrival_ms = at_us // 1000
        values = columns.values
        if count >= ARROW_EVENTS_MIN:
            values = [_to_array(v, t) for v, t in zip(values, self._types, strict=True)]
        if isinstance(columns.ts, int):
            return AdmittedEvents(count, arrival_ms, at_us, values)
        ts = [arrival_ms if t is None else t for t in columns.ts]
        return AdmittedEvents(count, ts, at_us, values)

    def _columns(self, body: bytes, framing: Framing) -> EventColumns | list[Fault] | Refusal:
        if framing is Framing.ARROW:
            got = read_arrow(body, self.schema)
            return got if isinstance(got, list) else EventColumns(*got)
        body = body.removeprefix(_BOM)
        if not body.strip():
            return refuse_request(400, "empty", "empty; expected an event or a list of events")
        columns = self._fast.read(body, framing) if self._fast else None
        return columns or self._read_carefully(body, framing)

    def merge(self, parts: Sequence[AdmittedEvents]) -> AdmittedEvents:
        """Join several requests into one, so that they share one append and its sequence."""
        if len(parts) == 1:
            return parts[0]
        ts = list(chain.from_iterable(map(_part_times, parts)))
        return AdmittedEvents(len(ts), ts, parts[0].at_us, self._values(parts))

    def _values(self, parts: Sequence[AdmittedEvents]) -> list[Any]:
        if len(parts) == 1:
            return parts[0].values
        return [_concat([p.values[i] for p in parts], t) for i, t in enumerate(self._types)]

    def to_record_batch(self, parts: Sequence[AdmittedEvents]) -> Any:
        """One record batch of all parts, in their order."""
        counts = np.array([p.count for p in parts], np.int64)
        total = int(counts.sum())
        system: list[Any] = [
            pa.array(_event_times(parts, counts), type=pa.int64()),
            pa.array(_capture_times(parts, counts, total)),
            pa.array(np.zeros(total, np.int8)),
        ]
        values = self._values(parts) if parts else [[] for _ in self._types]
        arrays = [_to_array(v, t) for v, t in zip(values, self._types, strict=True)]
        return pa.RecordBatch.from_arrays([*system, *arrays], schema=self.arrow_schema)

    def _read_carefully(
        self, body: bytes, framing: Framing
    ) -> EventColumns | list[Fault] | Refusal:
        try:
            text = body.decode()
        except UnicodeDecodeError as bad:
            reason = f"not UTF-8: byte {bad.start} is 0x{body[bad.start]:02x}"
            return refuse_request(400, "charset", reason)
        return read_json(text, framing, self.schema, self._limits.problems_max)

    @staticmethod
    def _require_events(columns: EventColumns) -> EventColumns | Refusal:
        return columns if columns.count else refuse_request(400, "empty", "no events in it")

    def _refuse(self, found: list[Fault]) -> Refusal:
        first = found[0]
        if first.index < 0:
            return Refusal(400, "malformed", f"{first.field}: {first.reason}", tuple(found))
        count = str(len({f.index for f in found}))
        if len(found) >= self._limits.problems_max:
            count = f"at least {count}"
        message = (
            f"{count} event(s) at fault, nothing was accepted; "
            f"first: event {first.index}, field '{first.field}': {first.reason}"
        )
        return Refusal(400, "invalid", message, tuple(found))


def _part_times(part: AdmittedEvents) -> Iterable[int]:
    return repeat(part.ts, part.count) if isinstance(part.ts, int) else part.ts


def _event_times(parts: Sequence[AdmittedEvents], counts: Any) -> Any:
    if all(isinstance(p.ts, int) for p in parts):
        return np.repeat(np.array([p.ts for p in parts], np.int64), counts)
    return np.fromiter(chain.from_iterable(map(_part_times, parts)), np.int64, int(counts.sum()))


def _capture_times(parts: Sequence[AdmittedEvents], counts: Any, total: int) -> Any:
    """Capture times: from `at_us` of each part on, a microsecond apart."""
    starts = np.array([p.at_us for p in parts], np.int64)
    return np.arange(total) + np.repeat(starts - (np.cumsum(counts) - counts), counts)


def _to_array(values: Any, kind: Any) -> Any:
    return pa.array(values, type=kind) if isinstance(values, list) else values


def _concat(parts: list[Any], kind: Any) -> Any:
    if all(isinstance(p, list) for p in parts):
        return list(chain.from_iterable(parts))
    return pa.concat_arrays([_to_array(p, kind) for p in parts])


@lru_cache(maxsize=64)
def parse_content_type(content_type: str) -> Framing | Refusal:
    """How the body holds its events, by the Content-Type header."""
    media, *parameters = (part.strip().lower() for part in content_type.split(";"))
    framing = FRAMINGS.get(media)
    if framing is None:
        said = f"'{media}'" if media else "nothing"
        reason = (
            f"{said} is not a supported type; send application/json, application/x-ndjson "
            f"or {ARROW_STREAM}"
        )
        return refuse_request(415, "content_type", reason, at="Content-Type")
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        charset = value.strip().strip('"')
        if name.strip() == "charset" and charset not in CHARSETS:
            reason = f"charset '{charset}' is not supported; send UTF-8"
            return refuse_request(415, "charset", reason, at="Content-Type")
    return framing


_FAST_TYPES: dict[AttrType, Any] = {
    AttrType.STRING: str,
    AttrType.INT: Annotated[int, msgspec.Meta(ge=INT_MIN, le=INT_MAX)],
    AttrType.LONG: Annotated[int, msgspec.Meta(ge=LONG_MIN, le=LONG_MAX)],
    AttrType.FLOAT: Annotated[float, msgspec.Meta(ge=-FLOAT_MAX, le=FLOAT_MAX)],
    AttrType.DOUBLE: float,
    AttrType.BOOL: bool,
}
_TS_TYPE = Annotated[int, msgspec.Meta(ge=-TS_MAX_MS, le=TS_MAX_MS)]


class _FastReader:
    """Decodes bodies whose events all have the same form; None for everything else."""

    def __init__(self, schema: Schema) -> None:
        types = [_FAST_TYPES[a.type] | None for a in schema.attributes]
        slots = [f"f{i}" for i in range(len(types))]
        plain = msgspec.defstruct(
            "Plain",
            list(zip(slots, types, strict=True)),
            rename=dict(zip(slots, schema.names, strict=True)),
            forbid_unknown_fields=True,
            gc=False,
        )
        envelope = msgspec.defstruct(
            "Envelope",
            [
                ("data", plain | tuple[tuple(types)]),  # type: ignore[misc]
                ("ts", _TS_TYPE | msgspec.UnsetType, msgspec.UNSET),
            ],
            forbid_unknown_fields=True,
        )
        self._has_data = "data" in schema.names
        self._plain_many = msgspec.json.Decoder(list[plain])  # type: ignore[valid-type]
        self._envelope_many = msgspec.json.Decoder(list[envelope])  # type: ignore[valid-type]
        self._plain_one = msgspec.json.Decoder(plain)
        self._envelope_one = msgspec.json.Decoder(envelope)
        self._columns = _compile_columns(slots)
        self._texts = [i for i, a in enumerate(schema.attributes) if a.type is AttrType.STRING]
        self._width = len(slots)
        self._colons_in_names = sum(n.count(":") for n in schema.names)

    def read(self, body: bytes, framing: Framing) -> EventColumns | None:
        try:
            # msgspec checks UTF-8 only in strings; the careful reader checks all bytes, so this
            # one must too.
            body.decode()
            return self._plain(body, framing)
        except UnicodeDecodeError:
            return None
        except (msgspec.MsgspecError, RecursionError):
            pass
        if self._has_data:
            return None
        try:
            return self._envelope(body, framing)
        except (msgspec.MsgspecError, RecursionError):
            return None

    def _plain(self, body: bytes, framing: Framing) -> EventColumns | None:
        events = _decode(self._plain_one, self._plain_many, body, framing)
        values = self._columns(events)
        colons = len(events) * (self._width + self._colons_in_names)
        if not events or not self._has_no_repeated_key(body, values, colons):
            return None
        return EventColumns(len(events), values)

    def _envelope(self, body: bytes, framing: Framing) -> EventColumns | None:
        events = _decode(self._envelope_one, self._envelope_many, body, framing)
        data = [event.data for event in events]
        lists = sum(type(d) is tuple for d in data)
        if lists == 0:
            values = self._columns(data)
        else:
            rows = (d if type(d) is tuple else msgspec.structs.astuple(d) for d in data)
            values = [list(column) for column in zip(*rows, strict=True)]
        ts = [None if e.ts is msgspec.UNSET else e.ts for e in events]
        colons = 2 * len(events) - ts.count(None)
        colons += (len(events) - lists) * (self._width + self._colons_in_names)
        if not events or not self._has_no_repeated_key(body, values, colons):
            return None
        return EventColumns(ts, values)

    def _has_no_repeated_key(self, body: bytes, values: Sequence[list[Any]], colons: int) -> bool:
        found = _count_colons(body)
        if found == colons and not self._colons_in_names:
            return True
        if any(escape in body for escape in _ESCAPED_COLON):
            return False
        inside = sum("".join(filter(None, values[i])).count(":") for i in self._texts)
        return found == colons + inside


def _count_colons(body: bytes) -> int:
    if len(body) < _NUMPY_BYTES_MIN:
        return body.count(b":")
    return int(np.count_nonzero(np.frombuffer(body, np.uint8) == _COLON))


def _compile_columns(slots: Sequence[str]) -> Callable[[Sequence[Any]], list[list[Any]]]:
    """Generated code: it takes half the time of a loop with getattr."""
    loops = ", ".join(f"[event.{slot} for event in events]" for slot in slots)
    columns: Callable[[Sequence[Any]], list[list[Any]]] = eval(f"lambda events: [{loops}]")  # noqa: S307
    return columns


def _decode(one: Any, many: Any, body: bytes, framing: Framing) -> list[Any]:
    events: list[Any]
    if framing is Framing.LINES:
        events = one.decode_lines(body)
    elif body.lstrip()[:1] == b"[":
        events = many.decode(body)
    else:
        events = [one.decode(body)]
    return events
