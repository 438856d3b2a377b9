"""Whatever a valid batch holds comes out again; whatever else arrives is refused with a field."""

import json
import math

import msgspec
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgewise.event.arrow import SYSTEM_COUNT, to_arrow
from edgewise.event.schema import Attribute, Schema
from edgewise.event.types import INT_MAX, INT_MIN, LONG_MAX, LONG_MIN, AttrType
from edgewise.gateway.admit import Admission, AdmissionLimits, admit
from edgewise.gateway.refusal import Refusal

JSON, LINES = "application/json", "application/x-ndjson; charset=utf-8"
AT_US = 1_700_000_000_000_000
LOGIN = Schema.of("login", ip="string", tries="int", at="long", score="double", ok="bool")
GOOD = {"ip": "10.0.0.1", "tries": 1, "at": 5, "score": 0.5, "ok": True}

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
numbers = st.floats(allow_nan=False, allow_infinity=False)
inner = st.none() | st.booleans() | st.integers(LONG_MIN, LONG_MAX) | numbers | texts
VALUES = {
    AttrType.STRING: texts,
    AttrType.INT: st.integers(INT_MIN, INT_MAX),
    AttrType.LONG: st.integers(LONG_MIN, LONG_MAX),
    AttrType.FLOAT: st.floats(width=32, allow_nan=False, allow_infinity=False),
    AttrType.DOUBLE: numbers | st.integers(-(2**53), 2**53),
    AttrType.BOOL: st.booleans(),
    AttrType.OBJECT: st.recursive(
        inner,
        lambda v: st.lists(v, max_size=3) | st.dictionaries(texts, v, max_size=3),
        max_leaves=5,
    ).filter(lambda v: v is not None),
}
names = st.sampled_from(["ip", "v", "from", "a:b", "ts", "data", "ä", "f0", "_x", "class", ""])


@st.composite
def schemas(draw):
    picked = draw(st.lists(names, min_size=1, max_size=4, unique=True))
    types = draw(st.lists(st.sampled_from(AttrType), min_size=len(picked), max_size=len(picked)))
    return Schema("S", tuple(map(Attribute, picked, types)))


@st.composite
def batches(draw):
    """A schema, rows that fit it, their event times (None: not sent), and a body that says so."""
    schema = draw(schemas())
    row = st.tuples(*(st.none() | VALUES[a.type] for a in schema.attributes))
    rows = draw(st.lists(row, min_size=1, max_size=5))
    ts = [None] * len(rows)
    events = [dict(zip(schema.names, row, strict=True)) for row in rows]
    if "data" not in schema.names and draw(st.booleans()):
        ts = draw(
            st.lists(
                st.none() | st.integers(-(2**53) + 1, 2**53 - 1),
                min_size=len(rows),
                max_size=len(rows),
            )
        )
        for i, (at, event) in enumerate(zip(ts, events, strict=True)):
            form = draw(st.sampled_from(["object", "list", "plain"]))
            if form == "plain":
                ts[i] = None
                continue
            events[i] = {"data": event if form == "object" else list(event.values())}
            if at is not None:
                events[i]["ts"] = at
    dump = draw(
        st.sampled_from([json.dumps, lambda v: json.dumps(v, ensure_ascii=False, indent=1)])
    )
    if draw(st.booleans()):
        return schema, rows, ts, "\n".join(map(dump, events)).encode(), LINES
    body = dump(events[0] if len(events) == 1 and draw(st.booleans()) else events)
    return schema, rows, ts, body.encode(), JSON


