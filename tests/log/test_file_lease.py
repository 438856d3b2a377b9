"""A lease in a directory: what the laws cannot say, with real processes and damaged files."""

import os
import signal
import subprocess
import sys

import pytest

from edgewise.errors import LeaseError
from edgewise.log.file_lease import DIRECTORY, FileLease, name_holder
from edgewise.log.lease import RATE_MARGIN, TTL_MS

HOLDER = """
import sys, time
from pathlib import Path
from edgewise.log.file_lease import FileLease
lease = FileLease(Path(sys.argv[1]))
assert lease.try_acquire()
print(lease.epoch, flush=True)
while lease.renew():
    time.sleep(0.05)
print("lost", flush=True)
"""


@pytest.fixture
def holder(tmp_path):
    child = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert child.stdout.readline() == "1\n"
        yield child
    finally:
        child.kill()
        child.wait()
        child.stdout.close()


def test_a_killed_holder_on_this_machine_is_replaced_at_once(tmp_path, holder):
    lease = FileLease(tmp_path)
    assert not lease.try_acquire()
    holder.kill()
    holder.wait()
    assert lease.try_acquire()
    assert lease.epoch == 2


def test_a_killed_holder_on_another_machine_is_replaced_after_the_bound(tmp_path, holder):
    now_ms = 0
    lease = FileLease(tmp_path, now_ms=lambda: now_ms, boot_id="another machine")
    holder.kill()
    holder.wait()
    assert not lease.try_acquire()
    now_ms = int(TTL_MS * RATE_MARGIN) + 1
    assert lease.try_acquire()


def test_a_stopped_holder_is_replaced_after_the_bound_and_finds_out_when_it_wakes(
    tmp_path, holder
):
    now_ms = 0
    lease = FileLease(tmp_path, now_ms=lambda: now_ms)
    holder.send_signal(signal.SIGSTOP)
    assert not lease.try_acquire()
    now_ms = TTL_MS
    assert not lease.try_acquire(), "the holder may rely on its lease until now"
    now_ms = int(TTL_MS * RATE_MARGIN) + 1
    assert lease.try_acquire()
    holder.send_signal(signal.SIGCONT)
    assert holder.stdout.readline() == "lost\n"
    assert lease.renew()


def test_a_torn_record_counts_as_a_sign_of_life_that_ages(tmp_path):
    now_ms = 0
    (tmp_path / DIRECTORY).mkdir()
    (tmp_path / DIRECTORY / f"{7:020d}").write_bytes(b'{"epoch": 7, "hol')
    lease = FileLease(tmp_path, now_ms=lambda: now_ms)
    assert lease.read().epoch == 7
    assert not lease.try_acquire()
    now_ms = int(TTL_MS * RATE_MARGIN) + 1
    assert lease.try_acquire()
    assert lease.epoch == 8


def test_a_contender_with_an_old_listing_does_not_win_a_past_epoch(tmp_path):
    new = FileLease(tmp_path)
    for _ in range(3):
        assert new.try_acquire()
        epoch = new.epoch
        new.release()
    assert new.try_acquire()
    late = FileLease(tmp_path)
    assert not late._link(epoch)
    assert new.renew()


def test_a_directory_that_cannot_be_created_is_reported(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(LeaseError, match=r"cannot write .*lease: Not a directory"):
        FileLease(tmp_path / "file" / "data").try_acquire()


def test_a_holder_is_named_by_host_and_process():
    host, _, pid = name_holder().rpartition(":")
    assert host
    assert int(pid) == os.getpid()
