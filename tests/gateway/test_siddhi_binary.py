"""Siddhi's binary form: what is written is read again, and bytes of others are refused."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgewise.event.schema import Schema
from edgewise.gateway.admit import Admission, AdmissionLimits, AdmittedEvents
from edgewise.gateway.mappers import build_mapper
from edgewise.gateway.refusal import Refusal
from edgewise.gateway.renderers import build_renderer
from edgewise.gateway.siddhi_binary import iterate_events
from edgewise.gateway.spec import BadSpec, MapSpec

SCHEMA = Schema.of("S", s="string", i="int", l="long", f="float", d="double", b="bool")
SPEC = MapSpec("binary")
ROWS = st.tuples(
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1) | st.none(),
    st.integers(-(2**31), 2**31 - 1),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(width=32, allow_nan=False),
    st.floats(allow_nan=False),
    st.booleans(),
)


@given(st.integers(0, 10**13), ROWS)
def test_what_is_written_is_read_again(ts, row):
    payload = build_renderer(SPEC, SCHEMA)(ts, row)
    assert list(iterate_events(payload, SCHEMA)) == [(ts, list(row))]


def test_the_bytes_are_those_of_the_original():
    """Count, time, then values as Java's ByteBuffer writes them."""
    payload = build_renderer(SPEC, SCHEMA)(7, ("é", 1, 2, 1.5, 2.5, True))
    assert payload == struct.pack(">iqi2siqfd?", 1, 7, 2, "é".encode(), 1, 2, 1.5, 2.5, True)


def test_events_of_one_payload_are_admitted_with_their_time():
    admission = Admission(SCHEMA, AdmissionLimits())
    mapper = build_mapper(SPEC, admission)
    one = build_renderer(SPEC, SCHEMA)(5, ("a", 1, 2, 1.5, 2.5, True))[4:]
    events = mapper.read(struct.pack(">i", 2) + one * 2, 1_000_000)
    assert isinstance(events, AdmittedEvents)
    assert events.count == 2


@given(st.binary(max_size=80))
def test_any_bytes_are_events_or_a_refusal(payload):
    mapper = build_mapper(SPEC, Admission(SCHEMA, AdmissionLimits()))
    assert isinstance(mapper.read(payload, 1), AdmittedEvents | Refusal)


def test_null_numbers_and_objects_have_no_form():
    with pytest.raises(ValueError, match="no null of type int"):
        build_renderer(SPEC, SCHEMA)(1, ("a", None, 2, 1.5, 2.5, True))
    with pytest.raises(BadSpec, match="'o' is an object"):
        build_renderer(SPEC, Schema.of("S", o="object"))
