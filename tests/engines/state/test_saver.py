"""State is saved when it pays, all fragments of a batch together or none."""

import pytest

from edgewise.engines.state.saver import SAVE_POINT, SavePoint, StateSaver
from edgewise.engines.state.storage import LocalStorage
from edgewise.engines.state.store import StateStore
from edgewise.errors import StateError


def test_a_save_holds_all_stores_as_of_one_batch(tmp_path):
    saver = StateSaver(LocalStorage(tmp_path))
    stores = [StateStore(tmp_path / name, 0) for name in "ab"]
    saver.record_rows(10)
    saver.save(SavePoint(3, {"S": 10}, 5), lambda: [(s, [(b"k", b"1")]) for s in stores])
    saver.save(SavePoint(9, {"S": 20}, 7), lambda: [(s, [(b"l", b"2")]) for s in stores])
    saver.close()
    again = StateSaver(LocalStorage(tmp_path))
    assert again.load() == SavePoint(9, {"S": 20}, 7)
    for store in stores:
        assert store.load(9) == {b"k": b"1", b"l": b"2"}
    assert saver.stats.saves == 2
    assert saver.rows == 0


def test_a_save_that_was_interrupted_does_not_count(tmp_path):
    saver = StateSaver(LocalStorage(tmp_path))
    store = StateStore(tmp_path / "a", 0)
    saver.save(SavePoint(1, {"S": 1}, 0), lambda: [(store, [(b"k", b"1")])])
    saver.close()
    store.write_changes(4, [(b"k", b"lost")], 1)  # and no save point after it
    again = StateSaver(LocalStorage(tmp_path))
    saved = again.load()
    again.save(SavePoint(6, {"S": 6}, 0), lambda: [(store, [(b"l", b"2")])])
    again.close()
    assert saved.version == 1
    assert store.load(6) == {b"k": b"1", b"l": b"2"}


def test_a_failed_save_is_raised_and_the_one_before_stays(tmp_path):
    saver = StateSaver(LocalStorage(tmp_path))
    store = StateStore(tmp_path / "a", 0)
    saver.save(SavePoint(1, {}, 0), lambda: [(store, [])])
    saver.wait()
    (tmp_path / "b").write_text("a file where a directory is needed")
    saver.save(SavePoint(2, {}, 0), lambda: [(StateStore(tmp_path / "b", 0), [(b"k", b"1")])])
    with pytest.raises(OSError, match="b"):
        saver.wait()
    assert StateSaver(LocalStorage(tmp_path)).load() == SavePoint(1, {}, 0)


def test_a_torn_save_point_is_refused(tmp_path):
    (tmp_path / SAVE_POINT).write_text("{")
    with pytest.raises(StateError, match="torn"):
        StateSaver(LocalStorage(tmp_path)).load()


def test_bytes_written_are_about_twice_the_bytes_changed(tmp_path):
    """A snapshot is due when the deltas since the last one are as large as it is."""
    saver = StateSaver(LocalStorage(tmp_path))
    store = StateStore(tmp_path / "a", 0)
    changed = 0
    for version in range(200):
        entries = [(f"{version}".encode(), b"x" * 10_000)]
        changed += 10_000
        saver.save(SavePoint(version, {}, 0), lambda entries=entries: [(store, entries)])
    saver.close()
    assert saver.stats.bytes < 4 * changed
    assert len(store.load(199)) == 200
