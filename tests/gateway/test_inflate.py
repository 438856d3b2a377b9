import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgewise.gateway.inflate import MEMBERS_MAX, TooLarge, gunzip


@given(st.lists(st.binary(max_size=200), min_size=1, max_size=4))
def test_members_come_out_joined(parts):
    assert gunzip(b"".join(map(gzip.compress, parts)), 1000) == b"".join(parts)


def test_a_bomb_is_stopped_at_the_limit():
    with pytest.raises(TooLarge, match="larger than 1000 bytes when unpacked"):
        gunzip(gzip.compress(bytes(10_000_000)), 1000)
    assert gunzip(gzip.compress(bytes(1000)), 1000) == bytes(1000)


@given(st.binary(max_size=50), st.data())
def test_torn_and_foreign_bytes_are_a_value_error(content, data):
    packed = gzip.compress(content)
    cut = data.draw(st.integers(0, len(packed) - 1))
    with pytest.raises(ValueError, match="gzip"):
        gunzip(packed[:cut], 1000)
    with pytest.raises(ValueError, match="gzip"):
        gunzip(b"x" + packed, 1000)


def test_too_many_members_are_refused():
    with pytest.raises(ValueError, match=f"more than {MEMBERS_MAX} gzip members"):
        gunzip(gzip.compress(b"") * (MEMBERS_MAX + 1), 1000)
