import errno
import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest

from edgewise.errors import LogCorrupt, LogError, LogFull, LogLocked
from edgewise.log import active_segment as active_module
from edgewise.log.api import DEFAULTS, Appended, LogConfig
from edgewise.log.files import segment_bases, segment_path, write_all
from edgewise.log.head import NAME
from edgewise.log.laws import SCHEMA, make_rows, read_all
from edgewise.log.parquet import move_to_parquet
from edgewise.log.segment_reader import SegmentReader
from edgewise.log.segment_writer import SegmentWriter

OPEN_FILES = Path("/proc/self/fd")


def filled(directory, count=100, config=DEFAULTS):
    writer = SegmentWriter.open(directory, SCHEMA, config)
    for at in range(0, count, 10):
        writer.append(make_rows(list(range(at, at + 10))), producer="p", sequence=at)
    return writer


def fill(writer, start):
    for at in range(start, 100):
        writer.append(make_rows([at]), producer="p", sequence=at + 100)


def times(directory):
    return read_all(SegmentReader.open(directory)).column("_ts").to_pylist()


def test_a_torn_tail_is_cut_and_said(tmp_path, caplog):
    filled(tmp_path).close()
    path = segment_path(tmp_path, 0)
    whole = path.read_bytes()
    path.write_bytes(whole + whole[-700:])
    with caplog.at_level(logging.WARNING):
        writer = SegmentWriter.open(tmp_path, SCHEMA)
    assert writer.bytes_cut == 700
    assert writer.torn_tail.position == len(whole)
    assert "cut a torn tail of 700 bytes" in caplog.text
    assert writer.append(make_rows([100])) == Appended(100, 101)
    writer.close()
    assert times(tmp_path) == list(range(101))
    assert SegmentWriter.open(tmp_path, SCHEMA).bytes_cut == 0


def test_a_disk_that_lost_what_it_confirmed_is_said(tmp_path, caplog):
    filled(tmp_path).close()
    path = segment_path(tmp_path, 0)
    os.truncate(path, path.stat().st_size - 5)
    with caplog.at_level(logging.ERROR):
        writer = SegmentWriter.open(tmp_path, SCHEMA)
    assert "10 acknowledged events are gone, offsets 90 to 100" in caplog.text
    assert writer.head.offset == 90
    writer.close()


@pytest.mark.parametrize("keep_head", [True, False])
def test_a_flipped_byte_in_the_middle_is_never_cut(tmp_path, keep_head):
    filled(tmp_path).close()
    path = segment_path(tmp_path, 0)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    if not keep_head:
        (tmp_path / NAME).unlink()
    with pytest.raises(LogCorrupt, match=rf"{path.name}: byte \d+: .* durable once"):
        SegmentWriter.open(tmp_path, SCHEMA)
    assert path.read_bytes() == data


def test_a_lost_or_broken_head_is_rebuilt_from_the_segments(tmp_path):
    writer = filled(tmp_path, config=LogConfig(segment_bytes_max=8_000))
    before = writer.head
    writer.close()
    for damage in (lambda p: p.unlink(), lambda p: p.write_bytes(bytes(4096))):
        damage(tmp_path / NAME)
        writer = SegmentWriter.open(tmp_path, SCHEMA)
        assert writer.head.offset == before.offset
        assert writer.head.epoch > before.epoch - 1
        writer.close()
        assert times(tmp_path) == list(range(100))


def test_lost_segments_are_not_taken_for_an_empty_log(tmp_path):
    filled(tmp_path).close()
    segment_path(tmp_path, 0).unlink()
    with pytest.raises(LogCorrupt, match="the head says offset 100"):
        SegmentWriter.open(tmp_path, SCHEMA)


