"""One behaviour on every file system: a file is whole or not there."""

import pytest
from pyarrow import fs
from tests.engines.home_laws import (
    versions_are_kept_and_compacted,
    what_was_written_is_read_listed_and_removed,
)

from edgewise.engines.homes import ArrowHome, LocalHome, below, home
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


@pytest.mark.parametrize(
    "law", [what_was_written_is_read_listed_and_removed, versions_are_kept_and_compacted]
)
def test_every_home_keeps_the_law(place, law):
    law(place)


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


def test_what_is_cleared_up_while_sizes_are_asked_is_left_out(tmp_path, monkeypatch):
    home = LocalHome(tmp_path)
    home.write("a", b"12")
    monkeypatch.setattr(LocalHome, "names", lambda _: ["a", "gone"])
    assert home.sizes() == {"a": 2}
