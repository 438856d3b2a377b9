import json
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgewise.event.schema import Schema
from edgewise.gateway.admit import Admission, AdmissionLimits
from edgewise.gateway.mappers import MAPPERS, build_mapper
from edgewise.gateway.refusal import Refusal
from edgewise.gateway.spec import BadSpec, MapSpec

SCHEMA = Schema.of("S", k="string", n="int", d="double", ok="bool")
LINE = Schema.of("L", line="string")
AVRO = json.dumps(
    {
        "type": "record",
        "name": "r",
        "fields": [
            {"name": "key", "type": "string"},
            {"name": "n", "type": ["null", "int"]},
            {"name": "d", "type": "double"},
            {"name": "ok", "type": "boolean"},
        ],
    }
)
SPECS = {
    "json": MapSpec("json"),
    "picked": MapSpec("json", {}, {"k": "a.k", "n": "$.list[1]"}),
    "csv": MapSpec("csv"),
    "headed": MapSpec("csv", {"header": "true"}),
    "regex": MapSpec("text", {"regex": r"(?P<k>\S+) (?P<n>\S+) (?P<d>\S+) (?P<ok>\S+)"}),
    "binary": MapSpec("binary", {"layout": "<4sid?"}),
    "places": MapSpec("binary", {"layout": "<?xd4sHi"}, {"k": "2", "n": "4", "d": "1", "ok": "0"}),
    "avro": MapSpec("avro", {"schema": AVRO}, {"k": "key"}),
    "enclosed": MapSpec("json", {"enclosing.element": "$.a.rows"}),
    "lenient": MapSpec("json", {"fail.on.missing.attribute": "false"}),
    "strict": MapSpec("json", {"fail.on.missing.attribute": "true"}, {"k": "a.k"}),
    "keyvalue": MapSpec("keyvalue", {}, {"k": "key"}),
    "passed": MapSpec("passThrough"),
    "xml": MapSpec("xml"),
    "pairs": MapSpec("text"),
}


def read(spec, payload, schema=SCHEMA):
    return build_mapper(spec, Admission(schema, AdmissionLimits())).read(payload, 5000)


def rows(got):
    assert not isinstance(got, Refusal), got
    return list(zip(*got.values, strict=True))


def avro(**datum):
    import io

    import fastavro

    out = io.BytesIO()
    fastavro.schemaless_writer(out, json.loads(AVRO), datum)
    return out.getvalue()


@pytest.mark.parametrize(
    ("spec", "payload", "expected"),
    [
        ("json", b'{"k":"a","n":1,"d":2,"ok":true}', [("a", 1, 2.0, True)]),
        (
            "picked",
            b'[{"a":{"k":"x"},"list":[0,7],"d":1.5,"ok":null,"more":1}]',
            [("x", 7, 1.5, None)],
        ),
        ("picked", b"{}", [(None, None, None, None)]),
        ("csv", b'a,1,2.5,true\r\n"b, c",,,\n', [("a", 1, 2.5, True), ("b, c", None, None, None)]),
        ("headed", b"ok,extra,n,k,d\nFALSE,x,5,a,1e3\n", [("a", 5, 1000.0, False)]),
        ("regex", b"a 1 2 true\nb -5 0.5 false", [("a", 1, 2.0, True), ("b", -5, 0.5, False)]),
        ("binary", struct.pack("<4sid?", b"ab", 7, 0.5, True) * 2, [("ab", 7, 0.5, True)] * 2),
        ("places", struct.pack("<?xd4sHi", True, 0.5, b"ab", 9, 7), [("ab", 7, 0.5, True)]),
        ("avro", avro(key="k", n=None, d=0.5, ok=False), [("k", None, 0.5, False)]),
    ],
)
def test_payloads_become_events(spec, payload, expected):
    assert rows(read(SPECS[spec], payload)) == expected


