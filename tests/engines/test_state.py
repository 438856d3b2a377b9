"""State comes back exactly as of the version asked for, or not at all."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgewise.engines.state import SNAPSHOT_EVERY, SNAPSHOTS_KEPT, StateStore
from edgewise.errors import StateError

changes = st.lists(
    st.lists(
        st.tuples(st.sampled_from([b"a", b"b", b"c"]), st.none() | st.binary(max_size=4)),
        max_size=4,
        unique_by=lambda c: c[0],
    ),
    min_size=1,
    max_size=3 * SNAPSHOT_EVERY,
)


@given(changes)
def test_the_last_version_is_the_sum_of_all_changes(tmp_path_factory, versions):
    store = StateStore(tmp_path_factory.mktemp("state"), 0)
    model = {}
    for version, changed in enumerate(versions):
        store.save(version, changed)
        for key, value in changed:
            if value is None:
                model.pop(key, None)
            else:
                model[key] = value
        assert StateStore(store.dir.parent, 0).load(version) == model
        files = list(store.dir.iterdir())
        assert len(files) <= (SNAPSHOTS_KEPT + 1) * (SNAPSHOT_EVERY + 1)


def test_before_the_first_batch_there_is_no_state(tmp_path):
    assert StateStore(tmp_path, 0).load(-1) == {}


def test_the_version_before_the_last_is_still_there_for_a_repeated_batch(tmp_path):
    store = StateStore(tmp_path, 0)
    for version in range(SNAPSHOT_EVERY + 1):
        store.save(version, [(b"k", str(version).encode())])
        assert store.load(version - 1).get(b"k", b"-1") == str(version - 1).encode()


def test_a_batch_saved_twice_is_saved_once(tmp_path):
    store = StateStore(tmp_path, 0)
    store.save(0, [(b"k", b"1")])
    store.save(0, [(b"k", b"1")])
    assert store.load(0) == {b"k": b"1"}


@pytest.mark.parametrize("spoil", ["flip", "cut", "foreign", "renamed", "gone"])
def test_a_spoiled_file_is_refused_with_its_name(tmp_path, spoil):
    store = StateStore(tmp_path, 0)
    store.save(0, [(b"k", b"value")])
    store.save(1, [(b"k", b"other")])
    path = store.dir / "1.delta"
    data = bytearray(path.read_bytes())
    match spoil:
        case "flip":
            data[-1] ^= 1
            path.write_bytes(data)
        case "cut":
            path.write_bytes(data[:-2])
        case "foreign":
            path.write_bytes(b"something else")
        case "renamed":
            path.write_bytes((store.dir / "0.delta").read_bytes())
        case "gone":
            path.unlink()
    with pytest.raises(StateError, match=r"1\.delta"):
        store.load(1)
