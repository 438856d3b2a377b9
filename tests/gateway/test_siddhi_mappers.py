import pytest

from edgewise.event.schema import Schema
from edgewise.gateway.admit import Admission, AdmissionLimits
from edgewise.gateway.mappers import build_mapper
from edgewise.gateway.refusal import Refusal
from edgewise.gateway.spec import BadSpec, MapSpec

SCHEMA = Schema.of("S", k="string", n="int")
LENIENT = {"fail.on.missing.attribute": "false"}


def read(spec, text, schema=SCHEMA):
    return build_mapper(spec, Admission(schema, AdmissionLimits())).read(text.encode(), 5000)


def rows(spec, text):
    got = read(spec, text)
    assert not isinstance(got, Refusal), got
    return list(zip(*got.values, strict=True))


@pytest.mark.parametrize(
    ("spec", "text", "expected"),
    [
        (
            MapSpec("xml"),
            "<events><event><k>a &amp; b</k><n>1</n></event><event><k/><n>2</n></event></events>",
            [("a & b", 1), (None, 2)],
        ),
        (MapSpec("xml"), "<event><k>a</k><n>1</n></event>", [("a", 1)]),
        (MapSpec("xml", LENIENT), "<events><event><n>1</n></event></events>", [(None, 1)]),
        (
            MapSpec("xml", {"enclosing.element": "//row"}, {"k": "a/@id", "n": "a/b"}),
            "<x><y><row><a id='i'><b>3</b></a></row><row><a id='j'><b>4</b></a></row></y></x>",
            [("i", 3), ("j", 4)],
        ),
        (
            MapSpec("xml", {"namespaces": "p=urn:x"}, {"k": "p:k", "n": "@n"}),
            "<r xmlns='urn:x' n='5'><k>a</k></r>",
            [("a", 5)],
        ),
    ],
)
def test_xml_is_read_by_path(spec, text, expected):
    assert rows(spec, text) == expected


@pytest.mark.parametrize(
    ("spec", "text", "expected"),
    [
        (MapSpec("text"), 'k:"a, b",\nn:7', [("a, b", 7)]),
        (MapSpec("text"), "n : 7, k : a", [("a", 7)]),
        (MapSpec("text", LENIENT), "n:7", [(None, 7)]),
        (
            MapSpec("text", {"event.grouping.enabled": "true"}),
            'k:"a",\nn:1\n~~~~~~~~~~\nk:"b",\nn:2',
            [("a", 1), ("b", 2)],
        ),
        (
            MapSpec(
                "text", {"regex.a": r"id=(?<w>\w+)", "regex.b": "[0-9]+"}, {"k": "A[1]", "n": "B"}
            ),
            "id=x 42",
            [("x", 42)],
        ),
    ],
)
def test_text_is_read_by_attribute(spec, text, expected):
    assert rows(spec, text) == expected


@pytest.mark.parametrize(
    ("spec", "text", "words"),
    [
        (MapSpec("xml"), "<events><event><n>1</n></event></events>", "missing"),
        (MapSpec("xml"), "<events>", "not XML"),
        (MapSpec("xml"), "<!DOCTYPE x [<!ENTITY a 'b'>]><x/>", "a document type is not read"),
        (MapSpec("xml"), "<event><k>a</k><n>one</n></event>", "expected int"),
        (MapSpec("text"), "nothing", "missing"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_reason(spec, text, words):
    got = read(spec, text)
    assert isinstance(got, Refusal)
    assert words in got.message + "".join(problem.reason for problem in got.problems)


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        (MapSpec("xml", {}, {"k": "a["}), "is no path into XML"),
        (MapSpec("xml", {"root": "x"}), "no option 'root'"),
        (MapSpec("text", {"regex.a": "("}, {"k": "A"}), r"regex\.a: "),
        (MapSpec("text", {"regex.a": "."}, {"k": "A"}), "name a group for 'n', such as A"),
        (MapSpec("text", {"regex.a": "."}, {"k": "A[1]", "n": "A"}), "the regex has 0 groups"),
        (MapSpec("text", {}, {"k": "A"}), "there is no regex"),
    ],
)
def test_a_mapping_that_cannot_work_is_refused_at_once(spec, words):
    with pytest.raises(BadSpec, match=words):
        read(spec, "")
