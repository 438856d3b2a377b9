import json
import struct
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgewise.event.schema import Schema
from edgewise.gateway.admit import Admission, AdmissionLimits
from edgewise.gateway.mappers import MAPPERS, build_mapper
from edgewise.gateway.refusal import Refusal
from edgewise.gateway.renderers import RENDERERS, build_renderer
from edgewise.gateway.spec import BadSpec, MapSpec

SCHEMA = Schema.of("S", k="string", n="int", d="double", ok="bool")
AVRO = json.dumps(
    {
        "type": "record",
        "name": "r",
        "fields": [
            {"name": name, "type": ["null", kind]}
            for name, kind in (("k", "string"), ("n", "int"), ("d", "double"), ("ok", "boolean"))
        ],
    }
)
words = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=8)
rows = st.tuples(
    st.none() | words,
    st.none() | st.integers(-(2**31), 2**31 - 1),
    st.none() | st.floats(allow_nan=False, allow_infinity=False),
    st.none() | st.booleans(),
)


@pytest.mark.parametrize(
    ("spec", "ts"),
    [
        (MapSpec("json"), 5),  # one for all: nothing in the payload tells of time
        (MapSpec("json", {"envelope": "true"}), [77]),
        (MapSpec("csv"), [5]),
        (MapSpec("csv", {"delimiter": "\\t"}), [5]),
        (MapSpec("avro", {"schema": AVRO}), [5]),
        (MapSpec("json", {"envelope": "event"}), [5]),
        (MapSpec("keyvalue"), [5]),
        (MapSpec("passThrough"), [77]),
        (MapSpec("xml"), [5]),
    ],
)
@given(row=rows)
def test_what_a_sink_sends_a_source_takes(row, spec, ts):
    payload = build_renderer(spec, SCHEMA)(77, row)
    source = MapSpec(spec.type, {k: v for k, v in spec.options.items() if k != "envelope"})
    got = build_mapper(source, Admission(SCHEMA, AdmissionLimits())).read(payload, 5000)
    assert not isinstance(got, Refusal), got
    assert tuple(column[0] for column in got.values) == row
    assert got.ts == ts


ROW = ("a", 7, 0.5, True)


@pytest.mark.parametrize(
    ("spec", "payload"),
    [
        (MapSpec("json", {}, {"client": "k", "tries": "n"}), b'{"client":"a","tries":7}'),
        (MapSpec("csv", {}, {"x": "ok", "y": "k"}), b"true,a"),
        (MapSpec("text", {"template": "{{k}} tried {{ n }} times"}), b"a tried 7 times"),
        (MapSpec("csv", {}, {"k": "1", "n": "0"}), b"7,a"),
        (MapSpec("text"), b'k:"a",\nn:7,\nd:0.5,\nok:true'),
        (MapSpec("text", payload="{{k}} is {{ok}}"), b"a is true"),
        (MapSpec("json", payload='{"x": "{{k}}", "n": {{n}}}'), b'{"x": "a", "n": 7}'),
        (MapSpec("json", {"envelope": "event"}, {"k": "k"}), b'{"event":{"k":"a"}}'),
        (MapSpec("json", {"enclosing.element": "$.a.b"}, {"k": "k"}), b'{"a":{"b":{"k":"a"}}}'),
        (MapSpec("xml", {}, {"k": "k"}), b"<events><event><k>a</k></event></events>"),
        (
            MapSpec("xml", {"enclosing.element": "<p x='y'>"}, payload="<k>{{k}}</k>"),
            b"<p x='y'><k>a</k></p>",
        ),
        (MapSpec("binary", {"layout": "<4sid?"}), struct.pack("<4sid?", b"a", 7, 0.5, True)),
    ],
)
def test_payloads(spec, payload):
    assert build_renderer(spec, SCHEMA)(0, ROW) == payload


def test_objects_stay_json_and_single_attributes_need_no_template():
    schema = Schema.of("S", o="object")
    assert build_renderer(MapSpec("json"), schema)(0, ['{"a":[1]}']) == b'{"o":{"a":[1]}}'
    assert build_renderer(MapSpec("text"), Schema.of("S", k="string"))(0, ["x"]) == b"x"


def test_a_fixed_layout_has_zeros_for_null():
    render = build_renderer(MapSpec("binary", {"layout": "<4sid?"}), SCHEMA)
    assert render(0, (None,) * 4) == bytes(struct.calcsize("<4sid?"))


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        (MapSpec("yaml"), "no mapping of type 'yaml'"),
        (MapSpec("json", {"envelope": "big"}), "must be one of: false, true, event"),
        (MapSpec("json", payload="{{zz}}"), "no attribute 'zz'"),
        (MapSpec("csv", payload="{{k}}"), "is for mappings of type json, text, xml"),
        (MapSpec("json", {"pretty": "1"}), "no option 'pretty'"),
        (MapSpec("json", {}, {"a": "zz"}), "no attribute 'zz'"),
        (MapSpec("text", {"template": "{{zz}}"}), "no attribute 'zz'"),
        (MapSpec("csv", {"delimiter": ""}), "one character"),
        (MapSpec("binary", {"layout": "<i"}), "must have 4 values"),
        (MapSpec("binary", {"layout": "%"}), "layout '%'"),
        (MapSpec("text", {"template": "x"}, {"a": "k"}), "takes no @attributes"),
        (MapSpec("avro"), "needs schema"),
    ],
)
def test_a_mapping_that_cannot_work_is_refused_at_once(spec, words):
    with pytest.raises(BadSpec, match=words):
        build_renderer(spec, SCHEMA)


def test_sources_and_sinks_know_the_same_types():
    assert set(RENDERERS) == set(MAPPERS)


def test_a_template_stays_valid_whatever_a_value_holds():
    row = ('"\\<&>\n', None, None, None)
    as_json = build_renderer(MapSpec("json", payload='{"k": "{{k}}"}'), SCHEMA)(0, row)
    assert json.loads(as_json) == {"k": row[0]}
    as_xml = build_renderer(MapSpec("xml", payload="<k>{{k}}</k>"), SCHEMA)(0, row)
    assert ET.fromstring(as_xml).text == row[0]
