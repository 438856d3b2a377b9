"""Render an event as the payload of a message, as `@map(...)` of a sink declares. Pure.

    @map(type='json')                                an object of the attributes
    @map(type='json', envelope='true')               {"ts": 1000, "data": {...}}
    @map(type='csv', delimiter=';')                  the values of one line
    @map(type='text', template='{{ip}} failed {{n}} times')
    @map(type='binary', layout='>Id8s')              one record in the format of Python's struct
    @map(type='avro', schema=...)                    one datum, without a header
    @map(type='json', envelope='event')              {"event": {...}}, as Siddhi has it
    @map(type='json', @payload('{"a": {{n}}}'))      a template; also of text and xml
    @map(type='xml')                                 <events><event><ip>...</ip></event></events>
    @map(type='keyvalue')                            an object of the attributes
    @map(type='passThrough')                         {"ts": 1000, "data": [...]}, for `inMemory`

`@attributes(client='ip')` renames: the key is the name that is sent, the value the attribute.
Used by `sink_reader`, and for topics, keys and subjects with `{{attribute}}` in them.
"""

from __future__ import annotations

import csv
import html
import io
import re
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from edgewise.event.schema import Schema
from edgewise.event.types import AttrType
from edgewise.gateway.json_body import EVENT_KEY
from edgewise.gateway.payload_values import check_options
from edgewise.gateway.spec import BadSpec, MapSpec

Renderer = Callable[[int, Sequence[Any]], bytes]  # event time, values in schema order
ENVELOPES = ("false", "true", "event")
_ELEMENT = re.compile(r"\s*<([^\s/>]+)")
_PLACEHOLDER = re.compile(r"\{\{\s*([^}\s]+)\s*\}\}")


def build_renderer(spec: MapSpec, schema: Schema) -> Renderer:
    """BadSpec where the mapping cannot work for this stream."""
    known = RENDERERS.get(spec.type)
    if known is None:
        raise BadSpec(f"no mapping of type '{spec.type}'; known: {', '.join(RENDERERS)}", "type")
    make, options = known
    if spec.payload:
        if spec.type not in _ESCAPES:
            known_types = ", ".join(_ESCAPES)
            raise BadSpec(f"@payload('...') is for mappings of type {known_types}", "payload")
        make = _build_payload
    check_options(spec, options)
    return make(spec, schema)


def _list_names(spec: MapSpec, schema: Schema) -> list[tuple[str, int]]:
    """Names to send, each with the index of its value in the row."""
    if not spec.attributes:
        return [(name, index) for index, name in enumerate(schema.names)]
    return [(name, _find_attribute(schema, source)) for name, source in spec.attributes.items()]


def _find_attribute(schema: Schema, name: str) -> int:
    index = schema.index(name)
    if index < 0:
        raise BadSpec(f"{schema.name} has no attribute '{name}'", name)
    return index


def _build_payload(spec: MapSpec, schema: Schema) -> Renderer:
    """`@payload('...{{attribute}}...')`: values are escaped as the format needs it."""
    opening = spec.options.get("enclosing.element", "") if spec.type == "xml" else ""
    template = f"{opening}{spec.payload}{_close_element(opening)}"
    escape = _ESCAPES[spec.type]
    indexes = {name: _find_attribute(schema, name) for name in _PLACEHOLDER.findall(template)}

    def render(_ts: int, row: Sequence[Any]) -> bytes:
        return _PLACEHOLDER.sub(
            lambda placeholder: escape(_to_text(row[indexes[placeholder[1]]])), template
        ).encode()

    return render


def _close_element(opening: str) -> str:
    name = _ELEMENT.match(opening)
    return f"</{name[1]}>" if name else ""


def _build_xml(spec: MapSpec, schema: Schema) -> Renderer:
    names = _list_names(spec, schema)
    opening = spec.options.get("enclosing.element", "") or "<events>"
    closing = _close_element(opening)

    def render(_ts: int, row: Sequence[Any]) -> bytes:
        inner = "".join(
            f"<{name}/>" if row[i] is None else f"<{name}>{html.escape(_to_text(row[i]))}</{name}>"
            for name, i in names
        )
        return f"{opening}<event>{inner}</event>{closing}".encode()

    return render


def _build_json(spec: MapSpec, schema: Schema) -> Renderer:
    names = _list_names(spec, schema)
    objects = {i for i, a in enumerate(schema.attributes) if a.type is AttrType.OBJECT}
    envelope = spec.options.get("envelope", "false")
    if envelope not in ENVELOPES:
        raise BadSpec(f"envelope='{envelope}' must be one of: {', '.join(ENVELOPES)}", "envelope")
    steps = spec.options.get("enclosing.element", "").lstrip("$").split(".")
    enclosing = [step for step in reversed(steps) if step]
    encode = msgspec.json.Encoder().encode

    def render(ts: int, row: Sequence[Any]) -> bytes:
        data = {
            name: msgspec.Raw(row[i].encode()) if i in objects and row[i] is not None else row[i]
            for name, i in names
        }
        if envelope == "event":
            value: Any = {EVENT_KEY: data}
        else:
            value = {"ts": ts, "data": data} if envelope == "true" else data
        for key in enclosing:
            value = {key: value}
        return encode(value)

    return render