@given(batches())
def test_any_valid_batch_comes_out_as_it_went_in(batch):
    schema, rows, ts, body, content_type = batch
    got = admit(body, content_type, schema, AT_US)
    assert not isinstance(got, Refusal), got
    got.validate(full=True)
    assert got.schema == to_arrow(schema)
    columns = [c.to_pylist() for c in got.columns]
    assert columns[0] == [AT_US // 1000 if t is None else t for t in ts]
    assert columns[1] == list(range(AT_US, AT_US + len(rows)))
    assert columns[2] == [0] * len(rows)
    for attribute, sent, column in zip(
        schema.attributes, zip(*rows, strict=True), columns[SYSTEM_COUNT:], strict=True
    ):
        if attribute.type is AttrType.OBJECT:
            column = [None if v is None else json.loads(v) for v in column]  # noqa: PLW2901
        assert column == list(sent)


def outcome(admission, body, content_type):
    got = admission.admit(body, content_type, AT_US)
    return got if isinstance(got, Refusal) else got.to_pydict()


@st.composite
def mutated(draw):
    schema, _rows, _ts, body, content_type = draw(batches())
    out = bytearray(body)
    for _ in range(draw(st.integers(1, 4))):
        place = draw(st.integers(0, len(out)))
        cut = draw(st.integers(0, 3))
        new = draw(
            st.binary(max_size=2)
            | st.sampled_from(
                [
                    b"NaN",
                    b"1e999",
                    b"null",
                    b'"ip":1,',
                    b"[",
                    b"}",
                    b"\\u003a",
                    b"-",
                    b"0" * 25,
                    b"\\ud800",
                    b'"a":"b:c",',
                    b"{",
                    b"Infinity",
                    b"1.0",
                ]
            )
        )
        out[place : place + cut] = new
    return schema, bytes(out), content_type


@given(mutated())
def test_any_mutated_body_is_taken_or_refused_with_a_field(sent):
    schema, body, content_type = sent
    admission = Admission(schema, AdmissionLimits())
    quick = outcome(admission, body, content_type)
    if isinstance(quick, Refusal):
        assert 400 <= quick.status < 500
        assert quick.problems
        assert all(p.reason for p in quick.problems)
        msgspec.json.encode(quick.to_json())
    admission._quick = None
    careful = outcome(admission, body, content_type)
    assert same(quick, careful)


def same(left, right):
    """Equal, and -0.0 is not 0.0."""
    return repr(left) == repr(right)


@given(st.binary(max_size=200), st.sampled_from([JSON, LINES]))
def test_no_bytes_raise(body, content_type):
    got = admit(body, content_type, LOGIN, AT_US)
    assert isinstance(got, Refusal)
    assert 400 <= got.status < 500


def event(**changes):
    return json.dumps({**GOOD, **changes})


@pytest.mark.parametrize(
    ("body", "status", "field", "words"),
    [
        (b"", 400, "body", "empty"),
        (b" \n", 400, "body", "empty"),
        (b"[]", 400, "body", "no events"),
        (b"not json", 400, "body", "not JSON: expecting value at line 1, column 1"),
        (b'{"ip": ', 400, "body", "not JSON"),
        (b"7", 400, "event", "expected an object, got an integer"),
        (b'["a"]', 400, "event", "expected an object, got a string"),
        (event(tries="x"), 400, "tries", "expected int, got a string"),
        (event(tries=1.5), 400, "tries", "expected int, got a number with a fraction"),
        (event(tries=True), 400, "tries", "expected int, got a boolean"),
        (event(tries=2**31), 400, "tries", "out of range for int (-2147483648 to 2147483647)"),
        (event(at=2**63), 400, "at", "out of range for long"),
        (event(at=10**30), 400, "at", "out of range for long"),
        (event(score="1"), 400, "score", "expected double, got a string"),
        (event(score=math.nan), 400, "score", "NaN, which is not JSON"),
        (event(score=-math.inf), 400, "score", "-Infinity, which is not JSON"),
        (event(ip=5), 400, "ip", "expected string, got an integer"),
        (event(ok=1), 400, "ok", "expected bool, got an integer"),
        (event(ip={"a": 1}), 400, "ip", "expected string, got an object"),
        (event(extra=1), 400, "extra", "login has no such attribute"),
        (event(trys=1), 400, "trys", "did you mean 'tries'?"),
        (b'{"ip":"a","tries":1,"at":1,"score":1}', 400, "ok", "missing"),
        (event().replace('"tries": 1', '"tries": 1, "tries": 2'), 400, "tries", "comes twice"),
        (event(ip="a:b").replace('"at"', '"ok": true, "at"'), 400, "ok", "comes twice"),
        (event().replace("10.0.0.1", "\\ud800"), 400, "ip", "surrogate"),
        (event().encode("utf-16"), 400, "body", "not UTF-8: byte 0 is 0xff"),
        (event(ip="é").replace("\\u00e9", "é").encode("latin-1"), 400, "body", "not UTF-8"),
        (b"[" * 100_000, 400, "body", "nested too deeply"),
        (event(ip="x" * 10_000_000), 413, "body", "larger than the limit of 8388608 bytes"),
        (event() + event(), 400, "body", "application/x-ndjson"),
        ('{"data": 5}', 400, "data", "expected an object or a list, got an integer"),
        ('{"data": [1]}', 400, "data", "expected 5 values (ip, tries, at, score, ok), got 1"),
        ('{"ts": "1", "data": [1,1,1,1,1]}', 400, "ts", "expected milliseconds"),
        ('{"ts": 1e3, "data": {}}', 400, "ts", "expected milliseconds"),
        ('{"at": 1, "data": {}}', 400, "at", "not part of an envelope"),
        ("1" * 5000, 400, "event", "a number out of range"),
    ],
)
def test_a_malformed_body_is_refused_by_name(body, status, field, words):
    got = admit(body if isinstance(body, bytes) else body.encode(), JSON, LOGIN, AT_US)
    assert isinstance(got, Refusal)
    assert got.status == status
    assert field in {p.field for p in got.problems}
    assert any(words in p.reason for p in got.problems), got.problems


@pytest.mark.parametrize(
    ("content_type", "words"),
    [
        ("", "nothing is not a supported type"),
        ("text/plain", "'text/plain' is not a supported type"),
        ("application/x-www-form-urlencoded", "send application/json"),
        ("application/json; charset=latin-1", "charset 'latin-1' is not supported"),
    ],
)
def test_a_foreign_content_type_gets_415(content_type, words):
    got = admit(event().encode(), content_type, LOGIN, AT_US)
    assert got.status == 415
    assert got.problems[0].field == "Content-Type"
    assert words in got.problems[0].reason


def test_the_answer_names_each_event_at_fault_and_stops_at_its_limit():
    body = "\n".join([event(), event(tries="x"), event(), event(at="y", ok=0)]).encode()
    got = admit(body, LINES, LOGIN, AT_US)
    assert [(p.index, p.field) for p in got.problems] == [(1, "tries"), (3, "at"), (3, "ok")]
    assert got.message.startswith("2 event(s) at fault, nothing was accepted; first: event 1")
    many = admit(b"[" + b",".join([event(ip=0).encode()] * 50) + b"]", JSON, LOGIN, AT_US)
    assert len(many.problems) == AdmissionLimits().problems_max
    assert many.message.startswith("at least 20 event(s)")


def test_more_events_than_the_limit_are_refused():
    body = ("\n".join([event()] * 4)).encode()
    got = admit(body, LINES, LOGIN, AT_US, AdmissionLimits(events_max=3))
    assert (got.status, got.code) == (413, "too_many")


def test_an_object_attribute_is_kept_as_json_text():
    schema = Schema.of("S", o="object")
    got = admit(b'[{"o": {"a": [1, "x:y", null]}}, {"o": null}]', JSON, schema, AT_US)
    assert got.column("o").to_pylist() == ['{"a":[1,"x:y",null]}', None]
    deep = admit(b'{"o":' + b"[" * 40 + b"]" * 40 + b"}", JSON, schema, AT_US)
    assert deep.problems[0].reason == "nested deeper than 32"
    twice = admit(b'{"o":{"a":1,"a":2}}', JSON, schema, AT_US)
    assert twice.problems[0].reason == "a key comes twice"


def test_a_stream_with_an_attribute_called_data_has_no_envelope():
    schema = Schema.of("S", data="string")
    assert admit(b'{"data": "x"}', JSON, schema, AT_US).column("data").to_pylist() == ["x"]


def test_a_byte_order_mark_is_ignored():
    assert admit(b"\xef\xbb\xbf" + event().encode(), JSON, LOGIN, AT_US).num_rows == 1


def test_float_attributes_are_stored_in_32_bits():
    schema = Schema.of("S", f="float")
    got = admit(b'[{"f": 0.1}, {"f": 3}]', JSON, schema, AT_US)
    assert got.column("f").type == pa.float32()
    assert got.column("f").to_pylist() == [float(np.float32(0.1)), 3.0]
    assert (
        admit(b'{"f": 1e39}', JSON, schema, AT_US).problems[0].reason == "out of range for float"
    )
