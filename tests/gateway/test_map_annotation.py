from dataclasses import dataclass

import pytest

from edgewise.gateway.map_annotation import SIDDHI_MAPS, parse_map
from edgewise.gateway.mappers import MAPPERS
from edgewise.gateway.spec import MapSpec


@dataclass
class Annotation:
    name: str
    pairs: tuple = ()
    nested: tuple = ()


def parse(word, kind, *nested, **options):
    pairs = (("type", kind), *((key.replace("_", "."), value) for key, value in options.items()))
    outer = Annotation(word, (), (Annotation("map", pairs, nested),))
    return parse_map(outer, word, "json", ("a", "b"))


def test_without_a_mapping_the_type_has_its_default():
    assert parse_map(Annotation("sink"), "sink", "passThrough", ()).spec == MapSpec("passThrough")


def test_attributes_without_names_are_those_of_the_stream_in_order():
    parsed = parse("source", "csv", Annotation("attributes", (("", "1"), ("", "0"))))
    assert parsed.spec.attributes == {"a": "1", "b": "0"}


def test_a_payload_is_a_template_or_names():
    template = Annotation("payload", (("", "{{a}}!"),))
    assert parse("sink", "text", template).spec.payload == "{{a}}!"
    names = Annotation("payload", (("x", "a"),))
    assert parse("sink", "keyvalue", names).spec.attributes == {"x": "a"}
    beside = Annotation("sink", (), (Annotation("map", (("type", "text"),)), template))
    assert parse_map(beside, "sink", "json", ()).spec.payload == "{{a}}!"


def test_json_that_is_written_out_has_the_envelope_of_siddhi():
    assert parse("sink", "json").spec.options == {"envelope": "event"}
    assert parse("sink", "json", envelope="false").spec.options == {"envelope": "false"}
    assert parse("source", "json").spec == MapSpec()


def test_options_of_siddhi_become_ours_or_are_told():
    parsed = parse("source", "csv", header_present="TRUE", fail_on_unknown_attribute="false")
    assert parsed.spec.options == {"header": "true"}
    assert [note.option for note in parsed.notes] == ["fail.on.unknown.attribute"]


@pytest.mark.parametrize(
    ("kind", "nested", "options", "words"),
    [
        ("protobuf", (), {}, "no mapping of type 'protobuf'"),
        ("avro", (), {"schema_registry": "http://h"}, "registry"),
        ("csv", (Annotation("payload", (("", "{{a}}"),)),), {}, "filled in for json, text, xml"),
        ("json", (Annotation("attributes", (("a", "trp:file"),)),), {}, "trp:"),
    ],
)
def test_a_mapping_that_only_siddhi_has_says_why_it_is_not_connected(kind, nested, options, words):
    assert words in parse("source", kind, *nested, **options).unconnected


def test_tables_are_of_types_that_exist():
    assert {kind for _, kind in SIDDHI_MAPS} <= set(MAPPERS)
