"""The active segment: the one file of a log that grows. Made, taken up again, written, sealed.

Bytes go behind the last durable one and are synced; a write that failed is cut away again. Who may
write and what readers are told is the writer's business.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import msgspec

from edgewise.log.files import segment_path, sync_directory, write_all, write_durably
from edgewise.log.frame import FrameKind, SegmentHeader, pack_frame, pack_trailer
from edgewise.log.scan import Scan, Tally, scan


class ActiveSegment:
    """`tally` says what of the file is durable."""

    def __init__(self, path: Path, fd: int, tally: Tally, created_ms: int) -> None:
        self.path = path
        self.tally = tally
        self.created_ms = created_ms
        self._fd = fd

    @classmethod
    def create(cls, directory: Path, header: SegmentHeader) -> ActiveSegment:
        """An empty one. The file gets its name when it is whole."""
        frame = pack_frame(
            FrameKind.HEADER, msgspec.msgpack.encode(header), first=header.base,
            epoch=header.epoch, clock_before=header.clock_before,
        )  # fmt: skip
        path = segment_path(directory, header.base)
        young = path.with_suffix(f".{header.epoch}.tmp")
        fd = os.open(young, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
        try:
            made = False
            size = write_all(fd, frame, 0)
            os.fsync(fd)
            _name(young, path, header.epoch)
            made = True
            young.unlink()
            sync_directory(directory)
        except BaseException:
            os.close(fd)
            young.unlink(missing_ok=True)
            if made:
                path.unlink(missing_ok=True)
            raise
        tally = Tally(header.base, header.base, header.clock_before, size)
        return cls(path, fd, tally, header.created_ms)

    @classmethod
    def take_up(cls, found: Scan) -> ActiveSegment:
        """One that an earlier writer left, without what may lie behind its last whole append."""
        fd = os.open(found.path, os.O_RDWR | os.O_CLOEXEC)
        try:
            if found.damaged:
                os.ftruncate(fd, found.tally.position)
            os.fsync(fd)
        except BaseException:
            os.close(fd)
            raise
        return cls(found.path, fd, found.tally, found.header.created_ms)

    def write(self, buffers: list[Any]) -> None:
        """Back when they are on disk. The caller adds them to the tally, or calls `undo`."""
        write_durably(self._fd, buffers, self.tally.position)

    def undo(self) -> None:
        """The file ends again at its last durable byte."""
        os.ftruncate(self._fd, self.tally.position)
        os.fsync(self._fd)

    def seal(self, epoch: int, sealed_ms: int) -> None:
        """The last write: what the segment holds."""
        tally = self.tally
        footer = pack_frame(
            FrameKind.FOOTER, msgspec.msgpack.encode(tally.footer(sealed_ms)), first=tally.offset,
            epoch=epoch, clock_before=tally.clock, durable_before=tally.position,
        )  # fmt: skip
        self.write([*footer, pack_trailer(tally.position)])

    def close(self) -> None:
        os.close(self._fd)


def _name(young: Path, path: Path, epoch: int) -> None:
    """Unlike a rename, a link never replaces what a later writer made."""
    try:
        os.link(young, path)
    except FileExistsError:
        if scan(path, 1).header.epoch >= epoch:
            raise
        path.unlink()  # made by a writer that was fenced meanwhile: it acknowledged nothing
        os.link(young, path)
