r"""`@map(...)` of sources: the payload of a message to checked events. Pure.

    @map(type='json')                                   an event, an envelope, or a list of them
    @map(type='json', @attributes(ip='client.ip'))      picked from any JSON by path; [n] in lists
    @map(type='csv', delimiter=';', @attributes(ip='0', n='2'))        by column, from 0
    @map(type='csv', header='true', @attributes(ip='client'))          by name in the first line
    @map(type='text')                                   the whole payload, for one string attribute
    @map(type='text', regex='(?P<ip>\S+) (?P<n>\d+)')     each line by the groups of a pattern
    @map(type='binary', layout='>Id8s')                 records of struct's format characters
    @map(type='binary', layout='>Id8s', @attributes(ip='2'))           by place, from 0
    @map(type='avro', schema=...)                       one datum, without a header

A mapper reads; `Admission.admitted` checks what it read with the same rules as JSON.
"""

from __future__ import annotations

import csv
import io
import re
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from edgewise.event.schema import Schema
from edgewise.event.types import AttrType
from edgewise.gateway.examine import (
    Checked,
    Columns,
    Fault,
    Framing,
    check_values,
    gather,
    json_values,
)
from edgewise.gateway.refusal import Refused, refused_body
from edgewise.gateway.spec import BadSpec, MapSpec

if TYPE_CHECKING:  # `edgewise check` makes mappings and goes without Arrow
    from edgewise.gateway.admit import Admission, Admitted

LINE_CHARS_MAX = 1024 * 1024
_STEP = re.compile(r"([^.\[\]]+)|\[(\d+)\]")


class Reading(Protocol):
    """Payload in, checked events out."""

    def read(self, payload: bytes, at_us: int, admission: Admission) -> Admitted | Refused: ...


class Mapper:
    """A mapping and the stream it is for."""

    def __init__(self, mapping: Reading, admission: Admission) -> None:
        self._mapping = mapping
        self._admission = admission

    def read(self, payload: bytes, at_us: int) -> Admitted | Refused:
        return self._mapping.read(payload, at_us, self._admission)


def mapper_of(spec: MapSpec, admission: Admission) -> Mapper:
    """BadSpec where the mapping cannot work for this stream."""
    return Mapper(check_map(spec, admission.schema), admission)


def check_map(spec: MapSpec, schema: Schema) -> Reading:
    """BadSpec where the mapping cannot work for this stream: also for compile time."""
    make = MAPPERS.get(spec.type)
    if make is None:
        raise BadSpec(f"no mapping of type '{spec.type}'; known: {', '.join(MAPPERS)}", "type")
    for name in spec.attributes:
        if schema.index(name) < 0:
            raise BadSpec(f"@attributes names '{name}', {schema.name} has none", name)
    return make(spec, schema)


class _JsonMapper:
    def __init__(self, spec: MapSpec, schema: Schema) -> None:
        _options(spec, {"framing"})
        lines = spec.options.get("framing", "json") == "lines"
        self._content_type = "application/x-ndjson" if lines else "application/json"
        self._framing = Framing.LINES if lines else Framing.JSON
        self._paths = (
            [_path(spec.attributes.get(name, name)) for name in schema.names]
            if spec.attributes
            else []
        )

    def read(self, payload: bytes, at_us: int, admission: Admission) -> Admitted | Refused:
        if not self._paths:
            return admission.read(payload, self._content_type, at_us)
        text = _text(payload)
        if isinstance(text, Refused):
            return text
        events = json_values(text, self._framing)
        if isinstance(events, Fault):
            return admission.admitted([events], at_us)
        schema = admission.schema
        rows = ([_pick(event, path) for path in self._paths] for event in events)
        return admission.admitted(_checked(rows, schema), at_us)


def _path(text: str) -> list[str | int]:
    return [m[1] or int(m[2]) for m in _STEP.finditer(text.removeprefix("$."))]


def _pick(event: Any, path: Iterable[str | int]) -> Any:
    for step in path:
        if isinstance(step, int):
            event = event[step] if isinstance(event, list) and step < len(event) else None
        else:
            event = event.get(step) if isinstance(event, dict) else None
    return event


