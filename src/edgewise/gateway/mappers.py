r"""Map the payload of a message to events, as `@map(...)` of a source declares. Pure.

    @map(type='json')                                   an event, an envelope, or a list of them
    @map(type='json', @attributes(ip='client.ip'))      picked from any JSON by path; [n] in lists
    @map(type='csv', delimiter=';', @attributes(ip='0', n='2'))        by column, from 0
    @map(type='csv', header='true', @attributes(ip='client'))          by name in the first line
    @map(type='text')                                   the whole payload, for one string attribute
    @map(type='text', regex='(?P<ip>\S+) (?P<n>\d+)')     each line by the groups of a pattern
    @map(type='binary', layout='>Id8s')                 records in the format of Python's struct
    @map(type='binary', layout='>Id8s', @attributes(ip='2'))           by position, from 0
    @map(type='binary')                                 Siddhi's own form (`siddhi_binary`)
    @map(type='avro', schema=...)                       one datum, without a header
    @map(type='keyvalue')                               a JSON object, by the names of attributes
    @map(type='passThrough')                            events of `inMemory`, as they are

A mapper reads; `Admission.stamp` accepts what it read by the same rules as JSON. Used by
`source_writer` and `http`; `connectors` checks mappings before anything starts.
"""

from __future__ import annotations

import csv
import io
import re
import struct
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from edgewise.event.schema import Schema
from edgewise.event.types import AttrType
from edgewise.gateway.json_body import (
    EVENT_KEY,
    TS_MAX_MS,
    Checked,
    EventColumns,
    Fault,
    Framing,
    check_values,
    gather,
    json_values,
)
from edgewise.gateway.payload_values import (
    check_options,
    check_rows,
    decode_text,
    parse_path,
    parse_words,
    pick,
    to_text,
)
from edgewise.gateway.refusal import Refusal, refuse_request
from edgewise.gateway.spec import BadSpec, MapSpec

if TYPE_CHECKING:  # `edgewise check` checks mappings and must not load Arrow
    from edgewise.gateway.admit import Admission, AdmittedEvents

LINE_CHARS_MAX = 1024 * 1024


class PayloadReader(Protocol):
    """Reads a payload; a mapping without its stream."""

    def read(
        self, payload: bytes, at_us: int, admission: Admission
    ) -> AdmittedEvents | Refusal: ...


class Mapper:
    """A mapping and the admission of its stream."""

    def __init__(self, mapping: PayloadReader, admission: Admission) -> None:
        self._mapping = mapping
        self._admission = admission

    def read(self, payload: bytes, at_us: int) -> AdmittedEvents | Refusal:
        return self._mapping.read(payload, at_us, self._admission)


def build_mapper(spec: MapSpec, admission: Admission) -> Mapper:
    """BadSpec where the mapping cannot work for this stream."""
    return Mapper(check_map(spec, admission.schema), admission)


def check_map(spec: MapSpec, schema: Schema) -> PayloadReader:
    """As `build_mapper`, without what only a running source needs."""
    make = MAPPERS.get(spec.type)
    if make is None:
        raise BadSpec(f"no mapping of type '{spec.type}'; known: {', '.join(MAPPERS)}", "type")
    for name in spec.attributes:
        if schema.index(name) < 0:
            raise BadSpec(f"@attributes names '{name}', {schema.name} has none", name)
    return make(spec, schema)


