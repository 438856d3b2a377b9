"""One behaviour on every file system: a file is whole or not there."""

import pytest
from pyarrow import fs
from tests.support.storage_laws import (
    versions_are_kept_and_compacted,
    what_was_written_is_read_listed_and_removed,
)

from edgewise.engines.state.storage import ArrowStorage, LocalStorage, join_path, open_storage
from edgewise.errors import SetupError


@pytest.fixture(params=["local", "subtree", "mock"])
def place(request, tmp_path):
    match request.param:
        case "local":
            return LocalStorage(tmp_path / "state")
        case "subtree":
            return ArrowStorage(fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem()), "state")
        case _:
            return ArrowStorage(fs._MockFileSystem(), "bucket/state")


@pytest.mark.parametrize(
    "law", [what_was_written_is_read_listed_and_removed, versions_are_kept_and_compacted]
)
def test_every_storage_keeps_the_laws(place, law):
    law(place)


def test_a_uri_names_a_file_system_and_a_path_is_local(tmp_path):
    assert open_storage(f"file://{tmp_path}/x").path == open_storage(tmp_path / "x").path
    assert isinstance(open_storage("mock://bucket/x"), ArrowStorage)


def test_a_directory_inside_a_uri_keeps_the_query_of_the_uri():
    asked = "s3://me:secret@bucket/state/?region=eu-west-1&scheme=http"
    assert (
        join_path(asked, "0", "q")
        == "s3://me:secret@bucket/state/0/q?region=eu-west-1&scheme=http"
    )
    assert join_path("s3://bucket", "0") == "s3://bucket/0"
    assert join_path("/data/state/", "0", "q") == "/data/state/0/q"


def test_an_unknown_file_system_is_refused_without_showing_its_secret():
    with pytest.raises(SetupError, match="nfs://host/state cannot be reached") as refused:
        open_storage("nfs://me:secret@host/state")
    assert "secret" not in str(refused.value)


def test_files_removed_while_sizes_are_read_are_left_out(tmp_path, monkeypatch):
    home = LocalStorage(tmp_path)
    home.write("a", b"12")
    monkeypatch.setattr(LocalStorage, "names", lambda _: ["a", "gone"])
    assert home.sizes() == {"a": 2}
