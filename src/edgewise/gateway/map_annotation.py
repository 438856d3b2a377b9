"""Parse `@map(...)` of a source or sink, under our option names and Siddhi's. Pure.

The result is the mapping, notes on options that do nothing here, and, for a mapping that only
Siddhi has, why it is not connected. Used by `connectors`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from edgewise.gateway.siddhi_options import (
    SiddhiOption,
    SiddhiOptions,
    ignore_option,
    rename_option,
    translate_options,
)
from edgewise.gateway.spec import MapSpec, Note


class AnnotationLike(Protocol):
    """`plan.annotations.Annotation`, which this room does not know."""

    @property
    def name(self) -> str: ...
    @property
    def pairs(self) -> tuple[tuple[str, str], ...]: ...
    @property
    def nested(self) -> tuple[Any, ...]: ...


@dataclass(frozen=True, slots=True)
class ParsedMap:
    spec: MapSpec
    notes: tuple[Note, ...] = ()
    unconnected: str = ""


_GROUPING = ignore_option("one event and lists of events are both read", "true", "false")
_ONE_ROW = ignore_option("each row is one payload", "false")
_AVRO: SiddhiOptions = {
    "schema.def": rename_option("schema"),
    "use.avro.deserializer": ignore_option("payloads are plain Avro", "false"),
    "use.avro.serializer": ignore_option("payloads are plain Avro", "false"),
}
_MISSING = ignore_option("a path that finds nothing gives null")
SIDDHI_MAPS: Mapping[tuple[str, str], SiddhiOptions] = {
    ("source", "json"): {"event.grouping.enabled": _GROUPING},
    ("source", "csv"): {
        "header.present": SiddhiOption(lambda value: {"header": value.lower()}),
        "fail.on.unknown.attribute": ignore_option(
            "an event with a value of another type is refused", "true"
        ),
        "event.grouping.enabled": _GROUPING,
    },
    ("source", "text"): {
        "new.line.character": ignore_option("all line ends are read"),
        "fail.on.unknown.attribute": rename_option("fail.on.missing.attribute"),
    },
    ("source", "xml"): {
        "enclosing.element.as.event": ignore_option("each enclosing element is an event", "true"),
        "enable.streaming.xml.content": ignore_option("a payload is read whole", "false"),
        "extract.leaf.node.data": ignore_option("the text of an element is read", "false"),
    },
    ("source", "keyvalue"): {
        "implicit.cast.enable": ignore_option("values have the types of JSON", "false"),
    },
    ("source", "avro"): {**_AVRO, "fail.on.missing.attribute": _MISSING},
    ("sink", "json"): {
        "event.grouping.enabled": _ONE_ROW,
        "validate.json": ignore_option("a payload that is not a template is JSON by itself"),
        "enable.null.attribute.value": ignore_option("null is written as null", "true"),
    },
    ("sink", "csv"): {
        "header": ignore_option("a file begins with a header, other sinks have none"),
        "event.grouping.enabled": _ONE_ROW,
    },
    ("sink", "text"): {
        "event.grouping.enabled": _ONE_ROW,
        "delimiter": ignore_option("each row is one payload"),
        "new.line.character": ignore_option("lines end with a line feed"),
        "mustache.enabled": ignore_option("{{attribute}} is filled in, other tags are not"),
    },
    ("sink", "xml"): {
        "validate.xml": ignore_option("a payload that is not a template is XML by itself"),
    },
    ("sink", "avro"): _AVRO,
}
TRANSPORTS = {"http-call-response", "http-response"}  # sources that know `trp:attribute`
TEMPLATE_TYPES = ("json", "text", "xml")  # mappings that take @payload('...')
_UNCONNECTED: Mapping[str, str] = {
    "protobuf": "use json, avro or binary",
    "binaryPassThrough": "use binary with a layout",
    "wso2event": "use json",
}


def parse_map(
    annotation: AnnotationLike, word: str, default_map: str, names: Sequence[str]
) -> ParsedMap:
    """`word` is 'source' or 'sink', `names` are the attributes of the stream."""
    for inner in annotation.nested:
        if inner.name.lower() == "map":
            return _parse(inner, annotation, word, names)
    return ParsedMap(MapSpec(default_map))


def _parse(
    annotation: AnnotationLike, outer: AnnotationLike, word: str, names: Sequence[str]
) -> ParsedMap:
    given = {key.lower(): value for key, value in annotation.pairs}
    kind = given.pop("type", "json")
    options, notes = translate_options(given, SIDDHI_MAPS.get((word, kind), {}), {})
    spec = MapSpec(kind, options)
    # Some apps have @payload beside @map instead of in it: Siddhi reads it there too.
    for deeper in (*annotation.nested, *(a for a in outer.nested if a.name.lower() != "map")):
        if deeper.name.lower() == "payload" and [key for key, _ in deeper.pairs] == [""]:
            spec = replace(spec, payload=deeper.pairs[0][1])
        elif deeper.name.lower() in {"attributes", "payload"}:
            spec = replace(spec, attributes=_name_pairs(deeper.pairs, names))
    if word == "sink" and kind == "json" and not spec.attributes and not spec.payload:
        # A mapping that is written out means what it means in Siddhi.
        spec = replace(spec, options={"envelope": "event", **options})
    return ParsedMap(spec, notes, _explain_unconnected(spec, options_of=outer))


def _name_pairs(pairs: tuple[tuple[str, str], ...], names: Sequence[str]) -> dict[str, str]:
    """Values without a name belong to the attributes in their order."""
    if pairs and not any(key for key, _ in pairs):
        return dict(zip(names, (value for _, value in pairs), strict=False))
    return dict(pairs)


def _explain_unconnected(spec: MapSpec, options_of: AnnotationLike) -> str:
    if why := _UNCONNECTED.get(spec.type):
        return f"there is no mapping of type '{spec.type}': {why}"
    if "schema.registry" in spec.options or "schema.id" in spec.options:
        return "schemas are not fetched from a registry: give the schema, schema.def='...'"
    if spec.payload and spec.type not in TEMPLATE_TYPES:
        return f"@payload('...') is filled in for {', '.join(TEMPLATE_TYPES)}; not {spec.type}"
    kinds = [value for key, value in options_of.pairs if key.lower() == "type"]
    has_properties = spec.type == "json" and set(kinds) & TRANSPORTS
    if any(where.startswith("trp:") for where in spec.attributes.values()) and not has_properties:
        return "properties of the transport (trp:...) are not read"
    return ""
