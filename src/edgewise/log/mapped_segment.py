"""Read one segment file through a memory map, never beyond what is durable.

The mapped part gives Arrow batches without a copy. The growing end of the active segment is read
in small pieces instead, so that a reader that tails does not keep a mapping per batch. Safe for
several threads: what changes (`_end`, `_map`, `_tail`, `_cursor`) is replaced as a whole.
`segment_reader` keeps a few of these open.
"""

from __future__ import annotations

import bisect
import logging
import mmap
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa

from edgewise.errors import LogCorrupt, OutOfRange
from edgewise.log.api import LogBatch
from edgewise.log.frame import (
    TRAILER_BYTES,
    Damaged,
    Frame,
    FrameKind,
    IndexEntry,
    SegmentFooter,
    check_body,
    parse_frame,
    parse_trailer,
)
from edgewise.log.scan import INDEX_STRIDE_BYTES, read_header

logger = logging.getLogger(__name__)

REMAP_BYTES = 4 * 1024 * 1024


class MappedBytes(NamedTuple):
    """A range of the file in memory: its bytes from `base` up to and without `limit`."""

    bytes: memoryview
    buffer: Any  # pyarrow.Buffer
    base: int
    limit: int


_EMPTY = MappedBytes(memoryview(b""), None, 0, 0)


class MappedSegment:
    def __init__(self, path: Path, *, durable_bytes: int | None = None) -> None:
        """`durable_bytes` for the active segment; a sealed one ends with its footer."""
        self.path = path
        self.footer: SegmentFooter | None = None
        self._map = self._tail = _EMPTY
        self._grow = threading.Lock()
        self._checked: set[int] = set()  # frames whose checksum this reader has verified
        self._end = self._open(durable_bytes)
        self.header, first = read_header(path, self._map.bytes, self._map.limit)
        self.schema = pa.ipc.read_schema(pa.py_buffer(self.header.schema))
        self._index = [IndexEntry(self.header.base, first.end)]
        self._cursor = self._index[0]
        if durable_bytes is None:
            self.seal()

    def _open(self, durable_bytes: int | None) -> int:
        try:
            size = self.path.stat().st_size
            if size < (durable_bytes or 1):
                raise LogCorrupt(
                    f"{self.path}: byte {size}: the file ends before byte {durable_bytes}, "
                    "up to which it was durable"
                )
            self._remap(size if durable_bytes is None else durable_bytes)
        except FileNotFoundError as error:
            raise OutOfRange(f"{self.path.name} was removed by retention") from error
        return self._map.limit

    def _remap(self, limit: int) -> None:
        fd = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            mapped = mmap.mmap(fd, limit, access=mmap.ACCESS_READ)
        finally:
            os.close(fd)
        self._map = MappedBytes(memoryview(mapped), pa.py_buffer(mapped), 0, limit)

    def extend(self, durable_bytes: int) -> None:
        """The active segment grew."""
        self._end = max(self._end, durable_bytes)

    def seal(self) -> None:
        """The segment is no longer the active one: take the index from its footer."""
        with self._grow:
            if self.footer:
                return
            try:
                size = self.path.stat().st_size
                if size > self._map.limit:
                    self._remap(size)
            except FileNotFoundError as error:
                raise OutOfRange(f"{self.path.name} was removed by retention") from error
            whole = self._map
            footer_at = parse_trailer(bytes(whole.bytes[-TRAILER_BYTES:]))
            try:  # without a trailer, the bytes at its position are no frame
                footer_at = footer_at if footer_at >= 0 else max(0, size - TRAILER_BYTES)
                frame = parse_frame(whole.bytes, footer_at, size)
                body = check_body(whole.bytes, frame)
                self.footer = msgspec.msgpack.decode(body, type=SegmentFooter)
                self._index = list(self.footer.index) or self._index
                self._end = footer_at
            except (Damaged, msgspec.MsgspecError) as error:
                # The rows have checksums of their own: scan them without the index.
                logger.warning(
                    "%s: the footer is damaged (%s); reading without it", self.path, error
                )
                self._end = size

    def frames(self, start: int) -> Iterator[tuple[Frame, MappedBytes]]:
        """Frames that hold `start` and what follows it."""
        position = self._find(start)
        while position < self._end:
            mapped = self._map_range(position)
            try:
                frame = parse_frame(mapped.bytes, position, mapped.limit, mapped.base)
            except Damaged as damaged:
                raise self._corrupt(damaged) from damaged
            if frame.kind is not FrameKind.DATA:
                return
            position = frame.end
            self._add_to_index(frame)
            if frame.next > start:
                yield frame, mapped

    def batches(self, start: int) -> Iterator[LogBatch]:
        """Stored batches, whole, from the one that holds `start` on."""
        for frame, mapped in self.frames(start):
            yield LogBatch(frame.first, frame.clock_before, self.load(frame, mapped))

    def load(self, frame: Frame, mapped: MappedBytes) -> Any:
        """The rows of a frame; its checksum is verified at the first read."""
        if frame.position not in self._checked:
            try:
                check_body(mapped.bytes, frame, mapped.base)
            except Damaged as damaged:
                raise self._corrupt(damaged) from damaged
            self._checked.add(frame.position)
        body = mapped.buffer.slice(frame.body_at - mapped.base, frame.body_bytes)
        return pa.ipc.read_record_batch(body, self.schema)

    def _corrupt(self, damaged: Damaged) -> LogCorrupt:
        return LogCorrupt(
            f"{self.path}: {damaged}; `edgewise log verify` lists what else is damaged, "
            "`edgewise log repair` mends it"
        )

    def _find(self, start: int) -> int:
        at = bisect.bisect_right(self._index, start, key=lambda e: e.first) - 1
        entry, cursor = self._index[max(at, 0)], self._cursor
        if cursor.first <= start and cursor.position > entry.position:
            return cursor.position
        return entry.position

    def _add_to_index(self, frame: Frame) -> None:
        self._cursor = IndexEntry(frame.next, frame.end)
        if frame.position - self._index[-1].position >= INDEX_STRIDE_BYTES:
            with self._grow:
                if frame.position > self._index[-1].position:
                    self._index.append(IndexEntry(frame.first, frame.position))

    def _map_range(self, position: int) -> MappedBytes:
        for mapped in (self._map, self._tail):
            if mapped.base <= position < mapped.limit:
                return mapped
        end = self._end
        if end - position >= REMAP_BYTES:
            with self._grow:
                if self._map.limit < end:
                    self._remap(end)
            return self._map
        fd = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            data = os.pread(fd, end - position, position)
        finally:
            os.close(fd)
        tail = MappedBytes(memoryview(data), pa.py_buffer(data), position, position + len(data))
        self._tail = tail
        return tail
