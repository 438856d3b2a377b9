from itertools import pairwise

import pytest

from edgewise.errors import LogCorrupt
from edgewise.log.api import LogConfig
from edgewise.log.files import segment_bases, segment_path
from edgewise.log.laws import SCHEMA, make_rows
from edgewise.log.scan import scan_segment
from edgewise.log.segment_writer import SegmentWriter


@pytest.fixture
def segment(tmp_path):
    writer = SegmentWriter.open(tmp_path, SCHEMA, LogConfig(batch_rows_max=4))
    for at in range(0, 60, 6):
        writer.append(make_rows(list(range(at, at + 6))), producer="p", sequence=at)
    writer.close()
    return segment_path(tmp_path, 0)


def test_a_whole_segment_is_walked_to_its_end(segment):
    found = scan_segment(segment, 10)
    assert found.damaged is None
    assert (found.totals.offset, found.totals.clock, found.totals.frames) == (60, 59, 20)
    assert found.producers.last("p") == 54
    assert not found.sealed


def test_cut_anywhere_only_whole_appends_count(segment):
    data = segment.read_bytes()
    whole = scan_segment(segment, 10)
    for size in range(len(data) - 1, len(data) // 2, -97):
        segment.write_bytes(data[:size])
        found = scan_segment(segment, 10)
        assert found.totals.offset % 6 == 0
        assert found.totals.position <= size
        assert found.damaged is None or found.damaged.short
    assert whole.totals.position == len(data)


def test_a_flipped_byte_behind_which_frames_follow_was_durable(segment):
    data = bytearray(segment.read_bytes())
    data[len(data) // 2] ^= 4
    segment.write_bytes(data)
    found = scan_segment(segment, 10)
    assert found.damaged is not None
    assert found.durable > found.damaged.position


def test_a_damaged_header_is_said_with_file_and_position(segment):
    data = bytearray(segment.read_bytes())
    data[200] ^= 4
    segment.write_bytes(data)
    with pytest.raises(LogCorrupt, match=r"00\.seg: byte 0"):
        scan_segment(segment, 10)
    segment.write_bytes(b"")
    with pytest.raises(LogCorrupt, match="empty"):
        scan_segment(segment, 10)


def test_sealed_segments_carry_their_sums(tmp_path):
    writer = SegmentWriter.open(tmp_path, SCHEMA, LogConfig(segment_bytes_max=10_000))
    for at in range(0, 300, 10):
        writer.append(make_rows(list(range(at, at + 10))))
    writer.close()
    bases = segment_bases(tmp_path)
    assert len(bases) > 3
    for base, end in pairwise(bases):
        found = scan_segment(segment_path(tmp_path, base), 10)
        assert (found.sealed, found.damaged) == (True, None)
        assert (found.totals.offset, found.totals.ts_min, found.totals.ts_max) == (
            end,
            base,
            end - 1,
        )
