"""A file system that is really full, with its own journal: ext4 in a file where the system lets us
mount one, otherwise a tmpfs. The last line of each test is its report."""

import os
import random
import shutil
import subprocess

import pytest

from edgewise.errors import LogError, LogFull
from edgewise.log.api import LogConfig
from edgewise.log.laws import SCHEMA, make_rows, read_all
from edgewise.log.ledger import archive_ledgers
from edgewise.log.segment_reader import SegmentReader
from edgewise.log.segment_writer import SegmentWriter
from edgewise.log.verify import verify_log

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]

DISK_MB = 12
FULL_TIMES = 6
CONFIG = LogConfig(segment_bytes_max=300_000)


def run(*words):
    return subprocess.run(words, capture_output=True, check=False, text=True).returncode == 0


@pytest.fixture(params=["ext4", "tmpfs"])
def disk(request, tmp_path):
    assert os.geteuid() == 0, "mounting a small disk needs root; run this test as root"
    place, image = tmp_path / "disk", tmp_path / "image"
    place.mkdir()
    if request.param == "tmpfs":
        assert run("mount", "-t", "tmpfs", "-o", f"size={DISK_MB}m", "none", str(place))
    else:
        with image.open("wb") as file:
            file.truncate(DISK_MB * 1024 * 1024)
        made = shutil.which("mkfs.ext4") and run("mkfs.ext4", "-q", "-F", str(image))
        if not made or not run("mount", "-o", "loop", str(image), str(place)):
            pytest.skip("no loop device or no mkfs.ext4 here: the tmpfs has to do")
    yield place
    run("umount", "-l", str(place))


def fill(place, leave_bytes):
    """A file that takes what is there but `leave_bytes`."""
    with (place / "ballast").open("ab", buffering=0) as file:
        while True:
            state = os.statvfs(place)
            more = min(state.f_bavail * state.f_frsize - leave_bytes, 64 * 1024)
            if more <= 0:
                return
            try:
                file.write(b"\1" * more)
            except OSError:
                return


def test_a_disk_that_is_full_again_and_again_loses_and_doubles_nothing(disk):
    chance = random.Random(11)
    writer = SegmentWriter.open(disk / "log", SCHEMA, CONFIG)
    at = refused = archived = 0
    for number in range(FULL_TIMES):
        fill(disk, chance.randrange(0, 200_000))
        while True:
            try:
                writer.append(make_rows(list(range(at, at + 50))), producer="p", sequence=at)
            except LogFull:
                refused += 1
                break
            at += 50
        if number % 2:  # the process ends there, too
            writer.close()
        try:  # a move to Parquet finds no room either: it leaves everything as it was
            archived += archive_ledgers(disk / "log", 2**60, 0)
        except (LogError, OSError):
            refused += 1
        (disk / "ballast").unlink()
        if number % 2:
            writer = SegmentWriter.open(disk / "log", SCHEMA, CONFIG)
        writer.append(make_rows(list(range(at, at + 50))), producer="p", sequence=at)
        at += 50
        if at > 20_000:
            break
        archived += archive_ledgers(disk / "log", 2**60, 0)
    writer.close()
    reader = SegmentReader.open(disk / "log")
    assert read_all(reader).column("_ts").to_pylist() == list(range(at))
    reader.close()
    assert verify_log(disk / "log").good
    print(
        f"faults tried: {refused} times no room on a real disk; events checked: {at}, "
        f"ledgers moved meanwhile: {archived}"
    )