class _CsvMapper:
    def __init__(self, spec: MapSpec, schema: Schema) -> None:
        _options(spec, {"delimiter", "header", "quote"})
        self._delimiter = spec.options.get("delimiter", ",").replace("\\t", "\t")
        self._quote = spec.options.get("quote", '"')
        if len(self._delimiter) != 1 or len(self._quote) != 1:
            raise BadSpec("delimiter and quote are one character each", "delimiter")
        self._header = spec.options.get("header", "false") == "true"
        names = schema.names
        where = spec.attributes or (
            {} if self._header else {n: str(i) for i, n in enumerate(names)}
        )
        self._where = [where.get(name, name) for name in names]
        self._exact = not spec.attributes and not self._header
        if not self._header and not all(w.isdigit() for w in self._where):
            raise BadSpec("without header='true' a column is a number, counted from 0", "header")

    def read(self, payload: bytes, at_us: int, admission: Admission) -> Admitted | Refused:
        text = _text(payload)
        if isinstance(text, Refused):
            return text
        reader = csv.reader(
            io.StringIO(text, newline=""),
            delimiter=self._delimiter,
            quotechar=self._quote,
            strict=True,
        )
        schema = admission.schema
        try:
            found = gather(self._events(iter(reader), schema))
        except csv.Error as bad:
            return refused_body(400, "malformed", f"not CSV: {bad} in line {reader.line_num}")
        return admission.admitted(found, at_us)

    def _events(self, lines: Iterator[list[str]], schema: Schema) -> Iterator[Checked]:
        places = [int(w) for w in self._where if w.isdigit()]
        if self._header:
            names = next(lines, [])
            missing = [w for w in self._where if w not in names]
            if missing:
                yield None, [], [(missing[0], f"the header has no such column: {names}")]
                return
            places = [names.index(w) for w in self._where]
        for line in lines:
            if not line:
                continue
            if len(line) <= max(places) or (self._exact and len(line) != len(places)):
                yield None, [], [("line", f"{len(line)} columns, expected {len(places)}")]
                continue
            yield _typed([line[p] for p in places], schema)


class _TextMapper:
    def __init__(self, spec: MapSpec, schema: Schema) -> None:
        _options(spec, {"regex"})
        if spec.attributes:
            raise BadSpec("@map(type='text') takes no @attributes: name the groups of regex='...'")
        self._regex = self._compile(spec.options.get("regex", ""), schema)

    @staticmethod
    def _compile(pattern: str, schema: Schema) -> re.Pattern[str] | None:
        if not pattern:
            _one_string(schema, "text")
            return None
        try:
            regex = re.compile(pattern)
        except re.error as bad:
            raise BadSpec(f"regex: {bad}", "regex") from None
        missing = [name for name in schema.names if name not in regex.groupindex]
        if missing:
            raise BadSpec(f"regex has no group (?P<{missing[0]}>...)", "regex")
        return regex

    def read(self, payload: bytes, at_us: int, admission: Admission) -> Admitted | Refused:
        text = _text(payload)
        if isinstance(text, Refused):
            return text
        if self._regex is None:
            return admission.admitted(Columns([None], [[text]]), at_us)
        found = gather(self._events(text, self._regex, admission.schema))
        return admission.admitted(found, at_us)

    @staticmethod
    def _events(text: str, regex: re.Pattern[str], schema: Schema) -> Iterator[Checked]:
        for line in text.splitlines():
            match = regex.search(line[:LINE_CHARS_MAX])
            if match is None:
                yield None, [], [("line", "does not match the regex")]
            else:
                yield _typed([match[name] for name in schema.names], schema)


