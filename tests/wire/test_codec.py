import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support import golden_frames as golden

from edgewise.errors import ProtocolError
from edgewise.wire import codec, frames
from edgewise.wire.codes import ProtocolCode


def test_golden_frames_are_what_we_encode_and_decode():
    assert golden.FILE.read_text() == golden.text(), "run: python -m tests.support.golden_frames"
    for row in json.loads(golden.FILE.read_text()):
        data = bytes.fromhex(row["hex"])
        decode = codec.decode_from_client if row["from"] == "client" else codec.decode_from_server
        assert codec.encode(decode(data)) == data


@given(st.binary(max_size=64))
def test_any_bytes_are_a_frame_or_a_protocol_error(data):
    for decode in (codec.decode_from_client, codec.decode_from_server):
        try:
            decode(data)
        except ProtocolError as error:
            assert error.code == ProtocolCode.BAD_FRAME


def test_a_frame_above_the_limit_names_the_limit():
    with pytest.raises(ProtocolError, match="limit is 10") as caught:
        codec.decode_from_client(b"x" * 11, 10)
    assert caught.value.code == ProtocolCode.FRAME_TOO_LARGE


def test_deep_nesting_is_a_protocol_error():
    deep = b"\x94\x12\x01\xa1p" + b"\x91" * 100_000 + b"\xc0"
    with pytest.raises(ProtocolError):
        codec.decode_from_client(deep)


def test_unknown_trailing_elements_and_keys_are_ignored():
    data = msgspec.msgpack.encode([1, 1, {"token": "t", "later": 1}, "more"])
    assert codec.decode_from_client(data) == frames.Hello(1, frames.HelloOptions(token="t"))


def test_a_value_encoded_once_fits_into_a_frame():
    value = {"a": [1, 2.5, "x"]}
    direct = codec.encode(frames.Next(1, 1, 1, 0, value))
    assert codec.encode(frames.Next(1, 1, 1, 0, codec.raw(value))) == direct