class _JsonMapper:
    def __init__(self, spec: MapSpec, schema: Schema) -> None:
        known = {"framing", "enclosing.element", "fail.on.missing.attribute"}
        check_options(spec, known)
        lines = spec.options.get("framing", "json") == "lines"
        self._content_type = "application/x-ndjson" if lines else "application/json"
        self._framing = Framing.LINES if lines else Framing.JSON
        self._paths = (
            [parse_path(spec.attributes.get(name, name)) for name in schema.names]
            if spec.attributes or set(spec.options) - {"framing"} or spec.type != "json"
            else []
        )
        self._enclosing = parse_path(spec.options.get("enclosing.element", "").lstrip("$"))
        self._strict = spec.options.get("fail.on.missing.attribute", "").lower() == "true"
        self._unwrap = not spec.attributes and schema.index(EVENT_KEY) < 0

    def read(self, payload: bytes, at_us: int, admission: Admission) -> AdmittedEvents | Refusal:
        if not self._paths:
            return admission.read(payload, self._content_type, at_us)
        text = decode_text(payload)
        if isinstance(text, Refusal):
            return text
        events = json_values(text, self._framing)
        if isinstance(events, Fault):
            return admission.stamp([events], at_us)
        checked = (self._check(event, admission.schema) for event in self._enclosed(events))
        return admission.stamp(gather(checked), at_us)

    def _enclosed(self, events: list[Any]) -> Iterator[Any]:
        for event in events:
            inner = pick(event, self._enclosing)
            yield from inner if isinstance(inner, list) else [inner]

    def _check(self, event: Any, schema: Schema) -> Checked:
        if self._unwrap and isinstance(event, dict) and list(event) == [EVENT_KEY]:
            event = event[EVENT_KEY]
        values = [pick(event, path) for path in self._paths]
        if self._strict and None in values:
            missing = zip(schema.names, values, strict=True)
            return None, [], [(name, "missing") for name, value in missing if value is None]
        return None, *check_values(values, schema)


class _PassThroughMapper:
    """Events as the renderer of the same name writes them, in schema order, with their time."""

    def __init__(self, spec: MapSpec, schema: Schema) -> None:
        del schema
        check_options(spec, set())

    def read(self, payload: bytes, at_us: int, admission: Admission) -> AdmittedEvents | Refusal:
        text = decode_text(payload)
        if isinstance(text, Refusal):
            return text
        events = json_values(text, Framing.LINES)
        if isinstance(events, Fault):
            return admission.stamp([events], at_us)
        schema = admission.schema
        return admission.stamp(gather(_check_passed(event, schema) for event in events), at_us)


def _check_passed(event: Any, schema: Schema) -> Checked:
    ts, data = pick(event, ["ts"]), pick(event, ["data"])
    if type(ts) is not int or abs(ts) > TS_MAX_MS or not isinstance(data, list):
        return None, [], [("event", 'expected {"ts": ..., "data": [...]}')]
    return ts, *check_values(data, schema)


class _CsvMapper:
    def __init__(self, spec: MapSpec, schema: Schema) -> None:
        check_options(spec, {"delimiter", "header", "quote"})
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

    def read(self, payload: bytes, at_us: int, admission: Admission) -> AdmittedEvents | Refusal:
        text = decode_text(payload)
        if isinstance(text, Refusal):
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
        except csv.Error as error:
            return refuse_request(400, "malformed", f"not CSV: {error} in line {reader.line_num}")
        return admission.stamp(found, at_us)

    def _events(self, lines: Iterator[list[str]], schema: Schema) -> Iterator[Checked]:
        columns = [int(w) for w in self._where if w.isdigit()]
        if self._header:
            names = next(lines, [])
            missing = [w for w in self._where if w not in names]
            if missing:
                yield None, [], [(missing[0], f"the header has no such column: {names}")]
                return
            columns = [names.index(w) for w in self._where]
        for line in lines:
            if not line:
                continue
            if len(line) <= max(columns) or (self._exact and len(line) != len(columns)):
                yield None, [], [("line", f"{len(line)} columns, expected {len(columns)}")]
                continue
            yield parse_words([line[p] for p in columns], schema)


class _TextMapper:
    def __init__(self, spec: MapSpec, schema: Schema) -> None:
        check_options(spec, {"regex"})
        if spec.attributes:
            raise BadSpec("@map(type='text') takes no @attributes: name the groups of regex='...'")
        self._regex = self._compile(spec.options.get("regex", ""), schema)

    @staticmethod
    def _compile(pattern: str, schema: Schema) -> re.Pattern[str] | None:
        if not pattern:
            _require_one_string(schema, "text")
            return None
        try:
            regex = re.compile(pattern)
        except re.error as error:
            raise BadSpec(f"regex: {error}", "regex") from None
        missing = [name for name in schema.names if name not in regex.groupindex]
        if missing:
            raise BadSpec(f"regex has no group (?P<{missing[0]}>...)", "regex")
        return regex

    def read(self, payload: bytes, at_us: int, admission: Admission) -> AdmittedEvents | Refusal:
        text = decode_text(payload)
        if isinstance(text, Refusal):
            return text
        if self._regex is None:
            return admission.stamp(EventColumns([None], [[text]]), at_us)
        found = gather(self._events(text, self._regex, admission.schema))
        return admission.stamp(found, at_us)

    @staticmethod
    def _events(text: str, regex: re.Pattern[str], schema: Schema) -> Iterator[Checked]:
        for line in text.splitlines():
            match = regex.search(line[:LINE_CHARS_MAX])
            if match is None:
                yield None, [], [("line", "does not match the regex")]
            else:
                yield parse_words([match[name] for name in schema.names], schema)