class _BinaryMapper:
    def __init__(self, spec: MapSpec, schema: Schema) -> None:
        _options(spec, {"layout"})
        layout = spec.options.get("layout", "")
        try:
            self._layout = struct.Struct(layout)
        except struct.error as bad:
            raise BadSpec(f"layout '{layout}': {bad}", "layout") from None
        names = schema.names
        count = len(self._layout.unpack(bytes(self._layout.size)))
        where = spec.attributes or {name: str(at) for at, name in enumerate(names)}
        if not layout or (not spec.attributes and count != len(names)):
            raise BadSpec(
                f"layout '{layout}' must have one value for each of: {', '.join(names)}", "layout"
            )
        for name in names:
            place = where.get(name, "")
            if not place.isdigit() or int(place) >= count:
                raise BadSpec(f"@attributes must say a place for '{name}', 0 to {count - 1}", name)
        self._places = [int(where[name]) for name in names]

    def read(self, payload: bytes, at_us: int, admission: Admission) -> Admitted | Refused:
        if not payload or len(payload) % self._layout.size:
            reason = f"{len(payload)} bytes are no whole records of {self._layout.size}"
            return refused_body(400, "malformed", reason)
        records = self._layout.iter_unpack(payload)
        rows = ([_plain(values[at]) for at in self._places] for values in records)
        return admission.admitted(_checked(rows, admission.schema), at_us)


class _AvroMapper:
    def __init__(self, spec: MapSpec, schema: Schema) -> None:
        from edgewise.gateway.avro import AvroCodec

        _options(spec, {"schema"})
        self._reader = AvroCodec(spec.options.get("schema", ""))
        self._paths = [_path(spec.attributes.get(n, n)) for n in schema.names]

    def read(self, payload: bytes, at_us: int, admission: Admission) -> Admitted | Refused:
        try:
            datum = self._reader.read(payload)
        except ValueError as bad:
            return refused_body(400, "malformed", str(bad))
        rows = [[_plain(_pick(datum, p)) for p in self._paths]]
        return admission.admitted(_checked(rows, admission.schema), at_us)


MAPPERS: Mapping[str, Callable[[MapSpec, Schema], Reading]] = {
    "json": _JsonMapper,
    "csv": _CsvMapper,
    "text": _TextMapper,
    "binary": _BinaryMapper,
    "avro": _AvroMapper,
}


def _options(spec: MapSpec, known: set[str]) -> None:
    for name in spec.options:
        if name not in known:
            raise BadSpec(f"@map(type='{spec.type}') has no option '{name}'", name)


def _one_string(schema: Schema, word: str) -> None:
    if [a.type for a in schema.attributes] != [AttrType.STRING]:
        raise BadSpec(
            f"@map(type='{word}') without more fills one string attribute; {schema.name} has "
            f"{', '.join(f'{a.name} {a.type.value}' for a in schema.attributes)}"
        )


def _text(payload: bytes) -> str | Refused:
    try:
        return payload.decode()
    except UnicodeDecodeError as bad:
        reason = f"not UTF-8: byte {bad.start} is 0x{payload[bad.start]:02x}"
        return refused_body(400, "charset", reason)


def _checked(rows: Iterable[list[Any]], schema: Schema) -> Columns | list[Fault]:
    return gather((None, *check_values(row, schema)) for row in rows)


def _plain(value: Any) -> Any:
    """Fixed-width text comes padded with zeros."""
    if isinstance(value, bytes):
        return value.rstrip(b"\0").decode(errors="replace")
    return value


def _typed(words: list[str | Any], schema: Schema) -> Checked:
    """Words of a text as values: an empty one is null."""
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


def _bool(word: str) -> bool:
    if word.lower() not in {"true", "false"}:
        raise ValueError(word)
    return word.lower() == "true"


def _json_word(word: str) -> Any:
    values = json_values(f"[{word}]", Framing.JSON)
    if isinstance(values, Fault) or len(values) != 1:
        raise ValueError(word)
    return values[0]


def _whole(word: str) -> int:
    if "_" in word:
        raise ValueError(word)
    return int(word)


def _number(word: str) -> float:
    if "_" in word:
        raise ValueError(word)
    return float(word)


_WORDS: Mapping[AttrType, Callable[[str], Any]] = {
    AttrType.STRING: str,
    AttrType.INT: _whole,
    AttrType.LONG: _whole,
    AttrType.FLOAT: _number,
    AttrType.DOUBLE: _number,
    AttrType.BOOL: _bool,
    AttrType.OBJECT: _json_word,
}
