"""Read a log of segment files, in any thread and any process, also while another one writes.

The head file says how far to read. Segments are mapped when needed and a few stay mapped.
"""

from __future__ import annotations

import bisect
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from edgewise.errors import LogCorrupt, LogError, OutOfRange
from edgewise.event.arrow import TS
from edgewise.event.position import Position
from edgewise.log.api import DEFAULTS, LogBatch
from edgewise.log.files import exclude_writers, parquet_path, segment_bases, segment_path
from edgewise.log.head import NAME, HeadFile, LogHead
from edgewise.log.mapped_segment import MappedSegment
from edgewise.log.parquet import ParquetLedger
from edgewise.log.rows import convert_to_schema, slice_batch
from edgewise.log.scan import scan_segment

SEGMENTS_MAPPED_MAX = 16  # segments kept mapped


class SegmentReader:
    """Use `SegmentReader.open`."""

    def __init__(self, directory: Path, head: HeadFile) -> None:
        self._directory = directory
        self._head = head
        self._recovered: LogHead | None = None
        self._mapped: dict[int, MappedSegment | ParquetLedger] = {}
        self._epoch = 0
        self._bases: list[int] = []
        self._bases_of: tuple[int, int] = (-1, -1)
        self._lock = threading.Lock()
        self._closed = False
        self._recover_head()
        self._schema = self._map_segment(self._now().segment).schema

    @classmethod
    def open(cls, directory: Path) -> SegmentReader:
        directory = Path(directory)
        if not (directory / NAME).exists():
            raise LogError(f"{directory}: there is no log here; a writer creates it")
        return cls(directory, HeadFile(directory))

    @property
    def schema(self) -> Any:
        return self._schema

    def earliest(self) -> int:
        return self._now().earliest

    def head(self) -> Position:
        head = self._now()
        return Position(head.epoch, head.offset)

    def clock(self, offset: int) -> int:
        head = self._now()
        self._check(offset, offset, head)
        if offset == head.offset:
            return head.clock
        for batch in self._read(offset, offset + 1, [TS]):
            return batch.clock_before
        raise AssertionError(f"no batch for offset {offset}")

    def read(self, start: int, end: int, columns: list[str] | None = None) -> Iterator[LogBatch]:
        self._check(start, end, self._now())
        if columns:
            unknown = [c for c in columns if c not in self._schema.names]
            if unknown:
                raise LogError(f"{self._directory}: the log has no attribute '{unknown[0]}'")
        return self._read(start, end, columns)

    def wait(self, offset: int, timeout_s: float) -> bool:
        changes = self._head.changes
        deadline = time.monotonic() + timeout_s
        while True:
            seen = changes.count()
            if self._now().offset > offset:
                return True
            left = deadline - time.monotonic()
            if left <= 0 or self._closed:
                return False
            changes.wait(seen, left)

    def close(self) -> None:
        """Batches that were read stay valid. A `wait` in another thread ends soon."""
        self._closed = True
        with self._lock:
            self._mapped.clear()

    def _now(self) -> LogHead:
        head = self._head.read()
        if self._recovered:
            if head.epoch <= self._recovered.epoch:
                return self._recovered
            self._recovered = None
        return head

    def _recover_head(self) -> None:
        """After a power loss the head may be old: if nobody writes, scan behind it."""
        with exclude_writers(self._directory) as alone:
            if not alone:
                return
            head = self._head.peek()
            bases = segment_bases(self._directory)
            if not bases:
                return
            base = bases[-1]
            path = segment_path(self._directory, base)
            if head and head.segment == base and path.stat().st_size == head.segment_bytes:
                return
            found = scan_segment(path, DEFAULTS.producers_max).totals
            if head and found.offset <= head.offset:
                return
            with path.open("rb") as file:
                os.fsync(file.fileno())
            earliest = head.earliest if head else bases[0]
            epoch = max(found.epoch_last, head.epoch if head else 0)
            self._recovered = LogHead(
                epoch, found.offset, found.clock, base, found.position, earliest
            )

    def _check(self, start: int, end: int, head: LogHead) -> None:
        if start < head.earliest:
            raise OutOfRange(
                f"{self._directory}: offset {start} is gone, retention keeps "
                f"{head.earliest} and later"
            )
        if end > head.offset or start > end:
            raise OutOfRange(
                f"{self._directory}: offsets {start} to {end} were asked, "
                f"{head.earliest} to {head.offset} are there"
            )

    def _read(self, start: int, end: int, columns: list[str] | None) -> Iterator[LogBatch]:
        at = start
        while at < end:
            segment = self._map_segment(at)
            before = at
            for batch in segment.batches(at):
                if batch.first > at:
                    break
                batch_slice = slice_batch(batch, at, end)
                at += batch_slice.rows.num_rows
                rows = convert_to_schema(batch_slice.rows, self._schema)
                yield LogBatch(
                    batch_slice.first,
                    batch_slice.clock_before,
                    rows.select(columns) if columns else rows,
                )
                if at >= end:
                    return
            if at == before:
                raise LogCorrupt(f"{segment.path}: offset {at} is missing")

    def _map_segment(self, offset: int) -> MappedSegment | ParquetLedger:
        """The segment that holds an offset, opened as far as it is durable."""
        head = self._now()
        with self._lock:
            base = self._base_of(offset, head)
            active = base == head.segment
            segment = self._mapped.pop(base, None)
            if active and head.epoch != self._epoch:
                segment, self._epoch = None, head.epoch  # a new writer may have replaced the file
            if segment is None:
                segment = self._open(base, head.segment_bytes if active else None)
            elif isinstance(segment, MappedSegment) and active:
                segment.extend(head.segment_bytes)
            elif isinstance(segment, MappedSegment) and segment.footer is None:
                segment = self._sealed(segment, base)
            self._mapped[base] = segment
            while len(self._mapped) > SEGMENTS_MAPPED_MAX:
                del self._mapped[next(iter(self._mapped))]
            return segment

    def _open(self, base: int, durable_bytes: int | None) -> MappedSegment | ParquetLedger:
        try:
            path = segment_path(self._directory, base)
            return MappedSegment(path, durable_bytes=durable_bytes)
        except OutOfRange:
            moved = parquet_path(self._directory, base)
            if not moved.exists():
                raise
            return ParquetLedger(moved)

    def _sealed(self, segment: MappedSegment, base: int) -> MappedSegment | ParquetLedger:
        try:
            segment.seal()
        except OutOfRange:
            return self._open(base, None)
        return segment

    def _base_of(self, offset: int, head: LogHead) -> int:
        if offset >= head.segment:
            return head.segment
        if self._bases_of != (head.segment, head.earliest):
            self._bases = segment_bases(self._directory)
            self._bases_of = (head.segment, head.earliest)
        at = bisect.bisect_right(self._bases, offset) - 1
        if at < 0:
            raise OutOfRange(f"{self._directory}: offset {offset} is gone, retention removed it")
        return self._bases[at]
