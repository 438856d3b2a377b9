import json
import shutil
from contextlib import closing

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from edgewise.errors import LogError, LogLocked
from edgewise.event.arrow import KIND
from edgewise.event.event import EventKind
from edgewise.log.api import LogConfig
from edgewise.log.files import parquet_path, segment_bases, segment_path
from edgewise.log.laws import SCHEMA, make_rows
from edgewise.log.mapped_segment import MappedSegment
from edgewise.log.parquet import move_to_parquet
from edgewise.log.repair import RECORD, RepairMode, find_lost_ranges, repair_log
from edgewise.log.segment_reader import SegmentReader
from edgewise.log.segment_writer import SegmentWriter
from edgewise.log.verify import verify_log

NOW_MS = 1_790_000_000_000
CONFIG = LogConfig(segment_bytes_max=10_000)
ROWS = 200


def write(directory, values=range(ROWS)):
    writer = SegmentWriter.open(directory, SCHEMA, CONFIG)
    for at in range(0, len(values), 10):
        writer.append(make_rows(list(values[at : at + 10])), producer="p", sequence=at)
    writer.close()


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    directory = tmp_path_factory.mktemp("good") / "log"
    write(directory)
    return directory


@pytest.fixture
def log(good, tmp_path):
    return shutil.copytree(good, tmp_path / "log")


def flip(path, *positions):
    data = bytearray(path.read_bytes())
    for at in positions:
        data[at] ^= 1
    path.write_bytes(data)


def read(directory):
    reader = SegmentReader.open(directory)
    try:
        rows = [
            row
            for batch in reader.read(reader.earliest(), reader.head().offset)
            for row in batch.rows.to_pylist()
        ]
    finally:
        reader.close()
    return rows


def body_of(directory, number, frame=1):
    """A byte inside a batch of a segment."""
    path = segment_path(directory, segment_bases(directory)[number])
    base = segment_bases(directory)[number]
    last = number == len(segment_bases(directory)) - 1 or number == -1
    view = MappedSegment(path, durable_bytes=path.stat().st_size if last else None)
    return path, [f for f, _ in view.frames(base)][frame]


def test_a_good_log_is_left_alone(log):
    before = sorted(p.name for p in log.iterdir())
    for mode in RepairMode:
        assert repair_log(log, mode, NOW_MS) == []
    assert sorted(p.name for p in log.iterdir()) == before


@settings(
    max_examples=15,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.data())
def test_any_flipped_byte_is_skipped_restored_or_cut(good, tmp_path, data):
    number = data.draw(st.integers(0, len(segment_bases(good)) - 1))
    name = segment_path(good, segment_bases(good)[number]).name
    at = data.draw(st.integers(0, (good / name).stat().st_size - 1))
    whole = read(good)
    for mode in RepairMode:
        log = tmp_path / "log"
        shutil.rmtree(log, ignore_errors=True)
        shutil.copytree(good, log)
        flip(log / name, at)
        damaged = not verify_log(log).good
        lost = find_lost_ranges(log)
        copy = SegmentReader.open(good)
        assert repair_log(log, mode, NOW_MS, copy) or not lost
        assert verify_log(log).good, (damaged, lost)
        rows = read(log)
        if mode is RepairMode.RESTORE:
            assert rows == whole
        elif mode is RepairMode.CUT:
            assert rows == whole[: len(rows)]
            assert len(rows) == min([e.first for e in lost if e.rows], default=ROWS)
        else:
            gone = {o for e in lost for o in range(e.first, e.end)}
            assert [r for o, r in enumerate(rows) if o not in gone] == [
                r for o, r in enumerate(whole) if o not in gone
            ]
            assert all(rows[o][KIND] == EventKind.TICK for o in gone)
        copy.close()


def test_a_repaired_log_says_what_is_gone_and_goes_on(log):
    path, frame = body_of(log, 1)
    flip(path, frame.body_at + 100)
    lost = repair_log(log, RepairMode.SKIP, NOW_MS)
    assert [(e.first, e.end) for e in lost] == [(frame.first, frame.next)]
    (line,) = (log / RECORD).read_text().splitlines()
    record = json.loads(line)
    assert (record["mode"], record["first"], record["end"]) == ("skip", frame.first, frame.next)
    assert path.with_name(f"{path.name}.damaged").exists()
    writer = SegmentWriter.open(log, SCHEMA, CONFIG)
    assert writer.head.offset == ROWS
    assert writer.last_sequence("p") == ROWS - 10, "producers are still known"
    writer.append(make_rows([1, 2, 3]))
    writer.close()
    assert len(read(log)) == ROWS + 3
    assert verify_log(log).good


def test_a_lost_file_and_a_damaged_ledger_in_parquet_are_restored(log, good):
    bases = segment_bases(log)
    move_to_parquet(log, bases[0])
    flip(parquet_path(log, bases[0]), 2000)
    segment_path(log, bases[2]).unlink()
    with closing(SegmentReader.open(good)) as copy:
        lost = repair_log(log, RepairMode.RESTORE, NOW_MS, copy)
    assert {e.first for e in lost} == {bases[0], bases[2]}
    assert verify_log(log).good
    assert read(log) == read(good)


def test_a_copy_of_something_else_is_refused(log, tmp_path):
    path, frame = body_of(log, 1)
    flip(path, frame.body_at + 100)
    other, short = tmp_path / "other", tmp_path / "short"
    write(other, range(1000, 1000 + ROWS))
    write(short, range(10))
    for directory, reason in ((other, "no copy of this log"), (short, "are needed")):
        with closing(SegmentReader.open(directory)) as copy, pytest.raises(LogError, match=reason):
            repair_log(log, RepairMode.RESTORE, NOW_MS, copy)
    assert not verify_log(log).good, "nothing was changed"


def test_a_log_that_is_written_is_not_repaired(log):
    writer = SegmentWriter.open(log, SCHEMA, CONFIG)
    with pytest.raises(LogLocked):
        repair_log(log, RepairMode.SKIP, NOW_MS)
    writer.close()
