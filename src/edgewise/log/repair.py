"""Repair a log of segment files: cut it at the damage, skip what is damaged, or restore it.

    before   | good | damaged | good |          offsets 0..9, 10..19, 20..29
    cut      | good |                           the log ends at offset 10
    skip     | good | idle ticks | good |       offsets stay: 10..19 carry no events
    restore  | good | from a copy | good |      rows 10..19 of another log of the same stream

Engines and sinks keep offsets, so a repair never renumbers: skipped rows become idle ticks, which
carry no event. What is gone is written to `repairs.jsonl` beside the segments, and damaged files
stay as `*.damaged`. A segment is replaced when its new file is complete, so a repair that is
interrupted is started again. Nobody may write the log meanwhile. `edgewise log repair` uses it.
"""

from __future__ import annotations

import enum
import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa

from edgewise.errors import LogCorrupt, LogError
from edgewise.event.arrow import SYSTEM_COUNT, record_batch
from edgewise.event.event import EventKind
from edgewise.log.active_segment import ActiveSegment, pack_group
from edgewise.log.api import CLOCK_NONE, EncodedBatch, LogReader
from edgewise.log.files import (
    PARQUET,
    ledger_path,
    release_writer_lock,
    segment_bases,
    segment_path,
    sync_directory,
    take_writer_lock,
)
from edgewise.log.frame import Damaged, Frame, FrameKind, SegmentHeader, check_body
from edgewise.log.group_commit import PendingAppend
from edgewise.log.head import HeadFile, LogHead
from edgewise.log.ledger import is_log
from edgewise.log.rows import convert_to_schema, encode_batches
from edgewise.log.scan import read_header, scan_segment
from edgewise.log.verify import read_frames, verify_log

RECORD = "repairs.jsonl"
SCRATCH = "repair.tmp"
FILL_ROWS_MAX = 65_536  # of one frame


class RepairMode(enum.StrEnum):
    CUT = "cut"
    SKIP = "skip"
    RESTORE = "restore"


@dataclass(frozen=True, slots=True)
class LostRange:
    """Offsets whose rows cannot be read, and why."""

    file: Path
    first: int
    end: int
    reason: str

    @property
    def rows(self) -> int:
        return self.end - self.first

    def __str__(self) -> str:
        if not self.rows:
            return f"{self.file}: no rows: {self.reason}"
        return f"{self.file}: offsets {self.first} to {self.end} ({self.rows} rows): {self.reason}"


def find_lost_ranges(directory: Path) -> list[LostRange]:
    """What a repair would have to skip or restore; reads every byte."""
    if not is_log(directory):
        raise LogError(f"{directory}: there is no log here")
    head = HeadFile(directory).peek()
    return [lost for segment in _list_segments(directory, head) for lost in segment.lost]


def repair_log(
    directory: Path, mode: RepairMode, now_ms: int, copy: LogReader | None = None
) -> list[LostRange]:
    """Returns what was lost, or restored. `copy` is a log of the same stream, for RESTORE."""
    if not is_log(directory):
        raise LogError(f"{directory}: there is no log here")
    lock = take_writer_lock(directory)
    try:
        head = HeadFile(directory, writable=True)
        known = head.peek()
        repair = _Repair(directory, mode, now_ms, copy)
        lost = repair.run(_list_segments(directory, known), known)
        if lost:
            head.publish(repair.head)
            head.publish(repair.head)  # both slots
            head.sync()
        return lost
    finally:
        release_writer_lock(lock)


@dataclass(slots=True)
class _Segment:
    """One file as it was found: its whole frames and what is missing between them."""

    path: Path
    base: int
    header: SegmentHeader | None
    frames: list[tuple[Frame, bytes]]
    lost: list[LostRange]
    end: int  # offset behind its last row
    clock_after: int
    sealed: bool


def _list_segments(directory: Path, head: LogHead | None) -> list[_Segment]:
    bases = [b for b in segment_bases(directory) if head is None or b >= head.earliest]
    found = []
    for base, after in pairwise([*bases, None]):
        assert base is not None
        durable = head.segment_bytes if head and head.segment == base else 0
        last = after is None
        end = (head.offset if head else None) if last else after
        segment = _read_segment(ledger_path(directory, base), base, end, durable)
        if not last and not segment.sealed and not segment.lost:
            reason = "the footer is missing or damaged"
            segment.lost.append(LostRange(segment.path, segment.end, segment.end, reason))
        found.append(segment)
    for segment, later in pairwise(found):
        if later.header is not None:
            segment.clock_after = max(segment.clock_after, later.header.clock_before)
    if found and head is not None:
        found[-1].clock_after = max(found[-1].clock_after, head.clock)
    return found