def test_a_second_writer_in_another_process_is_told_who_holds_the_log(tmp_path):
    writer = filled(tmp_path)
    script = (
        "from edgewise.log.laws import SCHEMA\n"
        "from edgewise.log.segment_writer import SegmentWriter\n"
        "import sys; from pathlib import Path; SegmentWriter.open(Path(sys.argv[1]), SCHEMA)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert f"LogLocked: {tmp_path}: process {os.getpid()} writes this log" in done.stderr
    writer.close()


def test_another_schema_is_refused_and_leaves_the_lock(tmp_path):
    filled(tmp_path).close()
    other = type(SCHEMA).of("S", k="string", i="double")
    with pytest.raises(LogError, match="attribute 'i' is double, not int32"):
        SegmentWriter.open(tmp_path, other)
    SegmentWriter.open(tmp_path, SCHEMA).close()


@pytest.mark.parametrize("point", ["write", "sync", "half"])
def test_a_full_disk_loses_nothing_and_the_log_goes_on(tmp_path, monkeypatch, point):
    writer = filled(tmp_path)
    real_write = os.pwritev
    full = OSError(errno.ENOSPC, "No space left on device")

    def write(fd, buffers, position, flags=0):
        if point == "write":
            raise full
        if position % 64 or len(buffers) < 2:
            raise full
        return real_write(fd, [buffers[0], bytes(buffers[1])[:10]], position, flags)

    def sync(fd, buffers, position):
        write_all(fd, buffers, position)
        raise full

    with monkeypatch.context() as patch:
        if point == "sync":
            patch.setattr(active_module, "write_durably", sync)
        else:
            patch.setattr(os, "pwritev", write)
        for _ in range(2):
            with pytest.raises(LogFull, match="nothing was appended"):
                writer.append(make_rows([100]), producer="p", sequence=100)
        assert times(tmp_path) == list(range(100))
    assert writer.append(make_rows([100]), producer="p", sequence=100) == Appended(100, 101)
    writer.close()
    assert SegmentWriter.open(tmp_path, SCHEMA).bytes_cut == 0
    assert times(tmp_path) == list(range(101))


def test_a_disk_that_is_full_when_a_segment_is_sealed(tmp_path, monkeypatch):
    config = LogConfig(segment_bytes_max=8_000)
    writer = filled(tmp_path, 50, config)
    sealed = len(segment_bases(tmp_path))

    def refuse(directory):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(active_module, "sync_directory", refuse)
        with pytest.raises(LogFull):
            fill(writer, 50)
    last = writer.head.offset
    assert len(segment_bases(tmp_path)) == sealed
    fill(writer, last)
    writer.close()
    assert times(tmp_path) == list(range(100))
    assert len(segment_bases(tmp_path)) > sealed


FULL = """
import resource, sys
from pathlib import Path
from edgewise.errors import LogFull
from edgewise.log.laws import SCHEMA, make_rows
from edgewise.log.segment_writer import SegmentWriter
writer = SegmentWriter.open(Path(sys.argv[1]), SCHEMA)
resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, resource.RLIM_INFINITY))
at = 0
try:
    while at < 1000:
        writer.append(make_rows([at]))
        at += 1
except LogFull as full:
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    assert writer.append(make_rows([at])).first == at
    print(at + 1)
"""


def test_a_limit_of_the_system_is_a_full_disk(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert times(tmp_path) == list(range(int(done.stdout)))


def test_a_disk_that_fails_stops_the_writer_until_it_is_opened_again(tmp_path, monkeypatch):
    writer = filled(tmp_path)

    def fail(fd, buffers, position):
        write_all(fd, buffers, position)
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(active_module, "write_durably", fail)
        with pytest.raises(LogError, match="the disk failed"):
            writer.append(make_rows([100]))
    with pytest.raises(LogError, match="reopen"):
        writer.append(make_rows([100]))
    writer.close()
    writer = SegmentWriter.open(tmp_path, SCHEMA)
    assert writer.append(make_rows([100])) == Appended(100, 101)
    writer.close()


def test_segments_are_dropped_by_age_but_never_the_active_one(tmp_path):
    now = [1000]
    config = LogConfig(segment_bytes_max=6_000, retain_ms=500)
    writer = SegmentWriter.open(tmp_path, SCHEMA, config, now_ms=lambda: now[0])
    for at in range(0, 200, 10):
        writer.append(make_rows(list(range(at, at + 10))))
        now[0] += 20 if at != 100 else -400  # the clock may jump back
    sealed = segment_bases(tmp_path)[:-1]
    assert writer.retain(1000) == 0
    half = writer.retain(1600)
    assert 0 < half < len(sealed)
    assert writer.retain(1600) == 0
    assert writer.retain(now[0] + 30_000) == len(sealed) - half
    assert SegmentReader.open(tmp_path).earliest() == writer._totals.base
    assert writer.append(make_rows([1])).first == 200
    writer.close()


def test_a_stream_that_trickles_is_dropped_by_age_as_well(tmp_path):
    now = [0]
    hour = 60 * 60 * 1000
    config = LogConfig(retain_ms=4 * hour)
    writer = SegmentWriter.open(tmp_path, SCHEMA, config, now_ms=lambda: now[0])
    for at in range(48):  # an event every half hour
        now[0] = at * hour // 2
        writer.append(make_rows([at]))
        writer.retain(now[0])
    kept = read_all(SegmentReader.open(tmp_path)).column("_ts").to_pylist()
    assert kept == list(range(kept[0], 48))
    assert 4 * hour <= now[0] - kept[0] * hour // 2 <= 6 * hour
    writer.close()


def test_a_log_that_keeps_little_has_small_segments(tmp_path):
    mib = 1024 * 1024
    config = LogConfig(retain_bytes=4 * mib)
    assert (config.seal_bytes, LogConfig(retain_bytes=1).seal_bytes) == (mib, mib)
    writer = SegmentWriter.open(tmp_path, SCHEMA, config)
    for _ in range(60):
        writer.append(make_rows(list(range(2000))))
        writer.retain(0)
    size = sum(f.stat().st_size for f in tmp_path.glob("*.seg"))
    assert 3 * mib < size < 6 * mib
    writer.close()


def test_a_retention_that_was_broken_off_is_finished_on_open(tmp_path, monkeypatch):
    config = LogConfig(segment_bytes_max=6_000, retain_bytes=1)
    writer = filled(tmp_path, config=config)

    def die(path, missing_ok=False):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("pathlib.Path.unlink", die)
        with pytest.raises(KeyboardInterrupt):
            writer.retain(0)
    earliest = SegmentReader.open(tmp_path).earliest()
    assert earliest > segment_bases(tmp_path)[0]
    writer.close()
    SegmentWriter.open(tmp_path, SCHEMA, config).close()
    assert segment_bases(tmp_path)[0] == earliest


def test_appends_of_many_threads_share_an_fsync(tmp_path, monkeypatch):
    import threading

    writer = filled(tmp_path)
    real, calls = active_module.write_durably, []
    barrier = threading.Barrier(16)

    def slow(fd, buffers, position):
        calls.append(fd)
        threading.Event().wait(0.01)
        real(fd, buffers, position)

    monkeypatch.setattr(active_module, "write_durably", slow)

    def produce(at):
        barrier.wait(10)
        writer.append(make_rows([at]))

    threads = [threading.Thread(target=produce, args=(at,)) for at in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    writer.close()
    assert len(calls) < 16
    assert sorted(times(tmp_path)[100:]) == list(range(16))


def open_below(place: Path) -> list[str]:
    """Files below ``place`` this process holds open; others may come and go with the collector."""
    names = (os.path.realpath(fd) for fd in OPEN_FILES.iterdir())
    return sorted(name for name in names if name.startswith(str(place)))


def test_a_refused_writer_holds_nothing(tmp_path):
    writer = filled(tmp_path)
    before = open_below(tmp_path)
    for _ in range(3):
        with pytest.raises(LogLocked):
            SegmentWriter.open(tmp_path, SCHEMA)
    assert open_below(tmp_path) == before
    writer.close()


def test_a_name_too_long_is_refused(tmp_path):
    writer = filled(tmp_path)
    with pytest.raises(LogError, match="180 bytes"):
        writer.append(make_rows([1]), producer="é" * 100, sequence=1)
    assert writer.last_sequence("p") == 90
    writer.close()


def test_a_log_that_cannot_be_opened_says_why(tmp_path, monkeypatch):
    def refuse(fd, buffers, position):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "pwritev", refuse)
        with pytest.raises(LogFull, match=r"cannot be opened: .* No space left"):
            SegmentWriter.open(tmp_path / "full", SCHEMA)
    SegmentWriter.open(tmp_path / "full", SCHEMA).close()
    (tmp_path / "file").touch()
    with pytest.raises(LogError, match="cannot be opened"):
        SegmentWriter.open(tmp_path / "file", SCHEMA)


def test_the_head_has_real_bytes_on_the_disk(tmp_path):
    filled(tmp_path).close()
    assert (tmp_path / NAME).stat().st_blocks * 512 >= 4096


@pytest.mark.parametrize("moved", [False, True])
def test_a_missing_active_segment_is_said(tmp_path, moved):
    filled(tmp_path, config=LogConfig(segment_bytes_max=8_000)).close()
    bases = segment_bases(tmp_path)
    for base in bases[:-1] if moved else ():
        move_to_parquet(tmp_path, base)
    segment_path(tmp_path, bases[-1]).unlink()
    with pytest.raises(LogCorrupt, match="the active segment is missing"):
        SegmentWriter.open(tmp_path, SCHEMA)
