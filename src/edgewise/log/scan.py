"""Scan a whole segment file and check every byte of it.

A writer scans the last segment after a crash to know what of it is durable. The totals of a
segment (`SegmentTotals`) are kept while appending and rebuilt by a scan; they become its footer. A
scan reads the whole file, so readers use `mapped_segment` instead, which checks what it reads.
"""

from __future__ import annotations

import mmap
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from edgewise.errors import LogCorrupt
from edgewise.log.api import CLOCK_NONE
from edgewise.log.frame import (
    TS_MAX,
    Damaged,
    Frame,
    FrameKind,
    IndexEntry,
    SegmentFooter,
    SegmentHeader,
    check_body,
    find_durable_bytes,
    parse_frame,
    parse_trailer,
)
from edgewise.log.producers import Producers

INDEX_STRIDE_BYTES = 64 * 1024


@dataclass(slots=True)
class SegmentTotals:
    """What a segment holds up to `position`."""

    base: int
    offset: int
    clock: int
    position: int
    epoch_first: int = 0
    epoch_last: int = 0
    ts_min: int = TS_MAX
    ts_max: int = CLOCK_NONE
    frames: int = 0
    index: list[IndexEntry] = field(default_factory=list)

    def add(
        self,
        first: int,
        rows: int,
        *,
        epoch: int,
        times: tuple[int, int],
        position: int,
        end: int,
    ) -> None:
        """A frame of `rows` rows lies at `position`, the next one at `end`."""
        if not self.index or position - self.index[-1].position >= INDEX_STRIDE_BYTES:
            self.index.append(IndexEntry(first, position))
        self.epoch_first = self.epoch_first or epoch
        self.epoch_last = epoch
        self.ts_min = min(self.ts_min, times[0])
        self.ts_max = max(self.ts_max, times[1])
        self.clock = max(self.clock, times[1])
        self.offset = first + rows
        self.position = end
        self.frames += 1

    def footer(self, sealed_ms: int) -> SegmentFooter:
        return SegmentFooter(
            base=self.base,
            end=self.offset,
            epoch_first=self.epoch_first,
            epoch_last=self.epoch_last,
            ts_min=self.ts_min,
            ts_max=self.ts_max,
            clock_after=self.clock,
            sealed_ms=sealed_ms,
            frames=self.frames,
            index=self.index,
        )


@dataclass(slots=True)
class SegmentScan:
    """A segment file as it was found. `damaged` says why the walk ended, None at a clean end."""

    path: Path
    header: SegmentHeader
    totals: SegmentTotals
    producers: Producers
    file_bytes: int
    sealed: bool = False
    damaged: Damaged | None = None
    durable: int = 0  # bytes that a frame behind the damage calls durable


def read_header(path: Path, buffer: Any, limit: int) -> tuple[SegmentHeader, Frame]:
    """The header frame; nothing of a segment can be read without it."""
    try:
        frame = parse_frame(buffer, 0, limit)
        header = msgspec.msgpack.decode(check_body(buffer, frame), type=SegmentHeader)
    except (Damaged, msgspec.MsgspecError) as error:
        raise LogCorrupt(f"{path}: byte 0: the segment header is damaged ({error})") from error
    return header, frame


def scan_segment(path: Path, producers_max: int) -> SegmentScan:
    """Check every frame. Damage ends the walk and is reported, not raised."""
    with path.open("rb") as file:
        size = file.seek(0, 2)
        if size == 0:
            raise LogCorrupt(f"{path}: byte 0: the file is empty, its header is gone")
        page = mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ)
    buffer = memoryview(page)
    header, first = read_header(path, buffer, size)
    totals = SegmentTotals(header.base, header.base, header.clock_before, first.end)
    found = SegmentScan(
        path, header, totals, Producers.restore(header.producers, producers_max), size
    )
    try:
        _walk(found, buffer)
    except Damaged as damaged:
        found.damaged = damaged.with_traceback(None)  # which would keep the file mapped
        found.durable = find_durable_bytes(buffer, damaged.position, size)
    return found


def _walk(found: SegmentScan, buffer: memoryview) -> None:
    """Frames of one append count only when the last of them is there."""
    totals, at = found.totals, found.totals.position
    append: list[Frame] = []
    offset, clock = totals.offset, totals.clock
    while at < found.file_bytes:
        frame = parse_frame(buffer, at, found.file_bytes)
        check_body(buffer, frame)
        if frame.kind is FrameKind.FOOTER:
            tail = bytes(buffer[frame.end :])
            if parse_trailer(tail) != at:
                raise Damaged(at, "the footer is not complete", short=True)
            found.sealed = True
            return
        if frame.first != offset or frame.clock_before != clock:
            reason = f"offset {frame.first} where {offset} must follow"
            raise Damaged(at, reason)
        append.append(frame)
        offset, clock, at = frame.next, frame.clock_after, frame.end
        if not frame.more:
            for part in append:
                times = (part.ts_min, part.ts_max)
                totals.add(
                    part.first, part.rows, epoch=part.epoch, times=times,
                    position=part.position, end=part.end,
                )  # fmt: skip
                found.producers.record(part.producer, part.sequence, part.first, part.next)
            append.clear()
    if append:
        raise Damaged(append[0].position, "the last append is not complete", short=True)
