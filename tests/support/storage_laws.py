"""Check what every storage of state files keeps to, whatever file system is below."""

import pytest

from edgewise.engines.state.store import SNAPSHOT_EVERY, StateStore

PART = 3
LAST = 2 * SNAPSHOT_EVERY


def what_was_written_is_read_listed_and_removed(place):
    inner = place.inside("0")
    assert inner.names() == []
    with pytest.raises(FileNotFoundError):
        inner.read("a")
    inner.write("a", b"one")
    inner.write("a", b"three")
    inner.write("b", b"")
    assert (inner.names(), inner.sizes()) == (["a", "b"], {"a": 5, "b": 0})
    assert inner.read("a") == b"three"
    inner.remove("a")
    inner.remove("a")
    assert inner.names() == ["b"]
    place.clear()
    place.clear()
    assert inner.names() == []


def versions_are_kept_and_compacted(place):
    """Answers the store that holds them, up to `LAST`."""
    store = StateStore(place, PART)
    for version in range(LAST + 1):
        if later := store.save(version, [(b"k", str(version).encode())]):
            later.result()
    for version in (LAST - 1, LAST):
        assert StateStore(place, PART).load(version) == {b"k": str(version).encode()}
    assert min(version for version, _ in store.versions()) == SNAPSHOT_EVERY - 1
    return store
