"""Create, reopen, write and seal the active segment: the one file of a log that grows.

Bytes are written behind the last durable byte and synced; a write that failed is truncated away
again. Who may write, and when readers may see it, is decided by `segment_writer`, its only user.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from edgewise.log.api import Appended, EncodedBatch
from edgewise.log.files import segment_path, sync_directory, write_all, write_durably
from edgewise.log.frame import FrameKind, SegmentHeader, align, pack_frame, pack_trailer
from edgewise.log.group_commit import PendingAppend
from edgewise.log.scan import SegmentScan, SegmentTotals, scan_segment


class PackedBatch(NamedTuple):
    """One batch as a frame at `position` of the file; the next frame starts at `end`."""

    first: int
    batch: EncodedBatch
    position: int
    end: int


class PackedGroup(NamedTuple):
    """Appends as the bytes of one write, and the answer of each append."""

    buffers: list[Any]
    batches: list[PackedBatch]
    answers: list[Appended]

    def add_to(self, totals: SegmentTotals, epoch: int) -> None:
        for first, batch, position, end in self.batches:
            times = (batch.ts_min, batch.ts_max)
            totals.add(first, batch.rows, epoch=epoch, times=times, position=position, end=end)


def pack_group(group: list[PendingAppend], totals: SegmentTotals, epoch: int) -> PackedGroup:
    """Pack appends into frames that follow what `totals` describes."""
    packed = PackedGroup([], [], [])
    position, offset, clock = totals.position, totals.offset, totals.clock
    for entry in group:
        first = offset
        for batch in entry.batches:
            frame = pack_frame(
                FrameKind.DATA, batch.body, body_crc=batch.crc, first=offset, rows=batch.rows,
                epoch=epoch, ts_min=batch.ts_min, ts_max=batch.ts_max, clock_before=clock,
                durable_before=totals.position, sequence=entry.sequence, producer=entry.producer,
                more=batch is not entry.batches[-1],
            )  # fmt: skip
            packed.buffers.extend(frame)
            end = position + len(frame[0]) + align(batch.body.size)
            packed.batches.append(PackedBatch(offset, batch, position, end))
            position = end
            offset, clock = offset + batch.rows, max(clock, batch.ts_max)
        packed.answers.append(Appended(first, offset))
    return packed


class ActiveSegment:
    """`totals` describes what of the file is durable."""

    def __init__(self, path: Path, fd: int, totals: SegmentTotals, created_ms: int) -> None:
        self.path = path
        self.totals = totals
        self.created_ms = created_ms
        self._fd = fd

    @classmethod
    def create(cls, directory: Path, header: SegmentHeader) -> ActiveSegment:
        """Create an empty segment. The file gets its name when it is complete."""
        frame = pack_frame(
            FrameKind.HEADER, msgspec.msgpack.encode(header), first=header.base,
            epoch=header.epoch, clock_before=header.clock_before,
        )  # fmt: skip
        path = segment_path(directory, header.base)
        temporary = path.with_suffix(f".{header.epoch}.tmp")
        fd = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
        try:
            named = False
            size = write_all(fd, frame, 0)
            os.fsync(fd)
            _link_name(temporary, path, header.epoch)
            named = True
            temporary.unlink()
            sync_directory(directory)
        except BaseException:
            os.close(fd)
            temporary.unlink(missing_ok=True)
            if named:
                path.unlink(missing_ok=True)
            raise
        totals = SegmentTotals(header.base, header.base, header.clock_before, size)
        return cls(path, fd, totals, header.created_ms)

    @classmethod
    def reopen(cls, found: SegmentScan) -> ActiveSegment:
        """Reopen the segment of an earlier writer, without bytes behind its last whole append."""
        fd = os.open(found.path, os.O_RDWR | os.O_CLOEXEC)
        try:
            if found.damaged:
                os.ftruncate(fd, found.totals.position)
            os.fsync(fd)
        except BaseException:
            os.close(fd)
            raise
        return cls(found.path, fd, found.totals, found.header.created_ms)

    def write(self, buffers: list[Any]) -> None:
        """Return when they are on disk. The caller adds them to the totals, or calls `undo`."""
        write_durably(self._fd, buffers, self.totals.position)

    def undo(self) -> None:
        """Truncate the file to its last durable byte."""
        os.ftruncate(self._fd, self.totals.position)
        os.fsync(self._fd)

    def seal(self, epoch: int, sealed_ms: int) -> None:
        """Write the footer, which describes what the segment holds."""
        totals = self.totals
        footer = pack_frame(
            FrameKind.FOOTER, msgspec.msgpack.encode(totals.footer(sealed_ms)),
            first=totals.offset, epoch=epoch, clock_before=totals.clock,
            durable_before=totals.position,
        )  # fmt: skip
        self.write([*footer, pack_trailer(totals.position)])

    def close(self) -> None:
        os.close(self._fd)


def _link_name(temporary: Path, path: Path, epoch: int) -> None:
    """Unlike a rename, a link never replaces the segment of a later writer."""
    try:
        os.link(temporary, path)
    except FileExistsError:
        if scan_segment(path, 1).header.epoch >= epoch:
            raise
        path.unlink()  # of a writer that was fenced meanwhile: it acknowledged nothing
        os.link(temporary, path)
