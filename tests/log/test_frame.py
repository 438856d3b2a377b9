import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgewise.log.frame import (
    ALIGN,
    Damaged,
    FrameKind,
    check_body,
    find_durable_bytes,
    pack_frame,
    pack_trailer,
    parse_frame,
    parse_trailer,
)


def joined(*frames):
    return b"".join(bytes(b) for frame in frames for b in frame)


@given(
    body=st.binary(max_size=300),
    first=st.integers(0, 2**63 - 1),
    rows=st.integers(0, 2**32 - 1),
    clock=st.integers(-(2**63), 2**63 - 1),
    sequence=st.integers(-1, 2**63 - 1),
    producer=st.text(max_size=40),
    more=st.booleans(),
)
def test_a_frame_comes_back_as_it_went(body, first, rows, clock, sequence, producer, more):  # noqa: PLR0917
    data = joined(
        pack_frame(
            FrameKind.DATA,
            body,
            first=first,
            rows=rows,
            epoch=7,
            clock_before=clock,
            sequence=sequence,
            producer=producer,
            more=more,
        )
    )
    assert len(data) % ALIGN == 0
    frame = parse_frame(data, 0, len(data))
    assert (frame.first, frame.rows, frame.clock_before) == (first, rows, clock)
    assert (frame.sequence, frame.producer, frame.more) == (sequence, producer, more)
    assert (frame.end, bytes(check_body(data, frame))) == (len(data), body)


@given(body=st.binary(min_size=1, max_size=200), data=st.data())
def test_every_flipped_bit_that_matters_is_found(body, data):
    whole = bytearray(joined(pack_frame(FrameKind.DATA, body, first=3, rows=1, epoch=1)))
    frame = parse_frame(whole, 0, len(whole))
    at = data.draw(st.integers(0, frame.body_at + len(body) - 1))
    whole[at] ^= 1 << data.draw(st.integers(0, 7))
    with pytest.raises(Damaged):
        check_body(whole, parse_frame(whole, 0, len(whole)))


def test_a_cut_frame_is_short_wherever_it_is_cut():
    whole = joined(pack_frame(FrameKind.DATA, b"x" * 100, first=0, epoch=1, producer="p"))
    for size in range(len(whole)):
        with pytest.raises(Damaged) as raised:
            parse_frame(whole[:size], 0, size)
        assert raised.value.short


def test_a_later_frame_proves_what_was_durable():
    one = joined(pack_frame(FrameKind.DATA, b"a", first=0, epoch=1))
    two = joined(pack_frame(FrameKind.DATA, b"b", first=1, epoch=1, durable_before=len(one)))
    assert find_durable_bytes(one + two, 0, len(one + two)) == len(one)
    assert find_durable_bytes(one + two, len(one), len(one + two)) == 0
    assert find_durable_bytes(one, 0, len(one)) == 0


def test_a_trailer_names_the_footer_and_nothing_else_does():
    assert parse_trailer(pack_trailer(12345)) == 12345
    assert parse_trailer(b"") == -1
    assert parse_trailer(bytes(64)) == -1
    damaged = bytearray(pack_trailer(12345))
    damaged[9] ^= 1
    assert parse_trailer(bytes(damaged)) == -1
