import os

import pytest

from edgewise.errors import LogError
from edgewise.log.api import LogConfig
from edgewise.log.files import ledger_path, parquet_path, segment_bases, segment_path
from edgewise.log.head import NAME
from edgewise.log.laws import SCHEMA, make_rows
from edgewise.log.mapped_segment import MappedSegment
from edgewise.log.parquet import move_to_parquet
from edgewise.log.segment_writer import SegmentWriter
from edgewise.log.verify import verify_log


@pytest.fixture
def log(tmp_path):
    writer = SegmentWriter.open(tmp_path, SCHEMA, LogConfig(segment_bytes_max=10_000))
    for at in range(0, 200, 10):
        writer.append(make_rows(list(range(at, at + 10))))
    writer.close()
    return tmp_path


def flip(path, *positions):
    data = bytearray(path.read_bytes())
    for at in positions:
        data[at] ^= 1
    path.write_bytes(data)


def test_a_good_log_is_good(log):
    report = verify_log(log)
    assert report.good
    assert (report.events, report.files) == (200, len(segment_bases(log)))
    move_to_parquet(log, 0)
    assert verify_log(log).good
    assert verify_log(log).events == 200


def test_every_damage_is_listed_with_its_position(log):
    path = segment_path(log, segment_bases(log)[1])
    frames = [f for f, _ in MappedSegment(path).frames(0)]
    flip(path, frames[0].position + 5, frames[2].body_at + 100)
    found = [(f.file, f.position) for f in verify_log(log).findings if f.position >= 0]
    assert found == [(path, frames[0].position), (path, frames[2].position)]


@pytest.mark.parametrize("last", [False, True])
def test_any_file_with_a_flipped_byte_is_found(log, last):
    base = segment_bases(log)[-1 if last else 0]
    path = segment_path(log, base)
    whole = path.read_bytes()
    view = MappedSegment(path, durable_bytes=len(whole) if last else None)
    frames = [f for f, _ in view.frames(base)]
    places = [30, 200, *(f.position + 20 for f in frames), *(f.body_at + 64 for f in frames)]
    for at in places:
        flip(path, at)
        report = verify_log(log)
        assert not report.good, at
        assert all(str(finding) for finding in report.findings)
        path.write_bytes(whole)
    assert verify_log(log).good


def test_missing_and_short_files_are_found(log):
    middle, last = segment_bases(log)[1], segment_bases(log)[-1]
    os.truncate(segment_path(log, last), 900)
    segment_path(log, middle).unlink()
    said = "\n".join(str(f) for f in verify_log(log).findings)
    assert "bytes were durable" in said
    assert f"offsets {middle} to" in said
    os.truncate(segment_path(log, last), 0)
    assert "the file is empty" in "\n".join(str(f) for f in verify_log(log).findings)


def test_damaged_parquet_head_and_footer_are_found(log):
    move_to_parquet(log, 0)
    flip(parquet_path(log, 0), 60)
    sealed = ledger_path(log, segment_bases(log)[1])
    flip(sealed, sealed.stat().st_size - 60)
    (log / NAME).write_bytes(bytes(4096))
    said = "\n".join(str(f) for f in verify_log(log).findings)
    assert "row group 0 is damaged" in said
    assert "the footer is missing or damaged" in said
    assert "both slots" in said


def test_no_log_is_said(tmp_path):
    with pytest.raises(LogError, match="there is no log here"):
        verify_log(tmp_path)


def test_a_log_that_is_being_written_is_good(tmp_path):
    writer = SegmentWriter.open(tmp_path, SCHEMA)
    writer.append(make_rows([1]))
    with segment_path(tmp_path, 0).open("ab") as file:
        file.write(b"half a frame that is not durable yet")
    assert verify_log(tmp_path).good
    writer.close()
