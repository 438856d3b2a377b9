"""Cutting and joining: everything comes back, and a small change is a small change."""

from collections import OrderedDict, deque

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgewise.errors import StateError
from edgewise.kernel import serialize as snapshot
from edgewise.kernel.state.pieces import LEAST_ITEMS, Pieces, joined

MARK = b"plan"
LONG = st.lists(st.integers(0, 5), min_size=LEAST_ITEMS, max_size=2 * LEAST_ITEMS)


def stored(*states, into=None, pieces=None):
    into = {} if into is None else into
    for key, data in (pieces or Pieces()).changed(
        MARK, [(k, snapshot.plain(s)) for k, s in states]
    ):
        if data is None:
            del into[key]
        else:
            into[key] = data
    return into


def value_of(entries, key=()):
    return snapshot.unpack(MARK, joined(entries.items())[snapshot.pack_key(key)])


@given(LONG, st.booleans())
def test_whatever_is_cut_comes_back(items, few):
    numbered = {i: [item] for i, item in enumerate(items)}
    value = [deque(items), tuple(items), numbered, OrderedDict(numbered), [items, {"a": items}]]
    value = value[:1] if few else value
    entries = stored(((), value), ("held", items))
    back = value_of(entries)
    assert repr(back) == repr(value)
    assert value_of(entries, "held") == items


def test_a_short_state_is_one_entry():
    assert list(stored(((), [1, {2: 3}]))) == [snapshot.pack_key(())]


@pytest.mark.parametrize("at", [0, 2500, 4999])
def test_what_comes_or_goes_leaves_the_other_pieces(at):
    pieces, items = Pieces(), list(range(5000))
    entries = stored(((), items), pieces=pieces)
    before = set(entries)
    del items[at]
    items.insert(at, -1)
    stored(((), items), into=entries, pieces=pieces)
    assert value_of(entries) == items
    assert 1 <= len(set(entries) - before) <= 3
    assert len(before - set(entries)) <= 3


def test_what_was_restored_is_known():
    items = list(range(5000))
    entries, pieces = stored(((), items)), Pieces()
    pieces.stored(entries)
    assert [key for key, _ in pieces.changed(MARK, [((), snapshot.plain(items))])] == [
        snapshot.pack_key(())
    ]
    again = pieces.changed(MARK, [((), snapshot.plain([]))])
    assert {key for key, data in again if data is None} == set(entries) - {snapshot.pack_key(())}


def test_a_missing_piece_is_told():
    entries = stored(((), list(range(5000))))
    entries.pop(max(entries))
    with pytest.raises(StateError, match="a piece of it is missing"):
        joined(entries.items())