def _read_segment(path: Path, base: int, end: int | None, durable: int) -> _Segment:
    """`end`: the offset where the next segment starts; None where that is not known."""
    segment = _Segment(path, base, None, [], [], base, CLOCK_NONE, sealed=False)
    reason = "the file is missing behind these offsets"
    if path.suffix == PARQUET:
        findings = [f for f in verify_log(path.parent).findings if f.file == path]
        segment.end = base if findings else end or base
        segment.sealed = not findings
        reason = findings[0].problem if findings else reason
    else:
        reason = _read_frames_of(segment, durable) or reason
    if end is not None and segment.end < end:
        segment.lost.append(LostRange(path, segment.end, end, reason))
        segment.end = end
    return segment


def _read_frames_of(segment: _Segment, durable: int) -> str:
    """Fill in frames and what is lost between them; returns the last damage, '' for none."""
    data, start, reason = segment.path.read_bytes(), 0, ""
    try:
        segment.header, first = read_header(segment.path, data, len(data))
        start, segment.clock_after = first.end, segment.header.clock_before
    except LogCorrupt:
        reason = "the segment header is damaged"
    page = memoryview(data)
    for found in read_frames(page, start, len(data)):
        if isinstance(found, Damaged):
            if not (durable and found.short and found.position >= durable):  # no torn tail
                reason = found.reason
            continue
        if found.kind is FrameKind.FOOTER:
            segment.sealed = True
        if found.kind is not FrameKind.DATA:
            continue
        if found.first > segment.end:
            segment.lost.append(LostRange(segment.path, segment.end, found.first, reason))
        segment.frames.append((found, bytes(check_body(page, found))))
        segment.end, segment.clock_after = found.next, found.clock_after
        reason = ""
    if segment.header is None and not segment.lost:
        segment.lost.append(LostRange(segment.path, segment.base, segment.base, reason))
    return reason


