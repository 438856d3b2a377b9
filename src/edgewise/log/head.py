"""Publish in one mapped page how far readers may read.

The writer publishes after the fsync, so what the head names is durable. Two slots are written in
turn, each with a number and a checksum; a reader takes the newest valid one. The page itself is
not synced with every append: after a power loss it may be old, never ahead, and the next writer
finds the truth in the segments. The page also holds the fence: the lowest epoch that may append.
"""

from __future__ import annotations

import mmap
import os
import struct
import threading
import time
from pathlib import Path
from typing import NamedTuple

from zlib_ng.zlib_ng import crc32

from edgewise.errors import LogCorrupt
from edgewise.log.shared_counter import SharedCounter

NAME = "head"
PAGE_BYTES = 4096
SLOTS = (0, 512)
_COUNTER_AT = 1024
_FENCE_AT = 2048
_SLOT = struct.Struct("<8sQQQqQQQ")
_FENCE = struct.Struct("<Q")
_MAGIC = b"EWHEAD1\0"
_READ_TRIES_MAX = 200


class LogHead(NamedTuple):
    """What is durable. `segment` is the first offset of the active segment file."""

    epoch: int
    offset: int
    clock: int
    segment: int
    segment_bytes: int
    earliest: int


def _parse(page: bytes, at: int) -> tuple[int, LogHead] | None:
    raw = page[at : at + _SLOT.size]
    crc = int.from_bytes(page[at + _SLOT.size : at + _SLOT.size + 4], "little")
    magic, number, *fields = _SLOT.unpack(raw)
    if magic != _MAGIC or crc32(raw) != crc:
        return None
    return number, LogHead(*fields)


class HeadFile:
    """The page, mapped. `writable` is for the one writer."""

    def __init__(self, directory: Path, *, writable: bool = False) -> None:
        self.path = directory / NAME
        flags = os.O_RDWR | os.O_CREAT if writable else os.O_RDONLY
        fd = os.open(self.path, flags | os.O_CLOEXEC, 0o644)
        try:
            if os.fstat(fd).st_size < PAGE_BYTES:
                if not writable:
                    raise LogCorrupt(
                        f"{self.path}: shorter than a page; opening a writer rebuilds it"
                    )
                # Real bytes, not a hole: a store into a hole on a full disk ends the process.
                os.pwrite(fd, bytes(PAGE_BYTES), 0)
                os.fsync(fd)
            access = mmap.ACCESS_WRITE if writable else mmap.ACCESS_READ
            self._page = mmap.mmap(fd, PAGE_BYTES, access=access)
        finally:
            os.close(fd)
        self._number = 0
        self._lock = threading.Lock()
        self.changes = SharedCounter(self._page, _COUNTER_AT)

    def peek(self) -> LogHead | None:
        """The newest valid slot, None if both are damaged or were never written."""
        page = self._page[:PAGE_BYTES]
        slots = [s for s in (_parse(page, at) for at in SLOTS) if s]
        if not slots:
            return None
        # A writer that lost the log may publish once more: its epoch is lower and does not count.
        number, head = max(slots, key=lambda s: (s[1].epoch, s[0]))
        self._number = max(self._number, number)
        return head

    @property
    def fence(self) -> int:
        """The lowest epoch that may append."""
        return int(_FENCE.unpack_from(self._page, _FENCE_AT)[0])

    def raise_fence(self, epoch: int) -> None:
        self._page[_FENCE_AT : _FENCE_AT + 8] = _FENCE.pack(max(epoch, self.fence))

    def read(self) -> LogHead:
        for _ in range(_READ_TRIES_MAX):
            head = self.peek()
            if head:
                return head
            time.sleep(0.0005)  # the writer is between two stores, or dead
        raise LogCorrupt(f"{self.path}: both slots fail their checksum; a writer rebuilds them")

    def publish(self, head: LogHead) -> None:
        with self._lock:
            self._number += 1
            at = SLOTS[self._number % 2]
            raw = _SLOT.pack(_MAGIC, self._number, *head)
            # One slice assignment is one memcpy; a reader that sees half of it fails the checksum.
            self._page[at : at + len(raw) + 4] = raw + crc32(raw).to_bytes(4, "little")
            self.changes.increment()

    def sync(self) -> None:
        self._page.flush()
