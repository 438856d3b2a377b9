import os

import pytest

from edgewise.edge.access.revocation import RevocationList
from edgewise.errors import SetupError


def test_names_are_read_again_when_the_file_changes(tmp_path):
    file = tmp_path / "revoked"
    file.write_text("# who left\nwall  # in May\n\n")
    revoked = RevocationList(file)
    first = revoked.names
    assert first == {"wall"}
    assert revoked.names is first
    file.write_text("wall\npanel\n")
    assert revoked.names == {"wall", "panel"}
    other = tmp_path / "new"
    other.write_text("panel\n")
    os.replace(other, file)  # noqa: PTH105 - as editors save
    assert revoked.names == {"panel"}


def test_a_file_that_is_gone_keeps_what_was_known(tmp_path):
    file = tmp_path / "revoked"
    file.write_text("wall\n")
    revoked = RevocationList(file)
    file.unlink()
    assert revoked.names == {"wall"}


def test_a_file_that_never_was_is_said_at_the_start(tmp_path):
    with pytest.raises(SetupError, match="revoked"):
        RevocationList(tmp_path / "revoked")