class _Repair:
    def __init__(
        self, directory: Path, mode: RepairMode, now_ms: int, copy: LogReader | None
    ) -> None:
        self._directory = directory
        self._mode = mode
        self._now_ms = now_ms
        self._copy = copy
        self.head = LogHead(0, 0, CLOCK_NONE, 0, 0, 0)

    def run(self, segments: list[_Segment], known: LogHead | None) -> list[LostRange]:
        damaged = [s for s in segments if s.lost]
        lost = [entry for segment in damaged for entry in segment.lost]
        if not damaged:
            return []
        headers = [s.header for s in segments if s.header is not None]
        if not headers:
            raise LogError(
                f"{self._directory}: no segment header is whole; copy the log back as a whole"
            )
        self._sample = headers[-1]
        kept, first_gone = segments, next((e for e in lost if e.rows), None)
        if self._mode is RepairMode.CUT and first_gone is not None:
            kept = [s for s in segments if s.base <= first_gone.first]
            lost = [replace(first_gone, end=segments[-1].end)]
        if self._mode is RepairMode.RESTORE:
            for segment in damaged:
                self._check_copy(segment)
        for segment in kept:
            if segment.lost:
                self._rebuild(segment, last=segment is kept[-1])
        for segment in reversed(segments[len(kept) :]):
            segment.path.rename(_name_damaged(segment.path))
        self._publish(kept[-1], known)
        self._record(lost)
        return lost

    def _rebuild(self, segment: _Segment, *, last: bool) -> None:
        """Write the segment again: its whole frames, and others in place of what is lost."""
        header = segment.header or self._make_header(segment)
        scratch = self._directory / SCRATCH
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir()
        active = ActiveSegment.create(scratch, header)
        try:
            for epoch, entry in self._list_appends(segment, _read_schema(header)):
                packed = pack_group([entry], active.totals, epoch)
                active.write(packed.buffers)
                packed.add_to(active.totals, epoch)
            if not last:
                active.seal(header.epoch, self._now_ms)
        finally:
            active.close()
        kept = _name_damaged(segment.path)
        kept.unlink(missing_ok=True)
        os.link(segment.path, kept)
        active.path.replace(segment_path(self._directory, segment.base))
        if segment.path.suffix == PARQUET:
            segment.path.unlink()
        scratch.rmdir()
        sync_directory(self._directory)

    def _make_header(self, segment: _Segment) -> SegmentHeader:
        """For one that is damaged, from the frames and the segment before it."""
        before = [b for b in segment_bases(self._directory) if b < segment.base]
        producers, clock, sample = [], CLOCK_NONE, self._sample
        if before and segment_path(self._directory, before[-1]).exists():
            scan = scan_segment(segment_path(self._directory, before[-1]), 10_000)
            producers, clock = scan.producers.snapshot(), scan.totals.clock
        if segment.frames and segment.frames[0][0].first == segment.base:
            clock = segment.frames[0][0].clock_before
        return SegmentHeader(
            segment.base, sample.epoch, clock, self._now_ms, sample.schema, producers
        )

    def _list_appends(self, segment: _Segment, schema: Any) -> Iterator[tuple[int, PendingAppend]]:
        """Appends with their epoch, in the order of offsets."""
        lost = {entry.first: entry for entry in segment.lost if entry.rows}
        epoch = segment.header.epoch if segment.header else 1
        frames = [*segment.frames, None]
        at = segment.base
        for found in frames:
            if (entry := lost.get(at)) is not None:
                if self._mode is RepairMode.CUT:
                    return
                clock = segment.clock_after if found is None else found[0].clock_before
                for append in self._fill(entry, clock, schema):
                    yield epoch, append
                at = entry.end
            if found is not None:
                frame, body = found
                epoch, at = frame.epoch, frame.next
                buffer = pa.py_buffer(body)
                times = (frame.ts_min, frame.ts_max)
                batch = EncodedBatch(buffer, frame.body_crc, frame.rows, *times)
                yield epoch, _append_of([batch], frame.producer, frame.sequence)

    def _fill(self, lost: LostRange, clock: int, schema: Any) -> Iterator[PendingAppend]:
        if self._mode is RepairMode.RESTORE:
            assert self._copy is not None
            for batch in self._copy.read(lost.first, lost.end):
                rows = convert_to_schema(batch.rows, schema)
                yield _append_of(encode_batches(rows, schema, FILL_ROWS_MAX))
            return
        ts = max(clock, 0)  # before the first event there is no clock
        nulls = len(schema) - SYSTEM_COUNT
        for first in range(lost.first, lost.end, FILL_ROWS_MAX):
            count = min(FILL_ROWS_MAX, lost.end - first)
            ticks = [int(EventKind.TICK)] * count
            columns: list[list[Any]] = [[None] * count] * nulls
            captured_us = [self._now_ms * 1000] * count
            rows = record_batch(schema, [ts] * count, captured_us, ticks, columns)
            yield _append_of(encode_batches(rows, schema, FILL_ROWS_MAX))

    def _check_copy(self, segment: _Segment) -> None:
        """LogError where the copy lacks the rows, or has others at offsets that are whole here."""
        copy = self._copy
        if copy is None:
            raise LogError("to restore, name a copy of the log")
        head, earliest = copy.head().offset, copy.earliest()
        for lost in segment.lost:
            if lost.rows and not earliest <= lost.first < lost.end <= head:
                raise LogError(
                    f"the copy has offsets {earliest} to {head}, and {lost.first} to {lost.end} "
                    "are needed: use another copy, or skip them"
                )
        for frame, body in segment.frames:
            if earliest <= frame.first and frame.next <= head:
                schema = _read_schema(segment.header or self._sample)
                mine = pa.ipc.read_record_batch(pa.py_buffer(body), schema)
                theirs = pa.Table.from_batches(
                    [b.rows for b in copy.read(frame.first, frame.next)]
                )
                if mine.column(0).to_pylist() != theirs.column(0).to_pylist():
                    raise LogError(
                        f"the copy has other rows at offsets {frame.first} to {frame.next}: it "
                        "is no copy of this log"
                    )

    def _publish(self, last: _Segment, known: LogHead | None) -> None:
        bases = segment_bases(self._directory)
        scan = scan_segment(segment_path(self._directory, last.base), 10_000)
        epoch = max(known.epoch if known else 1, scan.header.epoch, scan.totals.epoch_last)
        totals = scan.totals
        self.head = LogHead(
            epoch,
            totals.offset,
            totals.clock,
            totals.base,
            totals.position,
            max(bases[0], known.earliest if known else 0),
        )

    def _record(self, lost: list[LostRange]) -> None:
        with (self._directory / RECORD).open("a", encoding="utf-8") as file:
            for entry in lost:
                line = {
                    "at_ms": self._now_ms,
                    "mode": self._mode.value,
                    "file": entry.file.name,
                    "first": entry.first,
                    "end": entry.end,
                    "reason": entry.reason,
                }
                file.write(json.dumps(line) + "\n")
            file.flush()
            os.fsync(file.fileno())
        sync_directory(self._directory)


def _append_of(
    batches: list[EncodedBatch], producer: str = "", sequence: int = -1
) -> PendingAppend:
    entry = PendingAppend.prepare(batches, producer, sequence)
    assert entry is not None, "there are rows"
    return entry


def _name_damaged(path: Path) -> Path:
    """A name that is no segment's."""
    return path.with_name(f"{path.name}.damaged")


def _read_schema(header: SegmentHeader) -> Any:
    return pa.ipc.read_schema(pa.py_buffer(header.schema))
