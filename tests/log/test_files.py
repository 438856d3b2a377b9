import errno
import os
import subprocess
import sys
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgewise.errors import LogLocked
from edgewise.log import files


def test_segments_are_listed_by_their_first_offset(tmp_path):
    for base in (4096, 0, 10**15):
        files.segment_path(tmp_path, base).touch()
    (tmp_path / "head").touch()
    assert files.segment_bases(tmp_path) == [0, 4096, 10**15]


def test_the_writer_that_holds_the_lock_is_named(tmp_path):
    fd = files.take_writer_lock(tmp_path)
    with pytest.raises(LogLocked, match=f"process {os.getpid()} writes this log"):
        files.take_writer_lock(tmp_path)
    with files.exclude_writers(tmp_path) as alone:
        assert not alone
    os.close(fd)
    with files.exclude_writers(tmp_path) as alone:
        assert alone
    os.close(files.take_writer_lock(tmp_path))


def test_where_nobody_ever_wrote_nobody_is_alone(tmp_path):
    with files.exclude_writers(tmp_path) as alone:
        assert not alone


def test_parents_are_made(tmp_path):
    files.make_directory(tmp_path / "a" / "b")
    files.make_directory(tmp_path / "a" / "b")
    assert (tmp_path / "a" / "b").is_dir()


def test_everything_is_written_though_the_system_takes_little_at_a_time(tmp_path, monkeypatch):
    real = os.pwritev

    def miser(fd, buffers, position):
        return real(fd, [bytes(buffers[0][:3])], position)

    monkeypatch.setattr(os, "pwritev", miser)
    with (tmp_path / "f").open("wb") as file:
        assert files.write_all(file.fileno(), [b"hello", b"", b"world", b"!"], 2) == 11
    assert (tmp_path / "f").read_bytes() == b"\0\0helloworld!"


@pytest.mark.parametrize("known", [True, False])
def test_a_durable_write_is_one_call_where_the_system_knows_it(tmp_path, monkeypatch, known):
    real, synced = os.pwritev, []

    def system(fd, buffers, position, flags=0):
        if flags and not known:
            raise OSError(errno.EOPNOTSUPP, "Operation not supported")
        synced.extend([flags] * bool(flags))
        return real(fd, buffers, position)

    monkeypatch.setattr(os, "pwritev", system)
    monkeypatch.setattr(files, "sync_data", lambda _: synced.append("after"))
    with (tmp_path / "f").open("wb") as file:
        files.write_durably(file.fileno(), [b"hello", b"world"], 0)
        assert synced == ([os.RWF_DSYNC] if known else ["after"])
        synced.clear()
        files.write_durably(file.fileno(), [b"ab"] * 3000, 10)
        assert synced[-1] == "after", "more buffers than one call takes"
    assert (tmp_path / "f").read_bytes() == b"helloworld" + b"ab" * 3000


@given(
    st.lists(st.integers(0, 300), max_size=8),
    st.integers(0, 200),
    st.integers(1, 90),
)
def test_a_long_write_in_pieces_is_the_same_bytes(tmp_path_factory, sizes, position, piece):
    buffers = [bytes([65 + at]) * size for at, size in enumerate(sizes)]
    path = tmp_path_factory.mktemp("long") / "f"
    begun = []
    with pytest.MonkeyPatch.context() as patch, path.open("wb") as file:
        patch.setattr(files, "_LARGE_WRITE_BYTES", 1)
        patch.setattr(files, "_PIECE_BYTES", piece)
        patch.setattr(files, "_start_writing", lambda _fd, *where: begun.append(where))
        files.write_durably(file.fileno(), buffers, position)
    whole = b"".join(buffers)
    assert path.read_bytes() == (b"\0" * position + whole if whole else b"")
    assert all((at + size) % piece == 0 for at, size, _ in begun), "no page is begun twice"


def test_many_buffers_are_written_in_several_calls(tmp_path):
    with (tmp_path / "f").open("wb") as file:
        assert files.write_all(file.fileno(), [b"ab"] * 3000, 0) == 6000
    assert (tmp_path / "f").read_bytes() == b"ab" * 3000


def test_a_writer_waits_for_a_reader_that_settles_the_log_after_a_crash(tmp_path):
    dead = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"],
                          stdout=subprocess.PIPE, text=True, check=True)  # fmt: skip
    (tmp_path / files.LOCK).write_text(dead.stdout)
    settled = threading.Event()
    begun = threading.Event()

    def settle():
        with files.exclude_writers(tmp_path) as alone:
            assert alone
            begun.set()
            settled.wait(0.4)

    thread = threading.Thread(target=settle)
    thread.start()
    assert begun.wait(10)
    files.release_writer_lock(files.take_writer_lock(tmp_path))
    thread.join()
    assert not (tmp_path / files.LOCK).read_text()
