"""One behaviour on every file system: a file is whole or not there."""

import pytest
from pyarrow import fs

from edgewise.engines.homes import ArrowHome, LocalHome, below, home
from edgewise.engines.state import SNAPSHOT_EVERY, StateStore
from edgewise.errors import SetupError


@pytest.fixture(params=["local", "subtree", "mock"])
def place(request, tmp_path):
    match request.param:
        case "local":
            return LocalHome(tmp_path / "state")
        case "subtree":
            return ArrowHome(fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem()), "state")
        case _:
            return ArrowHome(fs._MockFileSystem(), "bucket/state")


def test_what_was_written_is_read_listed_and_removed(place):
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


def test_state_lives_on_any_file_system(place):
    store = StateStore(place, 3)
    for version in range(2 * SNAPSHOT_EVERY + 1):
        later = store.save(version, [(b"k", str(version).encode())])
        if later is not None:
            later.result()
    assert StateStore(place, 3).load(2 * SNAPSHOT_EVERY) == {b"k": b"32"}
    assert StateStore(place, 3).load(2 * SNAPSHOT_EVERY - 1) == {b"k": b"31"}


def test_a_uri_names_a_file_system_and_a_path_is_local(tmp_path):
    assert home(f"file://{tmp_path}/x").path == home(tmp_path / "x").path
    assert isinstance(home("mock://bucket/x"), ArrowHome)


def test_a_place_inside_a_uri_keeps_what_the_uri_asks_for():
    asked = "s3://me:secret@bucket/state/?region=eu-west-1&scheme=http"
    assert below(asked, "0", "q") == "s3://me:secret@bucket/state/0/q?region=eu-west-1&scheme=http"
    assert below("s3://bucket", "0") == "s3://bucket/0"
    assert below("/data/state/", "0", "q") == "/data/state/0/q"


def test_a_file_system_that_nobody_knows_is_refused_without_its_secret():
    with pytest.raises(SetupError, match="nfs://host/state cannot be reached") as refused:
        home("nfs://me:secret@host/state")
    assert "secret" not in str(refused.value)
