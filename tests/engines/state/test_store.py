"""State comes back exactly as of the version asked for, or not at all."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgewise.engines.state.storage import open_storage
from edgewise.engines.state.store import (
    DELTAS_MAX,
    SNAPSHOT_EVERY,
    SNAPSHOTS_KEPT,
    PartitionedState,
    StateStore,
    repartition,
)
from edgewise.errors import StateError


def save(store, version, changed):
    """Waits for the snapshot, where one is made."""
    later = store.save(version, changed)
    if later is not None:
        later.result()


def folder(store):
    return store.storage.path


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
        save(store, version, changed)
        for key, value in changed:
            if value is None:
                model.pop(key, None)
            else:
                model[key] = value
        assert StateStore(folder(store).parent, 0).load(version) == model
        files = list(folder(store).iterdir())
        assert len(files) <= (SNAPSHOTS_KEPT + 1) * (SNAPSHOT_EVERY + 1)


def test_before_the_first_batch_there_is_no_state(tmp_path):
    assert StateStore(tmp_path, 0).load(-1) == {}


def test_the_version_before_the_last_is_still_there_for_a_repeated_batch(tmp_path):
    store = StateStore(tmp_path, 0)
    for version in range(SNAPSHOT_EVERY + 1):
        save(store, version, [(b"k", str(version).encode())])
        assert store.load(version - 1).get(b"k", b"-1") == str(version - 1).encode()


def test_a_batch_saved_twice_is_saved_once(tmp_path):
    store = StateStore(tmp_path, 0)
    store.save(0, [(b"k", b"1")])
    store.save(0, [(b"k", b"1")])
    assert store.load(0) == {b"k": b"1"}


@pytest.mark.parametrize("spoil", ["flip", "cut", "head", "foreign", "renamed", "gone"])
def test_a_damaged_file_is_refused_by_name(tmp_path, spoil):
    store = StateStore(tmp_path, 0)
    store.save(0, [(b"k", b"value")])
    store.save(1, [(b"k", b"other")])
    path = folder(store) / "1.delta"
    data = bytearray(path.read_bytes())
    match spoil:
        case "flip":
            data[-1] ^= 1
            path.write_bytes(data)
        case "cut":
            path.write_bytes(data[:-2])
        case "head":
            path.write_bytes(data[:4])
        case "foreign":
            path.write_bytes(b"something else")
        case "renamed":
            path.write_bytes((folder(store) / "0.delta").read_bytes())
        case "gone":
            path.unlink()
    with pytest.raises(StateError, match=r"1\.delta"):
        store.load(1)


@given(st.dictionaries(st.binary(max_size=3), st.binary(max_size=3)), st.integers(1, 5))
def test_keys_move_to_another_number_of_partitions_and_none_is_lost(tmp_path_factory, state, new):
    root = tmp_path_factory.mktemp("state")

    def part_of(key, parts):
        return sum(key) % parts

    class BySum:
        def split(self, key, value, parts):
            if key == b"shared":
                return dict.fromkeys(range(parts), value)
            return {part_of(key, parts): value}

        def join(self, one, other):
            return one + other

    for part in range(3):
        mine = [(k, v) for k, v in state.items() if part_of(k, 3) == part]
        save(StateStore(root / "a", part), 0, mine)
        save(StateStore(root / "a", part), 1, [(k, v + b"!") for k, v in mine])
        save(StateStore(root / "a", part), 2, [(b"shared", b"x")])
    repartition(
        PartitionedState(open_storage(root / "a"), 3),
        PartitionedState(open_storage(root / "b"), new),
        2,
        BySum(),
    )
    moved = [StateStore(root / "b", part).load(2) for part in range(new)]
    assert {keys.pop(b"shared") for keys in moved} == {b"xxx"}
    for part, keys in enumerate(moved):
        assert {part_of(key, new) for key in keys} <= {part}
    assert {k: v for keys in moved for k, v in keys.items()} == {
        k: v + b"!" for k, v in state.items()
    }
    save(StateStore(root / "b", 0), 3, [(b"shared", None), (b"more", b"1")])
    assert StateStore(root / "b", 0).load(3) == moved[0] | {b"more": b"1"}


@pytest.mark.parametrize("version", [0, SNAPSHOT_EVERY - 1, SNAPSHOT_EVERY])
def test_a_change_between_two_batches_belongs_to_the_version_before_it(tmp_path, version):
    store = StateStore(tmp_path, 0)
    for step in range(version + 1):
        save(store, step, [(b"k", b"1"), (b"gone", b"1")])
    store.amend(version, [(b"k", b"2"), (b"gone", None)])
    assert store.load(version) == {b"k": b"2"}
    save(store, version + 1, [(b"n", b"1")])
    assert store.load(version + 1) == {b"k": b"2", b"n": b"1"}


def test_leftovers_of_a_killed_writer_are_removed_with_their_version(tmp_path):
    store = StateStore(tmp_path, 0)
    store.save(0, [])
    (folder(store) / ".3.delta.123.456").write_bytes(b"half")
    for version in range(1, 3 * SNAPSHOT_EVERY):
        save(store, version, [(b"k", b"1")])
    assert not list(folder(store).glob(".*"))


def test_small_deltas_become_one_and_load_as_before(tmp_path):
    """Few files whatever the size of the snapshot, and bytes that grow with what was saved."""
    store = StateStore(tmp_path, 0)
    expected = {f"k{n}".encode(): b"x" * 1000 for n in range(200)}
    store.start_from(0, dict(expected))
    written = last = 0
    for version in range(1, 3 * DELTAS_MAX):
        entries = [(f"c{version}".encode(), b"y" * 100), (f"c{version - 9}".encode(), None)]
        written += store.write_changes(version, entries, last)
        if version % 20 == 7:  # never completed: left out
            continue
        written += store.compact_if_due(version)
        last = version
        for key, value in entries:
            expected.pop(key, None)
            if value is not None:
                expected[key] = value
        assert len(store.versions()) <= DELTAS_MAX + 1
        if version % 10 == 0:
            assert store.load(version) == expected
    assert written <= 4 * 150 * version