def _build_csv(spec: MapSpec, schema: Schema) -> Renderer:
    delimiter = spec.options.get("delimiter", ",").replace("\\t", "\t")
    if len(delimiter) != 1:
        raise BadSpec("delimiter is one character", "delimiter")
    by_column = bool(spec.attributes) and all(v.isdigit() for v in spec.attributes.values())
    if by_column:  # @payload(ip='1', n='0'): attributes with their columns, as Siddhi has it
        columns = sorted((int(v), name) for name, v in spec.attributes.items())
        indexes = [_find_attribute(schema, name) for _, name in columns]
    else:
        indexes = [index for _, index in _list_names(spec, schema)]

    def render(_ts: int, row: Sequence[Any]) -> bytes:
        out = io.StringIO()
        line = csv.writer(out, delimiter=delimiter, lineterminator="")
        line.writerow(["" if row[i] is None else _to_text(row[i]) for i in indexes])
        return out.getvalue().encode()

    return render


def _build_text(spec: MapSpec, schema: Schema) -> Renderer:
    template = spec.options.get("template", "")
    if spec.attributes:
        raise BadSpec("@map(type='text') of a sink takes no @attributes: say template='...'")
    if not template:
        template = (
            "{{" + schema.names[0] + "}}"
            if len(schema.attributes) == 1
            else ",\n".join(_format_pair(a.name, a.type) for a in schema.attributes)
        )
    indexes = {name: _find_attribute(schema, name) for name in _PLACEHOLDER.findall(template)}

    def render(_ts: int, row: Sequence[Any]) -> bytes:
        return _PLACEHOLDER.sub(
            lambda placeholder: _to_text(row[indexes[placeholder[1]]]), template
        ).encode()

    return render


def _format_pair(name: str, kind: AttrType) -> str:
    """As Siddhi writes an attribute as text: `ip:"{{ip}}"`, `n:{{n}}`."""
    quote = '"' if kind is AttrType.STRING else ""
    return f"{name}:{quote}{{{{{name}}}}}{quote}"


def _build_binary(spec: MapSpec, schema: Schema) -> Renderer:
    layout = spec.options.get("layout", "")
    if not layout and not spec.attributes:
        from edgewise.gateway.siddhi_binary import build_event_renderer

        return build_event_renderer(spec, schema)
    indexes = [index for _, index in _list_names(spec, schema)]
    try:
        packer = struct.Struct(layout)
        fits = len(packer.unpack(bytes(packer.size))) == len(indexes)
    except struct.error as error:
        raise BadSpec(f"layout '{layout}': {error}", "layout") from None
    if not fits:
        raise BadSpec(f"layout '{layout}' must have {len(indexes)} values", "layout")
    zeros = [_ZERO[schema.attributes[i].type] for i in indexes]

    def render(_ts: int, row: Sequence[Any]) -> bytes:
        values = [
            zero if row[i] is None else row[i] for i, zero in zip(indexes, zeros, strict=True)
        ]
        return packer.pack(*(v.encode() if isinstance(v, str) else v for v in values))

    return render


def _build_avro(spec: MapSpec, schema: Schema) -> Renderer:
    from edgewise.gateway.avro import AvroCodec

    codec = AvroCodec(spec.options.get("schema", ""))
    names = _list_names(spec, schema)
    return lambda _ts, row: codec.write({name: row[i] for name, i in names})


def _build_pass_through(spec: MapSpec, schema: Schema) -> Renderer:
    del spec
    objects = [a.type is AttrType.OBJECT for a in schema.attributes]
    encode = msgspec.json.Encoder().encode

    def render(ts: int, row: Sequence[Any]) -> bytes:
        data = [
            msgspec.Raw(value.encode()) if is_object and value is not None else value
            for value, is_object in zip(row, objects, strict=True)
        ]
        return encode({"ts": ts, "data": data})

    return render


def _to_text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "null" if value is None else str(value)


def _escape_json(text: str) -> str:
    return msgspec.json.encode(text).decode()[1:-1]


# What `@payload` does with the text of a value.
_ESCAPES: Mapping[str, Callable[[str], str]] = {
    "json": _escape_json,
    "text": str,
    "xml": html.escape,
}

# What a fixed layout has for null.
_ZERO: Mapping[AttrType, Any] = {
    AttrType.STRING: "",
    AttrType.INT: 0,
    AttrType.LONG: 0,
    AttrType.FLOAT: 0.0,
    AttrType.DOUBLE: 0.0,
    AttrType.BOOL: False,
    AttrType.OBJECT: "",
}

RENDERERS: Mapping[str, tuple[Callable[[MapSpec, Schema], Renderer], set[str]]] = {
    "json": (_build_json, {"envelope", "enclosing.element"}),
    "keyvalue": (_build_json, set()),
    "xml": (_build_xml, {"enclosing.element"}),
    "csv": (_build_csv, {"delimiter"}),
    "text": (_build_text, {"template"}),
    "binary": (_build_binary, {"layout"}),
    "avro": (_build_avro, {"schema"}),
    "passThrough": (_build_pass_through, set()),
}