@pytest.mark.parametrize(
    ("spec", "payload", "field"),
    [
        ("picked", b'{"a":{"k":5}}', "k"),
        ("picked", b"{", "body"),
        ("csv", b"a,x,1,true", "n"),
        ("csv", b"a,1,1", "line"),
        ("csv", b"a,1,nan,true", "d"),
        ("csv", b"a,99999999999,1,true", "n"),
        ("csv", b"a,1_0,1,true", "n"),
        ("csv", b'"a,1,1,true', "body"),
        ("csv", b"\xff", "body"),
        ("csv", b"", "body"),
        ("headed", b"k,n,d\na,1,1\n", "ok"),
        ("regex", b"nothing", "line"),
        ("regex", b"a b 1 true", "n"),
        ("binary", b"123", "body"),
        ("binary", b"", "body"),
        ("avro", b"\x02", "body"),
        ("avro", avro(key="k", n=1, d=0.5, ok=True) + b"x", "body"),
    ],
)
def test_what_does_not_fit_names_its_field(spec, payload, field):
    got = read(SPECS[spec], payload)
    assert isinstance(got, Refusal)
    assert got.problems[0].field == field


def test_text_fills_the_one_string_attribute():
    assert rows(read(MapSpec("text"), "héllo\n".encode(), LINE)) == [("héllo\n",)]


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        (MapSpec("yaml"), "no mapping of type 'yaml'"),
        (MapSpec("text", {"regex": ""}), "fills one string attribute"),
        (MapSpec("text", {"regex": "("}), "regex: "),
        (MapSpec("text", {"regex": "(?P<k>.)"}), r"no group \(\?P<n>"),
        (MapSpec("csv", {"delimiter": "ab"}), "one character"),
        (MapSpec("csv", {}, {"k": "name"}), "a column is a number"),
        (MapSpec("csv", {"sep": ","}), "no option 'sep'"),
        (MapSpec("json", {}, {"zz": "a"}), "@attributes names 'zz'"),
        (MapSpec("binary", {"layout": "<i"}), "one value for each"),
        (MapSpec("binary", {"layout": "%"}), "layout '%'"),
        (MapSpec("binary", {"layout": "<ii"}, {"k": "2"}), "a position for 'k', 0 to 1"),
        (MapSpec("text", {"regex": "."}, {"k": "0"}), "name the groups"),
        (MapSpec("avro"), "needs schema"),
        (MapSpec("avro", {"schema": "{"}), "cannot be read"),
    ],
)
def test_a_mapping_that_cannot_work_is_refused_at_once(spec, words):
    with pytest.raises(BadSpec, match=words):
        build_mapper(spec, Admission(SCHEMA, AdmissionLimits()))


@given(st.sampled_from(sorted(SPECS)), st.binary(max_size=60) | st.text().map(str.encode))
def test_no_payload_raises(spec, payload):
    got = read(SPECS[spec], payload)
    assert not isinstance(got, Refusal) or got.problems[0].reason


def test_every_type_of_the_language_has_a_mapper():
    assert set(MAPPERS) == {
        "json",
        "csv",
        "text",
        "binary",
        "avro",
        "keyvalue",
        "passThrough",
        "xml",
    }


@pytest.mark.parametrize(
    ("spec", "payload", "expected"),
    [
        ("json", b'{"event": {"k": "a", "n": 1, "d": 2.5, "ok": true}}', [("a", 1, 2.5, True)]),
        ("json", b'[{"event": {"k": "a", "n": 1, "d": 2, "ok": null}}]', [("a", 1, 2.0, None)]),
        ("enclosed", b'{"a": {"rows": [{"k": "a", "n": 1}, {"event": {"n": 2}}]}}',
            [("a", 1, None, None), (None, 2, None, None)]),
        ("lenient", b'{"event": {"k": "a"}}', [("a", None, None, None)]),
        ("keyvalue", b'{"key": "a", "n": 1, "other": 5}', [("a", 1, None, None)]),
        ("passed", b'{"ts": 7, "data": ["a", 1, 2, null]}', [("a", 1, 2.0, None)]),
    ],
)  # fmt: skip
def test_forms_of_siddhi_are_read(spec, payload, expected):
    assert rows(read(SPECS[spec], payload)) == expected


def test_an_event_without_an_attribute_is_refused_where_the_mapping_says_so():
    got = read(SPECS["strict"], b'{"a": {"k": "x"}, "n": 1, "ok": true}')
    assert [(p.field, p.reason) for p in got.problems] == [("d", "missing")]


def test_an_attribute_called_event_is_no_envelope():
    schema = Schema.of("S", event="object")
    assert rows(read(MapSpec("json"), b'{"event": {"k": 1}}', schema)) == [('{"k":1}',)]
