"""Messages of Siddhi's TCP transport, however the bytes are cut."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgewise.gateway.tcp_frame import FrameDecoder, encode_frame

MESSAGES = st.lists(st.tuples(st.text(max_size=5), st.binary(max_size=20)), max_size=6)


@given(MESSAGES, st.integers(1, 9))
def test_messages_arrive_whole_however_the_bytes_are_cut(messages, size):
    data = b"".join(encode_frame("session", channel, body) for channel, body in messages)
    decoder = FrameDecoder(1000)
    parts = [data[at : at + size] for at in range(0, len(data), size)]
    assert [m for part in parts for m in decoder.feed(part)] == messages


def test_the_bytes_are_those_of_the_original():
    assert encode_frame("s", "ch", b"xyz") == (
        b"\x02\x00\x00\x00\x12\x00\x00\x00\x01s\x00\x00\x00\x02ch\x00\x00\x00\x03xyz"
    )


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"GET / HTTP/1.1", "protocol 71"),
        (b"\x02\x7f\xff\xff\xff", "the most is 100"),
        (b"\x02\xff\xff\xff\xff", "the most is 100"),
        (b"\x02\x00\x00\x00\x02ab", "ends before its data"),
        (b"\x02\x00\x00\x00\x04\x00\x00\x00\x09", "does not fit"),
    ],
)
def test_other_bytes_are_refused_before_they_are_kept(data, why):
    with pytest.raises(ValueError, match=why):
        FrameDecoder(100).feed(data)
