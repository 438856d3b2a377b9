import pytest

from edgewise.log.file_lease import FileLease
from edgewise.log.lease_laws import LAWS


class FileLeaseSubject:
    """A directory, with a clock that moves only by `wait`. Each node has its own kernel."""

    ttl_ms = 3_000

    def __init__(self, directory):
        self.directory = directory
        self.now_ms = 0

    def open(self, holder):
        return FileLease(
            self.directory, holder, ttl_ms=self.ttl_ms, now_ms=lambda: self.now_ms, boot_id=holder
        )

    def wait(self, ms):
        self.now_ms += ms


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
def test_a_directory_keeps_the_law(law, tmp_path):
    law(FileLeaseSubject(tmp_path))
