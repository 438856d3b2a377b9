"""Check every byte of a log and list all that is wrong, not only the first thing.

Behind a damaged frame the walk looks for the next one that is whole and goes on, so that a person
sees what a copy would have to replace. Runs beside a writer: it looks no further than the head.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from edgewise.errors import LogCorrupt, LogError
from edgewise.log.files import PARQUET, ledger_path, segment_bases
from edgewise.log.frame import (
    ALIGN,
    MAGIC,
    Damaged,
    Frame,
    FrameKind,
    body_of,
    parse_frame,
    parse_trailer,
)
from edgewise.log.head import Head, HeadFile
from edgewise.log.ledger import is_log
from edgewise.log.parquet import ParquetView
from edgewise.log.scan import read_header


@dataclass(frozen=True, slots=True)
class Finding:
    """Something wrong. `position` is a byte of the file, -1 where there is none to name."""

    file: Path | str
    position: int
    what: str

    def __str__(self) -> str:
        return f"{self.file}: byte {self.position}: {self.what}" if self.position >= 0 else (
            f"{self.file}: {self.what}"
        )  # fmt: skip


@dataclass(slots=True)
class Report:
    """What was looked at, and what was found."""

    files: int = 0
    events: int = 0
    bytes: int = 0
    findings: list[Finding] = field(default_factory=list)

    @property
    def good(self) -> bool:
        return not self.findings


def verify(directory: Path) -> Report:
    if not is_log(directory):
        raise LogError(f"{directory}: there is no log here")
    report = Report()
    head = _head(directory, report)
    bases = [b for b in segment_bases(directory) if head is None or b >= head.earliest]
    ends: dict[int, int] = {}
    for base in bases:
        path = ledger_path(directory, base)
        active = head.segment_bytes if head and head.segment == base else None
        check = _parquet if path.suffix == PARQUET else _segment
        ends[base] = check(path, base, active, report)
        report.files += 1
        report.bytes += path.stat().st_size
    for base, after in pairwise(bases):
        if ends[base] != after:
            what = f"offsets {ends[base]} to {after} are missing behind it"
            report.findings.append(Finding(ledger_path(directory, base), -1, what))
    if head and bases and ends[bases[-1]] != head.offset:
        what = f"the head says offset {head.offset}, the last segment ends at {ends[bases[-1]]}"
        report.findings.append(Finding(directory / "head", -1, what))
    return report


def _head(directory: Path, report: Report) -> Head | None:
    try:
        return HeadFile(directory).read()
    except LogCorrupt as error:
        report.findings.append(Finding(directory / "head", -1, str(error)))
        return None


def _segment(path: Path, base: int, active: int | None, report: Report) -> int:
    """Answers the offset behind the last good row."""
    with path.open("rb") as file:
        size = file.seek(0, 2)
        limit = size if active is None else min(active, size)
        if active is not None and active > size:
            what = f"the file ends, and {active} bytes were durable"
            report.findings.append(Finding(path, size, what))
        if not limit:
            report.findings.append(Finding(path, 0, "the file is empty"))
            return base
        page = memoryview(mmap.mmap(file.fileno(), limit, access=mmap.ACCESS_READ))
    try:
        header, first = read_header(path, page, limit)
        start, clock = first.end, header.clock_before
    except LogCorrupt as error:
        report.findings.append(Finding(path, 0, str(error)))
        start, clock = _next_frame(page, 0, limit), None
    walk = _Walk(path, base, clock)
    for found in _frames(page, start, limit):
        walk.step(found, page, report)
    if active is None and not walk.sealed:
        report.findings.append(Finding(path, limit, "the footer is missing or damaged"))
    return walk.offset


@dataclass(slots=True)
class _Walk:
    """Where a walk through a segment stands; no clock behind damage."""

    path: Path
    offset: int
    clock: int | None
    sealed: bool = False

    def step(self, found: Frame | Damaged, page: memoryview, report: Report) -> None:
        if isinstance(found, Damaged):
            report.findings.append(Finding(self.path, found.position, found.reason))
            self.clock = None
        elif found.kind is FrameKind.FOOTER:
            self.sealed = parse_trailer(bytes(page[found.end :])) == found.position
        elif found.kind is FrameKind.DATA:
            place = (found.first, found.clock_before)
            if self.clock is not None and place != (self.offset, self.clock):
                what = f"offset {found.first} follows {self.offset}, or the clock does not fit"
                report.findings.append(Finding(self.path, found.position, what))
            self.offset, self.clock = found.next, found.clock_after
            report.events += found.rows


def _frames(page: memoryview, start: int, limit: int) -> Iterator[Frame | Damaged]:
    at = start
    while 0 <= at < limit:
        try:
            frame = parse_frame(page, at, limit)
            body_of(page, frame)
        except Damaged as damaged:
            yield damaged
            at = _next_frame(page, at, limit)
            continue
        yield frame
        if frame.kind is FrameKind.FOOTER:
            return
        at = frame.end


def _next_frame(page: memoryview, at: int, limit: int) -> int:
    """Where the next frame with a whole header starts; -1 for none."""
    for place in range(at - at % ALIGN + ALIGN, limit, ALIGN):
        if page[place : place + 4] == MAGIC:
            try:
                parse_frame(page, place, limit)
            except Damaged:
                continue
            return place
    return -1


def _parquet(path: Path, base: int, _: int | None, report: Report) -> int:
    offset = base
    try:
        view = ParquetView(path)
        for batch in view.batches(base):
            if batch.first != offset:
                what = f"offset {batch.first} follows {offset}"
                report.findings.append(Finding(path, -1, what))
            offset = batch.first + batch.rows.num_rows
            report.events += batch.rows.num_rows
        if offset != view.footer.end:
            what = f"it ends at offset {offset}, {view.footer.end} was promised"
            report.findings.append(Finding(path, -1, what))
    except LogCorrupt as error:
        report.findings.append(Finding(path, -1, str(error)))
    return offset
