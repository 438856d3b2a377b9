from collections import deque

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgewise.errors import StateError
from edgewise.kernel import serialize as snapshot

SCALARS = (
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False)
    | st.text() | st.binary()
)  # fmt: skip
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner) | st.lists(inner).map(tuple) | st.lists(inner).map(deque)
    | st.frozensets(SCALARS) | st.sets(SCALARS)
    | st.dictionaries(SCALARS | st.tuples(SCALARS), inner),
    max_leaves=20,
)  # fmt: skip
MARK = snapshot.fingerprint("plan")


@pytest.fixture(autouse=True, scope="module")
def few():
    """What is written without a look at each item is so from one item on."""
    kept, snapshot.FLAT_LEAST = snapshot.FLAT_LEAST, 1
    yield
    snapshot.FLAT_LEAST = kept


FLAT = st.lists(st.tuples(SCALARS, st.tuples(SCALARS, SCALARS)), min_size=1)


@given(FLAT | FLAT.map(deque) | st.dictionaries(SCALARS, st.lists(SCALARS)))
def test_rows_and_sums_by_group_come_back(value):
    assert repr(snapshot.unpack(MARK, snapshot.pack(MARK, value))) == repr(value)


def test_rows_and_sums_by_group_are_written_as_they_are():
    rows, sums = deque([(7, ("a", None, 0.5))]), {"a": [1, 2.5], "b": [0, None]}
    assert snapshot.plain(rows)[1] == list(rows)
    assert snapshot.plain(sums)[1] == ["a", [1, 2.5], "b", [0, None]]


@given(VALUES)
def test_what_is_packed_comes_back_with_its_types(value):
    back = snapshot.unpack(MARK, snapshot.pack(MARK, value))
    assert repr(back) == repr(value) or (back == value and type(back) is type(value))


@given(st.tuples(SCALARS, SCALARS))
def test_keys_come_back(key):
    assert snapshot.unpack_key(snapshot.pack_key(key)) == key


def test_state_of_another_plan_is_refused():
    with pytest.raises(StateError, match="another query"):
        snapshot.unpack(snapshot.fingerprint("other"), snapshot.pack(MARK, 1))


def test_state_of_another_format_is_refused(monkeypatch):
    data = snapshot.pack(MARK, 1)
    monkeypatch.setattr(snapshot, "FORMAT", 99)
    monkeypatch.setattr(snapshot, "READ_FORMATS", frozenset({99}))
    with pytest.raises(StateError, match="has format 4, this program reads format 99"):
        snapshot.unpack(MARK, data)


@pytest.mark.parametrize("cut", [0, 1, 5])
def test_torn_state_is_refused(cut):
    with pytest.raises(StateError, match="torn"):
        snapshot.unpack(MARK, snapshot.pack(MARK, [1, 2])[:cut])


def test_what_cannot_be_kept_is_named():
    with pytest.raises(StateError, match="type object cannot be kept"):
        snapshot.pack(MARK, object())
