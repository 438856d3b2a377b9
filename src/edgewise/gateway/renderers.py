"""`@map(...)` of sinks: one event as the payload of a message. Pure.

    @map(type='json')                                an object of the attributes
    @map(type='json', envelope='true')               {"ts": 1000, "data": {...}}
    @map(type='csv', delimiter=';')                  the values of one line
    @map(type='text', template='{{ip}} failed {{n}} times')
    @map(type='binary', layout='>Id8s')              one record of struct's format characters
    @map(type='avro', schema=...)                    one datum, without a header

`@attributes(client='ip')` renames: the key is what is sent, the value the attribute.
"""

from __future__ import annotations

import csv
import io
import re
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from edgewise.event.schema import Schema
from edgewise.event.types import AttrType
from edgewise.gateway.spec import BadSpec, MapSpec

Renderer = Callable[[int, Sequence[Any]], bytes]  # event time, values in schema order
_HOLE = re.compile(r"\{\{\s*([^}\s]+)\s*\}\}")


def renderer_of(spec: MapSpec, schema: Schema) -> Renderer:
    """BadSpec where the mapping cannot work for this stream."""
    known = RENDERERS.get(spec.type)
    if known is None:
        raise BadSpec(f"no mapping of type '{spec.type}'; known: {', '.join(RENDERERS)}", "type")
    make, options = known
    for name in spec.options:
        if name not in options:
            raise BadSpec(f"@map(type='{spec.type}') of a sink has no option '{name}'", name)
    return make(spec, schema)


def _names(spec: MapSpec, schema: Schema) -> list[tuple[str, int]]:
    """What is sent under which name, and where it stands in the row."""
    if not spec.attributes:
        return [(name, index) for index, name in enumerate(schema.names)]
    return [(name, _index(schema, source)) for name, source in spec.attributes.items()]


def _index(schema: Schema, name: str) -> int:
    index = schema.index(name)
    if index < 0:
        raise BadSpec(f"{schema.name} has no attribute '{name}'", name)
    return index


def _json(spec: MapSpec, schema: Schema) -> Renderer:
    names = _names(spec, schema)
    objects = {i for i, a in enumerate(schema.attributes) if a.type is AttrType.OBJECT}
    envelope = spec.options.get("envelope", "false") == "true"
    encode = msgspec.json.Encoder().encode

    def render(ts: int, row: Sequence[Any]) -> bytes:
        data = {
            name: msgspec.Raw(row[i].encode()) if i in objects and row[i] is not None else row[i]
            for name, i in names
        }
        return encode({"ts": ts, "data": data} if envelope else data)

    return render


def _csv(spec: MapSpec, schema: Schema) -> Renderer:
    delimiter = spec.options.get("delimiter", ",").replace("\\t", "\t")
    if len(delimiter) != 1:
        raise BadSpec("delimiter is one character", "delimiter")
    places = [index for _, index in _names(spec, schema)]

    def render(_ts: int, row: Sequence[Any]) -> bytes:
        out = io.StringIO()
        line = csv.writer(out, delimiter=delimiter, lineterminator="")
        line.writerow(["" if row[i] is None else _word(row[i]) for i in places])
        return out.getvalue().encode()

    return render


def _text(spec: MapSpec, schema: Schema) -> Renderer:
    template = spec.options.get("template", "")
    if spec.attributes:
        raise BadSpec("@map(type='text') of a sink takes no @attributes: say template='...'")
    if not template:
        if len(schema.attributes) != 1:
            raise BadSpec("@map(type='text') of a sink needs template='...'", "template")
        template = "{{" + schema.names[0] + "}}"
    places = {name: _index(schema, name) for name in _HOLE.findall(template)}

    def render(_ts: int, row: Sequence[Any]) -> bytes:
        return _HOLE.sub(lambda hole: _word(row[places[hole[1]]]), template).encode()

    return render


def _binary(spec: MapSpec, schema: Schema) -> Renderer:
    layout = spec.options.get("layout", "")
    places = [index for _, index in _names(spec, schema)]
    try:
        packer = struct.Struct(layout)
        fits = len(packer.unpack(bytes(packer.size))) == len(places)
    except struct.error as bad:
        raise BadSpec(f"layout '{layout}': {bad}", "layout") from None
    if not fits:
        raise BadSpec(f"layout '{layout}' must have {len(places)} values", "layout")
    zeros = [_ZERO[schema.attributes[i].type] for i in places]

    def render(_ts: int, row: Sequence[Any]) -> bytes:
        values = [
            zero if row[i] is None else row[i] for i, zero in zip(places, zeros, strict=True)
        ]
        return packer.pack(*(v.encode() if isinstance(v, str) else v for v in values))

    return render


def _avro(spec: MapSpec, schema: Schema) -> Renderer:
    from edgewise.gateway.avro import AvroCodec

    codec = AvroCodec(spec.options.get("schema", ""))
    names = _names(spec, schema)
    return lambda _ts, row: codec.write({name: row[i] for name, i in names})


def _word(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "null" if value is None else str(value)


# A fixed layout has no null.
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
    "json": (_json, {"envelope"}),
    "csv": (_csv, {"delimiter"}),
    "text": (_text, {"template"}),
    "binary": (_binary, {"layout"}),
    "avro": (_avro, {"schema"}),
}
