import os

import pytest

from edgewise.event.arrow import to_arrow
from edgewise.log.active_segment import ActiveSegment
from edgewise.log.api import CLOCK_NONE
from edgewise.log.files import segment_path
from edgewise.log.frame import FrameKind, SegmentHeader, pack_frame
from edgewise.log.laws import SCHEMA
from edgewise.log.scan import scan_segment


def header(base=0, epoch=1):
    schema = to_arrow(SCHEMA).serialize().to_pybytes()
    return SegmentHeader(base, epoch, CLOCK_NONE, created_ms=7, schema=schema)


def write(segment, rows=2):
    """A frame whose body says nothing: only its place counts here."""
    totals = segment.totals
    frame = pack_frame(FrameKind.DATA, b"body", first=totals.offset, rows=rows, epoch=1, ts_min=1,
                       ts_max=1, clock_before=totals.clock)  # fmt: skip
    end = totals.position + sum(map(len, frame))
    segment.write(frame)
    totals.add(totals.offset, rows, epoch=1, times=(1, 1), position=totals.position, end=end)


def test_a_segment_is_made_written_sealed_and_found_whole(tmp_path):
    segment = ActiveSegment.create(tmp_path, header())
    write(segment)
    write(segment)
    segment.seal(1, 9)
    segment.close()
    found = scan_segment(segment_path(tmp_path, 0), 1)
    assert (found.sealed, found.damaged, found.totals.offset) == (True, None, 4)
    assert list(tmp_path.glob("*.tmp")) == []


def test_what_was_not_added_to_the_tally_is_undone(tmp_path):
    segment = ActiveSegment.create(tmp_path, header())
    write(segment)
    durable = segment.totals.position
    segment.write([b"half a frame"])
    assert segment.path.stat().st_size > durable
    segment.undo()
    assert segment.path.stat().st_size == durable
    segment.close()


def test_a_torn_tail_is_cut_when_it_is_taken_up(tmp_path):
    segment = ActiveSegment.create(tmp_path, header())
    write(segment)
    durable = segment.totals.position
    segment.write([b"torn"])
    segment.close()
    again = ActiveSegment.reopen(scan_segment(segment.path, 1))
    assert (again.created_ms, again.totals.offset) == (7, 2)
    assert again.path.stat().st_size == durable
    write(again)
    again.close()
    assert scan_segment(segment.path, 1).totals.offset == 4


def test_the_segment_of_a_later_writer_is_never_replaced(tmp_path):
    ActiveSegment.create(tmp_path, header(epoch=3)).close()
    with pytest.raises(FileExistsError):
        ActiveSegment.create(tmp_path, header(epoch=2))
    ActiveSegment.create(tmp_path, header(epoch=4)).close()
    assert scan_segment(segment_path(tmp_path, 0), 1).header.epoch == 4


def test_one_that_cannot_be_made_leaves_nothing(tmp_path, monkeypatch):
    def refuse(fd):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(OSError, match="No space"):
        ActiveSegment.create(tmp_path, header())
    assert list(tmp_path.iterdir()) == []
