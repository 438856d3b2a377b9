import logging

import pytest

from edgewise.errors import LogCorrupt, OutOfRange
from edgewise.log.api import LogConfig
from edgewise.log.files import segment_bases, segment_path
from edgewise.log.frame import parse_trailer
from edgewise.log.laws import SCHEMA, make_rows
from edgewise.log.mapped_segment import MappedSegment
from edgewise.log.segment_writer import SegmentWriter


@pytest.fixture
def sealed(tmp_path):
    writer = SegmentWriter.open(tmp_path, SCHEMA, LogConfig(segment_bytes_max=300_000))
    for at in range(0, 9000, 30):
        writer.append(make_rows(list(range(at, at + 30))))
    writer.close()
    bases = segment_bases(tmp_path)
    return segment_path(tmp_path, bases[1]), bases[1], bases[2]


def times(view, start):
    return [t for f, w in view.frames(start) for t in view.load(f, w).column("_ts").to_pylist()]


def test_frames_are_found_by_offset(sealed):
    path, base, end = sealed
    view = MappedSegment(path)
    assert (view.footer.base, view.footer.end) == (base, end)
    assert len(view.footer.index) > 2
    for start in range(base, end, 41):
        assert times(view, start)[-1] == end - 1
        assert times(view, start)[0] in range(start - 29, start + 1)


def test_a_batch_lies_in_the_mapped_file(sealed):
    view = MappedSegment(sealed[0])
    frame, window = next(view.frames(sealed[1]))
    rows = view.load(frame, window)
    inside = rows.column("_ts").buffers()[1].address - view._map.buffer.address
    assert frame.body_at <= inside < frame.end


def test_without_its_footer_a_segment_is_still_read(sealed, caplog):
    path, base, end = sealed
    data = bytearray(path.read_bytes())
    data[parse_trailer(bytes(data[-64:])) + 200] ^= 1
    path.write_bytes(data)
    with caplog.at_level(logging.WARNING):
        assert times(MappedSegment(path), base) == list(range(base, end))
    assert "the footer is damaged" in caplog.text


def test_a_flipped_byte_is_said_with_file_and_position(sealed):
    path, base, _ = sealed
    frame, _ = next(MappedSegment(path).frames(base + 100))
    data = bytearray(path.read_bytes())
    data[frame.body_at + 300] ^= 1
    path.write_bytes(data)
    with pytest.raises(LogCorrupt, match=rf"{path.name}: byte {frame.position}: the batch fails"):
        times(MappedSegment(path), base)


def test_a_segment_that_is_gone_or_too_short(sealed):
    path = sealed[0]
    with pytest.raises(LogCorrupt, match="the file ends before byte"):
        MappedSegment(path, durable_bytes=path.stat().st_size + 1)
    path.unlink()
    with pytest.raises(OutOfRange, match="retention"):
        MappedSegment(path)
