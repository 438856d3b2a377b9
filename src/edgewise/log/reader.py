"""Reads a log of segment files, in any thread and any process, also while another one writes."""

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
from edgewise.log.files import no_writer, parquet_path, segment_bases, segment_path
from edgewise.log.head import NAME, Head, HeadFile
from edgewise.log.parquet import ParquetView
from edgewise.log.rows import as_schema, cut_batch
from edgewise.log.scan import scan
from edgewise.log.view import SegmentView

VIEWS_MAX = 16  # segments kept mapped


class SegmentReader:
    """Use `SegmentReader.open`."""

    def __init__(self, directory: Path, head: HeadFile) -> None:
        self._directory = directory
        self._head = head
        self._settled: Head | None = None
        self._views: dict[int, SegmentView | ParquetView] = {}
        self._epoch = 0
        self._bases: list[int] = []
        self._bases_of: tuple[int, int] = (-1, -1)
        self._lock = threading.Lock()
        self._closed = False
        self._settle()
        self._schema = self._view(self._now().segment).schema

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
        bell = self._head.bell
        deadline = time.monotonic() + timeout_s
        while True:
            seen = bell.count()
            if self._now().offset > offset:
                return True
            left = deadline - time.monotonic()
            if left <= 0 or self._closed:
                return False
            bell.wait(seen, left)

    def close(self) -> None:
        """Batches that were read stay good. A `wait` in another thread ends soon."""
        self._closed = True
        with self._lock:
            self._views.clear()

    def _now(self) -> Head:
        head = self._head.read()
        if self._settled:
            if head.epoch <= self._settled.epoch:
                return self._settled
            self._settled = None
        return head

    def _settle(self) -> None:
        """After a power loss the head may be old: when nobody writes, look behind it."""
        with no_writer(self._directory) as alone:
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
            found = scan(path, DEFAULTS.producers_max).tally
            if head and found.offset <= head.offset:
                return
            with path.open("rb") as file:
                os.fsync(file.fileno())
            earliest = head.earliest if head else bases[0]
            epoch = max(found.epoch_last, head.epoch if head else 0)
            self._settled = Head(epoch, found.offset, found.clock, base, found.position, earliest)

    def _check(self, start: int, end: int, head: Head) -> None:
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
            view = self._view(at)
            before = at
            for batch in view.batches(at):
                if batch.first > at:
                    break
                cut = cut_batch(batch, at, end)
                at += cut.rows.num_rows
                rows = as_schema(cut.rows, self._schema)
                yield LogBatch(
                    cut.first, cut.clock_before, rows.select(columns) if columns else rows
                )
                if at >= end:
                    return
            if at == before:
                raise LogCorrupt(f"{view.path}: offset {at} is missing")

    def _view(self, offset: int) -> SegmentView | ParquetView:
        """The segment that holds an offset, opened as far as it is durable."""
        head = self._now()
        with self._lock:
            base = self._base_of(offset, head)
            active = base == head.segment
            view = self._views.pop(base, None)
            if active and head.epoch != self._epoch:
                view, self._epoch = None, head.epoch  # a new writer may have replaced the file
            if view is None:
                view = self._open(base, head.segment_bytes if active else None)
            elif isinstance(view, SegmentView) and active:
                view.extend(head.segment_bytes)
            elif isinstance(view, SegmentView) and view.footer is None:
                view = self._sealed(view, base)
            self._views[base] = view
            while len(self._views) > VIEWS_MAX:
                del self._views[next(iter(self._views))]
            return view

    def _open(self, base: int, durable_bytes: int | None) -> SegmentView | ParquetView:
        try:
            path = segment_path(self._directory, base)
            return SegmentView(path, durable_bytes=durable_bytes)
        except OutOfRange:
            moved = parquet_path(self._directory, base)
            if not moved.exists():
                raise
            return ParquetView(moved)

    def _sealed(self, view: SegmentView, base: int) -> SegmentView | ParquetView:
        try:
            view.seal()
        except OutOfRange:
            return self._open(base, None)
        return view

    def _base_of(self, offset: int, head: Head) -> int:
        if offset >= head.segment:
            return head.segment
        if self._bases_of != (head.segment, head.earliest):
            self._bases = segment_bases(self._directory)
            self._bases_of = (head.segment, head.earliest)
        at = bisect.bisect_right(self._bases, offset) - 1
        if at < 0:
            raise OutOfRange(f"{self._directory}: offset {offset} is gone, retention removed it")
        return self._bases[at]
