r"""Map payloads in the forms that Siddhi's mappers have: XML, and text by attribute. Pure.

    @map(type='xml')                     <events><event><ip>..</ip><n>3</n></event></events>
    @map(type='xml', enclosing.element='//row', @attributes(ip='client/ip', n='@count'))
    @map(type='text')                    ip:"10.0.0.1",\nn:3
    @map(type='text', regex.A='ip=(\S+)', regex.B='(\d+)', @attributes(ip='A[1]', n='B'))

An attribute that is not found is null where `fail.on.missing.attribute='false'`, otherwise the
event is refused. Used by `mappers`, which loads it only for these mappings.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from edgewise.event.schema import Schema
from edgewise.gateway.json_body import Checked, gather
from edgewise.gateway.payload_values import check_options, decode_text, parse_words
from edgewise.gateway.refusal import Refusal, refuse_request
from edgewise.gateway.spec import BadSpec, MapSpec

if TYPE_CHECKING:  # `edgewise check` checks mappings and must not load Arrow
    from edgewise.gateway.admit import Admission, AdmittedEvents

TEXT_DELIMITER = "~" * 10  # between two events of one payload, as Siddhi has it
_PAIR = re.compile(r'(\w+)\s*:\s*(?:"([^"]*)"|([^,\r\n]*))')
_GROUP = re.compile(r"(\w+)(?:\[(\d+)\])?")
_ATTRIBUTE = re.compile(r"(?:(.*)/)?@([\w.:-]+)")


class XmlMapper:
    """By ElementTree, whose XPath is a part of the language: steps, `//`, `[n]`, `@name`."""

    def __init__(self, spec: MapSpec, schema: Schema) -> None:
        check_options(spec, {"namespaces", "enclosing.element", "fail.on.missing.attribute"})
        self._strict = _fails_on_missing(spec)
        self._namespaces = _parse_namespaces(spec.options.get("namespaces", ""))
        enclosing = spec.options.get("enclosing.element", "")
        if not spec.attributes and not enclosing:
            enclosing = "event"
        self._enclosing = _make_relative(enclosing)
        self._paths = [spec.attributes.get(name, name) for name in schema.names]
        self._probe()

    def _probe(self) -> None:
        """BadSpec where a path is not one that can be read."""
        for path in (self._enclosing, *self._paths):
            try:
                self._find_text(ET.Element("probe"), path)
            except (SyntaxError, KeyError, TypeError) as error:  # as ElementTree has it
                raise BadSpec(f"'{path}' is no path into XML: {error}", "map") from None

    def read(self, payload: bytes, at_us: int, admission: Admission) -> AdmittedEvents | Refusal:
        text = decode_text(payload)
        if isinstance(text, Refusal):
            return text
        if "<!DOCTYPE" in text or "<!ENTITY" in text:  # entities can grow without end
            return refuse_request(400, "malformed", "XML with a document type is not read")
        try:
            root = ET.fromstring(text)  # noqa: S314  there are no entities
        except ET.ParseError as error:
            return refuse_request(400, "malformed", f"not XML: {error}")
        found = gather(self._events(root, admission.schema))
        return admission.stamp(found, at_us)

    def _events(self, root: ET.Element, schema: Schema) -> Iterator[Checked]:
        if not self._enclosing or root.tag == self._enclosing:
            elements = [root]
        else:
            elements = root.findall(self._enclosing, self._namespaces)
        for element in elements:
            words = [self._find_text(element, path) for path in self._paths]
            yield _check_words(words, schema, strict=self._strict)

    def _find_text(self, element: ET.Element, path: str) -> str | None:
        if by_name := _ATTRIBUTE.fullmatch(path):
            inner = (
                element.find(_make_relative(by_name[1]), self._namespaces)
                if by_name[1]
                else element
            )
            return None if inner is None else inner.get(by_name[2])
        inner = element.find(_make_relative(path), self._namespaces) if path else element
        return None if inner is None else (inner.text or "")


class KeyedTextMapper:
    """`name:"value"` pairs, or one regular expression for each attribute."""

    def __init__(self, spec: MapSpec, schema: Schema) -> None:
        regexes = {
            name.removeprefix("regex."): _compile(name, value)
            for name, value in spec.options.items()
            if name.startswith("regex.")
        }
        rest = {n: v for n, v in spec.options.items() if not n.startswith("regex.")}
        check_options(
            MapSpec(spec.type, rest),
            {"fail.on.missing.attribute", "event.grouping.enabled", "delimiter"},
        )
        self._strict = _fails_on_missing(spec)
        grouped = spec.options.get("event.grouping.enabled", "false").lower() == "true"
        self._delimiter = spec.options.get("delimiter", TEXT_DELIMITER) if grouped else ""
        self._names = schema.names
        self._regexes: list[tuple[re.Pattern[str], int]] = []
        if spec.attributes and not regexes:
            raise BadSpec("@attributes of text name groups of regex.A='...'; there is no regex")
        if regexes:
            where = {name: spec.attributes.get(name, "") for name in schema.names}
            self._regexes = [_choose_group(name, w, regexes) for name, w in where.items()]

    def read(self, payload: bytes, at_us: int, admission: Admission) -> AdmittedEvents | Refusal:
        text = decode_text(payload)
        if isinstance(text, Refusal):
            return text
        parts = text.split(self._delimiter) if self._delimiter else [text]
        checked = (
            _check_words(self._find_words(part), admission.schema, strict=self._strict)
            for part in parts
            if part.strip()
        )
        return admission.stamp(gather(checked), at_us)

    def _find_words(self, text: str) -> list[str | None]:
        if self._regexes:
            matches = [(regex.search(text), group) for regex, group in self._regexes]
            return [match[group] if match else None for match, group in matches]
        pairs: dict[str, str] = {}
        for name, quoted, plain in _PAIR.findall(text):
            pairs.setdefault(name, quoted or plain.strip())
        return [pairs.get(name) for name in self._names]


def _compile(name: str, pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(re.sub(r"\(\?<(?=[A-Za-z])", "(?P<", pattern))  # as Java names groups
    except re.error as error:
        raise BadSpec(f"{name}: {error}", name) from None


def _choose_group(
    name: str, where: str, regexes: Mapping[str, re.Pattern[str]]
) -> tuple[re.Pattern[str], int]:
    match = _GROUP.fullmatch(where)
    regex = regexes.get(match[1].lower()) if match else None
    if match is None or regex is None:
        known = ", ".join(f"{key.upper()}[1]" for key in regexes)
        raise BadSpec(f"@attributes must name a group for '{name}', such as {known}", name)
    group = int(match[2] or 0)
    if group > regex.groups:
        raise BadSpec(f"{name}='{where}': the regex has {regex.groups} groups", name)
    return regex, group


def _fails_on_missing(spec: MapSpec) -> bool:
    return spec.options.get("fail.on.missing.attribute", "true").lower() != "false"


def _check_words(words: list[str | None], schema: Schema, *, strict: bool) -> Checked:
    missing = [name for name, w in zip(schema.names, words, strict=True) if w is None]
    if missing and strict:
        return None, [], [(name, "missing") for name in missing]
    return parse_words(words, schema)


def _parse_namespaces(text: str) -> dict[str, str]:
    """`a=urn:x,b=urn:y`."""
    pairs = (pair.partition("=") for pair in text.split(",") if pair.strip())
    return {prefix.strip(): uri.strip() for prefix, _, uri in pairs}


def _make_relative(path: str) -> str:
    return f".{path}" if path.startswith("/") else path
