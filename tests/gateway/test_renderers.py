import json
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgewise.event.schema import Schema
from edgewise.gateway.admit import Admission, Limits
from edgewise.gateway.mappers import MAPPERS, mapper_of
from edgewise.gateway.refusal import Refused
from edgewise.gateway.renderers import RENDERERS, renderer_of
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
    ],
)
@given(row=rows)
def test_what_a_sink_sends_a_source_takes(row, spec, ts):
    payload = renderer_of(spec, SCHEMA)(77, row)
    source = MapSpec(spec.type, {k: v for k, v in spec.options.items() if k != "envelope"})
    got = mapper_of(source, Admission(SCHEMA, Limits())).read(payload, 5000)
    assert not isinstance(got, Refused), got
    assert tuple(column[0] for column in got.values) == row
    assert got.ts == ts


ROW = ("a", 7, 0.5, True)


@pytest.mark.parametrize(
    ("spec", "payload"),
    [
        (MapSpec("json", {}, {"client": "k", "tries": "n"}), b'{"client":"a","tries":7}'),
        (MapSpec("csv", {}, {"x": "ok", "y": "k"}), b"true,a"),
        (MapSpec("text", {"template": "{{k}} tried {{ n }} times"}), b"a tried 7 times"),
        (MapSpec("binary", {"layout": "<4sid?"}), struct.pack("<4sid?", b"a", 7, 0.5, True)),
    ],
)
def test_payloads(spec, payload):
    assert renderer_of(spec, SCHEMA)(0, ROW) == payload


def test_objects_stay_json_and_single_attributes_need_no_template():
    schema = Schema.of("S", o="object")
    assert renderer_of(MapSpec("json"), schema)(0, ['{"a":[1]}']) == b'{"o":{"a":[1]}}'
    assert renderer_of(MapSpec("text"), Schema.of("S", k="string"))(0, ["x"]) == b"x"


def test_a_fixed_layout_has_zeros_for_null():
    render = renderer_of(MapSpec("binary", {"layout": "<4sid?"}), SCHEMA)
    assert render(0, (None,) * 4) == bytes(struct.calcsize("<4sid?"))


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        (MapSpec("xml"), "no mapping of type 'xml'"),
        (MapSpec("json", {"pretty": "1"}), "no option 'pretty'"),
        (MapSpec("json", {}, {"a": "zz"}), "no attribute 'zz'"),
        (MapSpec("text"), "needs template"),
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
        renderer_of(spec, SCHEMA)


def test_sources_and_sinks_know_the_same_types():
    assert set(RENDERERS) == set(MAPPERS)