def _build_text(spec: MapSpec, schema: Schema) -> PayloadReader:
    one_string = [a.type for a in schema.attributes] == [AttrType.STRING]
    if "regex" in spec.options or (one_string and not spec.options and not spec.attributes):
        return _TextMapper(spec, schema)
    from edgewise.gateway.siddhi_mappers import KeyedTextMapper

    return KeyedTextMapper(spec, schema)


def _build_xml(spec: MapSpec, schema: Schema) -> PayloadReader:
    from edgewise.gateway.siddhi_mappers import XmlMapper

    return XmlMapper(spec, schema)


class _BinaryMapper:
    def __init__(self, spec: MapSpec, schema: Schema) -> None:
        check_options(spec, {"layout"})
        layout = spec.options.get("layout", "")
        try:
            self._layout = struct.Struct(layout)
        except struct.error as error:
            raise BadSpec(f"layout '{layout}': {error}", "layout") from None
        names = schema.names
        count = len(self._layout.unpack(bytes(self._layout.size)))
        where = spec.attributes or {name: str(at) for at, name in enumerate(names)}
        if not layout or (not spec.attributes and count != len(names)):
            raise BadSpec(
                f"layout '{layout}' must have one value for each of: {', '.join(names)}", "layout"
            )
        for name in names:
            position = where.get(name, "")
            if not position.isdigit() or int(position) >= count:
                raise BadSpec(
                    f"@attributes must say a position for '{name}', 0 to {count - 1}", name
                )
        self._columns = [int(where[name]) for name in names]

    def read(self, payload: bytes, at_us: int, admission: Admission) -> AdmittedEvents | Refusal:
        if not payload or len(payload) % self._layout.size:
            reason = f"{len(payload)} bytes are no whole records of {self._layout.size}"
            return refuse_request(400, "malformed", reason)
        records = self._layout.iter_unpack(payload)
        rows = ([to_text(values[at]) for at in self._columns] for values in records)
        return admission.stamp(check_rows(rows, admission.schema), at_us)


def _build_binary(spec: MapSpec, schema: Schema) -> PayloadReader:
    if spec.options or spec.attributes:
        return _BinaryMapper(spec, schema)
    from edgewise.gateway.siddhi_binary import EventBinaryMapper

    return EventBinaryMapper(spec, schema)


class _AvroMapper:
    def __init__(self, spec: MapSpec, schema: Schema) -> None:
        from edgewise.gateway.avro import AvroCodec

        check_options(spec, {"schema"})
        self._reader = AvroCodec(spec.options.get("schema", ""))
        self._paths = [parse_path(spec.attributes.get(n, n)) for n in schema.names]

    def read(self, payload: bytes, at_us: int, admission: Admission) -> AdmittedEvents | Refusal:
        try:
            datum = self._reader.read(payload)
        except ValueError as error:
            return refuse_request(400, "malformed", str(error))
        rows = [[to_text(pick(datum, p)) for p in self._paths]]
        return admission.stamp(check_rows(rows, admission.schema), at_us)


MAPPERS: Mapping[str, Callable[[MapSpec, Schema], PayloadReader]] = {
    "json": _JsonMapper,
    "csv": _CsvMapper,
    "text": _build_text,
    "binary": _build_binary,
    "avro": _AvroMapper,
    "keyvalue": _JsonMapper,
    "passThrough": _PassThroughMapper,
    "xml": _build_xml,
}


def _require_one_string(schema: Schema, word: str) -> None:
    if [a.type for a in schema.attributes] != [AttrType.STRING]:
        raise BadSpec(
            f"@map(type='{word}') without options fills one string attribute; {schema.name} has "
            f"{', '.join(f'{a.name} {a.type.value}' for a in schema.attributes)}"
        )
