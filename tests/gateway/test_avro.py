import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgewise.gateway.avro import AvroCodec
from edgewise.gateway.spec import BadSpec

CODEC = AvroCodec(
    '{"type":"record","name":"r","fields":[{"name":"k","type":"string"},'
    '{"name":"v","type":["null","long"]},{"name":"l","type":{"type":"array","items":"int"}}]}'
)


@given(st.text(), st.none() | st.integers(-(2**63), 2**63 - 1), st.lists(st.integers(0, 99)))
def test_what_is_written_is_read(k, v, items):
    datum = {"k": k, "v": v, "l": items}
    assert CODEC.read(CODEC.write(datum)) == datum


@given(st.binary(max_size=100))
def test_foreign_bytes_are_a_value_error_or_a_datum(payload):
    try:
        CODEC.read(payload)
    except ValueError as bad:
        assert str(bad)


def test_a_schema_that_is_none_is_refused():
    with pytest.raises(BadSpec, match="cannot be read"):
        AvroCodec('{"type": "nothing"}')
