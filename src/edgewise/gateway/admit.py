"""Decode, check against the schema, stamp: pure.

Bytes and a content type become one record batch, or a `Refused` that says which events are at
fault, in which field, and why. A request is all or nothing.

There are two readers and they accept exactly the same bodies. The quick one decodes straight into
struct types generated for the stream, and gives up at the first doubt. The careful one
(`examine`) then decides, and finds every fault. Keys that come twice are the one thing the quick
decoder cannot see; it counts colons instead: all fields are required, so a body without a second
`ip` has exactly as many colons as fields plus those inside its strings.
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
from edgewise.gateway.examine import (
    FLOAT_MAX,
    PROBLEMS_MAX,
    TS_MAX_MS,
    Columns,
    Fault,
    Framing,
    examine,
)
from edgewise.gateway.refusal import Refused, refused_body

BODY_BYTES_MAX = 8 * 1024 * 1024
EVENTS_MAX = 64 * 1024
# From here on a request becomes Arrow by itself, while its values are still in the cache. Smaller
# ones wait, and become Arrow together.
ARROW_EVENTS_MIN = 256
_BOM = b"\xef\xbb\xbf"
_COLON = ord(":")
_NUMPY_BYTES_MIN = 4096  # of a body: less is counted sooner than numpy is called
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
class Limits:
    body_bytes_max: int = BODY_BYTES_MAX
    events_max: int = EVENTS_MAX
    problems_max: int = PROBLEMS_MAX


@dataclass(frozen=True, slots=True)
class Admitted:
    """The events of one request, checked."""

    count: int
    ts: list[int] | int  # one for all where it is a number
    at_us: int  # of the first event; each next one is a microsecond later
    values: list[Any]  # for each attribute a list, or an Arrow array


def admit(
    body: bytes, content_type: str, schema: Schema, at_us: int, limits: Limits | None = None
) -> Any | Refused:
    """A record batch of `event.arrow.to_arrow(schema)`, or why not."""
    return admission(schema, limits or Limits()).admit(body, content_type, at_us)


@lru_cache(maxsize=1024)
def admission(schema: Schema, limits: Limits) -> Admission:
    return Admission(schema, limits)


class Admission:
    """Admits the events of one stream; holds the decoders generated for it."""

    def __init__(self, schema: Schema, limits: Limits) -> None:
        self.schema = schema
        self.arrow_schema = to_arrow(schema)
        self._limits = limits
        self._types = [ARROW_TYPES[a.type] for a in schema.attributes]
        self._quick = (
            None
            if not schema.attributes or AttrType.OBJECT in {a.type for a in schema.attributes}
            else _QuickReader(schema)
        )

    def warm(self) -> None:
        """Pyarrow loads pandas at the first array it makes: no event should wait that second."""
        self.rows([])

    def admit(self, body: bytes, content_type: str, at_us: int) -> Any | Refused:
        got = self.read(body, content_type, at_us)
        return got if isinstance(got, Refused) else self.rows([got])

    def read(self, body: bytes, content_type: str, at_us: int) -> Admitted | Refused:
        limits = self._limits
        if len(body) > limits.body_bytes_max:
            reason = (
                f"larger than the limit of {limits.body_bytes_max} bytes; send smaller batches"
            )
            return refused_body(413, "too_large", reason)
        framing = framing_of(content_type)
        if isinstance(framing, Refused):
            return framing
        columns = self._columns(body, framing)
        return columns if isinstance(columns, Refused) else self.admitted(columns, at_us)

    def admitted(self, found: Columns | list[Fault], at_us: int) -> Admitted | Refused:
        """What a reader found, stamped; any mapper ends here."""
        limits = self._limits
        columns = self._some(found) if isinstance(found, Columns) else self._refused(found)
        if isinstance(columns, Refused):
            return columns
        count = columns.count
        if count > limits.events_max:
            reason = f"{count} events, the limit is {limits.events_max}; send smaller batches"
            return refused_body(413, "too_many", reason)
        arrival_ms = at_us // 1000
        values = columns.values
        if count >= ARROW_EVENTS_MIN:
            values = [_array(v, t) for v, t in zip(values, self._types, strict=True)]
        if isinstance(columns.ts, int):
            return Admitted(count, arrival_ms, at_us, values)
        ts = [arrival_ms if t is None else t for t in columns.ts]
        return Admitted(count, ts, at_us, values)

    def _columns(self, body: bytes, framing: Framing) -> Columns | list[Fault] | Refused:
        if framing is Framing.ARROW:
            got = read_arrow(body, self.schema)
            return got if isinstance(got, list) else Columns(*got)
        body = body.removeprefix(_BOM)
        if not body.strip():
            return refused_body(400, "empty", "empty; expected an event or a list of events")
        columns = self._quick.read(body, framing) if self._quick else None
        return columns or self._examine(body, framing)

    def merged(self, parts: Sequence[Admitted]) -> Admitted:
        """Several as one, so that they can share one append and its sequence."""
        if len(parts) == 1:
            return parts[0]
        ts = list(chain.from_iterable(map(_times, parts)))
        return Admitted(len(ts), ts, parts[0].at_us, self._values(parts))

    def _values(self, parts: Sequence[Admitted]) -> list[Any]:
        if len(parts) == 1:
            return parts[0].values
        return [_joined([p.values[i] for p in parts], t) for i, t in enumerate(self._types)]

    def rows(self, parts: Sequence[Admitted]) -> Any:
        """All parts as one record batch, in their order."""
        counts = np.array([p.count for p in parts], np.int64)
        total = int(counts.sum())
        system: list[Any] = [
            pa.array(_all_times(parts, counts), type=pa.int64()),
            pa.array(_captured(parts, counts, total)),
            pa.array(np.zeros(total, np.int8)),
        ]
        values = self._values(parts) if parts else [[] for _ in self._types]
        arrays = [_array(v, t) for v, t in zip(values, self._types, strict=True)]
        return pa.RecordBatch.from_arrays([*system, *arrays], schema=self.arrow_schema)

    def _examine(self, body: bytes, framing: Framing) -> Columns | list[Fault] | Refused:
        try:
            text = body.decode()
        except UnicodeDecodeError as bad:
            reason = f"not UTF-8: byte {bad.start} is 0x{body[bad.start]:02x}"
            return refused_body(400, "charset", reason)
        return examine(text, framing, self.schema, self._limits.problems_max)

    @staticmethod
    def _some(columns: Columns) -> Columns | Refused:
        return columns if columns.count else refused_body(400, "empty", "no events in it")

    def _refused(self, found: list[Fault]) -> Refused:
        first = found[0]
        if first.index < 0:
            return Refused(400, "malformed", f"{first.field}: {first.reason}", tuple(found))
        count = str(len({f.index for f in found}))
        if len(found) >= self._limits.problems_max:
            count = f"at least {count}"
        message = (
            f"{count} event(s) at fault, nothing was accepted; "
            f"first: event {first.index}, field '{first.field}': {first.reason}"
        )
        return Refused(400, "invalid", message, tuple(found))


def _times(part: Admitted) -> Iterable[int]:
    return repeat(part.ts, part.count) if isinstance(part.ts, int) else part.ts


def _all_times(parts: Sequence[Admitted], counts: Any) -> Any:
    if all(isinstance(p.ts, int) for p in parts):
        return np.repeat(np.array([p.ts for p in parts], np.int64), counts)
    return np.fromiter(chain.from_iterable(map(_times, parts)), np.int64, int(counts.sum()))


def _captured(parts: Sequence[Admitted], counts: Any, total: int) -> Any:
    """From `at_us` of each part on, a microsecond apart."""
    starts = np.array([p.at_us for p in parts], np.int64)
    return np.arange(total) + np.repeat(starts - (np.cumsum(counts) - counts), counts)


def _array(values: Any, kind: Any) -> Any:
    return pa.array(values, type=kind) if isinstance(values, list) else values


def _joined(parts: list[Any], kind: Any) -> Any:
    if all(isinstance(p, list) for p in parts):
        return list(chain.from_iterable(parts))
    return pa.concat_arrays([_array(p, kind) for p in parts])


@lru_cache(maxsize=64)
def framing_of(content_type: str) -> Framing | Refused:
    """How the body holds its events, from the Content-Type header."""
    media, *parameters = (part.strip().lower() for part in content_type.split(";"))
    framing = FRAMINGS.get(media)
    if framing is None:
        said = f"'{media}'" if media else "nothing"
        reason = (
            f"{said} is not a supported type; send application/json, application/x-ndjson "
            f"or {ARROW_STREAM}"
        )
        return refused_body(415, "content_type", reason, at="Content-Type")
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        charset = value.strip().strip('"')
        if name.strip() == "charset" and charset not in CHARSETS:
            reason = f"charset '{charset}' is not supported; send UTF-8"
            return refused_body(415, "charset", reason, at="Content-Type")
    return framing


_QUICK_TYPES: dict[AttrType, Any] = {
    AttrType.STRING: str,
    AttrType.INT: Annotated[int, msgspec.Meta(ge=INT_MIN, le=INT_MAX)],
    AttrType.LONG: Annotated[int, msgspec.Meta(ge=LONG_MIN, le=LONG_MAX)],
    AttrType.FLOAT: Annotated[float, msgspec.Meta(ge=-FLOAT_MAX, le=FLOAT_MAX)],
    AttrType.DOUBLE: float,
    AttrType.BOOL: bool,
}
_TS_TYPE = Annotated[int, msgspec.Meta(ge=-TS_MAX_MS, le=TS_MAX_MS)]


class _QuickReader:
    """Decodes bodies whose events all have the same form; None for everything else."""

    def __init__(self, schema: Schema) -> None:
        types = [_QUICK_TYPES[a.type] | None for a in schema.attributes]
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
        self._columns = _columns_of(slots)
        self._texts = [i for i, a in enumerate(schema.attributes) if a.type is AttrType.STRING]
        self._width = len(slots)
        self._colons_in_names = sum(n.count(":") for n in schema.names)

    def read(self, body: bytes, framing: Framing) -> Columns | None:
        try:
            # Struct fields are checked as UTF-8 only where they are strings; the careful reader
            # checks all bytes, so this one must too.
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

    def _plain(self, body: bytes, framing: Framing) -> Columns | None:
        events = _decode(self._plain_one, self._plain_many, body, framing)
        values = self._columns(events)
        colons = len(events) * (self._width + self._colons_in_names)
        if not events or not self._no_key_twice(body, values, colons):
            return None
        return Columns(len(events), values)

    def _envelope(self, body: bytes, framing: Framing) -> Columns | None:
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
        if not events or not self._no_key_twice(body, values, colons):
            return None
        return Columns(ts, values)

    def _no_key_twice(self, body: bytes, values: Sequence[list[Any]], colons: int) -> bool:
        found = _colons(body)
        if found == colons and not self._colons_in_names:
            return True
        if any(escape in body for escape in _ESCAPED_COLON):
            return False
        inside = sum("".join(filter(None, values[i])).count(":") for i in self._texts)
        return found == colons + inside


def _colons(body: bytes) -> int:
    if len(body) < _NUMPY_BYTES_MIN:
        return body.count(b":")
    return int(np.count_nonzero(np.frombuffer(body, np.uint8) == _COLON))


def _columns_of(slots: Sequence[str]) -> Callable[[Sequence[Any]], list[list[Any]]]:
    """Generated, since a loop that knows its slot takes half the time of one that is told."""
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
