import copy

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgewise.wire.delta import apply, diff
from edgewise.wire.frames import TopicKind

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False)
    | st.text(max_size=5)
)
RECORDS = st.dictionaries(st.text(max_size=3), SCALARS, max_size=6)
TABLES = st.dictionaries(st.text(max_size=2), RECORDS, max_size=6)


def packed(value):
    """Bytes tell 1 from 1.0 and True, as a client would."""
    return msgspec.msgpack.encode(value, order="deterministic")


@given(RECORDS, RECORDS)
def test_a_record_and_its_difference_give_the_new_record(old, new):
    before = copy.deepcopy(old)
    assert packed(apply(TopicKind.RECORD, old, diff(TopicKind.RECORD, old, new))) == packed(new)
    assert packed(old) == packed(before)


@given(TABLES, TABLES)
def test_a_table_and_its_difference_give_the_new_table(old, new):
    before = copy.deepcopy(old)
    assert packed(apply(TopicKind.TABLE, old, diff(TopicKind.TABLE, old, new))) == packed(new)
    assert packed(old) == packed(before)


@given(st.integers(0, 12), st.integers(0, 12), st.integers(1, 8))
def test_a_series_is_appended_to_or_sent_whole(seen, total, keep):
    total = max(seen, total)
    entries = [[i, i * 10, {"v": i}] for i in range(total)]
    old, new = entries[:seen][-keep:], entries[-keep:]
    delta = diff(TopicKind.SERIES, old, new)
    if delta is None:
        assert total - seen > keep
    else:
        assert apply(TopicKind.SERIES, old, delta, keep) == new


def test_a_blob_is_always_whole():
    assert diff(TopicKind.BLOB, b"a", b"b") is None
    with pytest.raises(ValueError, match="no deltas"):
        apply(TopicKind.BLOB, b"a", [])
