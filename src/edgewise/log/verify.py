"""Verify every byte of a log of segment files and list all damage, not only the first.

After a damaged frame the check looks for the next whole one and continues, so that a person sees
what a copy would have to replace. It runs beside a writer: it reads no further than the head.
`edgewise log verify` uses it.
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
    check_body,
    parse_frame,
    parse_trailer,
)
from edgewise.log.head import HeadFile, LogHead
from edgewise.log.ledger import is_log
from edgewise.log.parquet import ParquetLedger
from edgewise.log.scan import read_header


@dataclass(frozen=True, slots=True)
class Finding:
    """One problem. `position` is a byte of the file, -1 where there is none to name."""

    file: Path | str
    position: int
    problem: str

    def __str__(self) -> str:
        return f"{self.file}: byte {self.position}: {self.problem}" if self.position >= 0 else (
            f"{self.file}: {self.problem}"
        )  # fmt: skip


@dataclass(slots=True)
class VerifyReport:
    """What was checked, and what was found."""

    files: int = 0
    events: int = 0
    bytes: int = 0
    findings: list[Finding] = field(default_factory=list)

    @property
    def good(self) -> bool:
        return not self.findings


def verify_log(directory: Path) -> VerifyReport:
    if not is_log(directory):
        raise LogError(f"{directory}: there is no log here")
    report = VerifyReport()
    head = _read_head(directory, report)
    bases = [b for b in segment_bases(directory) if head is None or b >= head.earliest]
    ends: dict[int, int] = {}
    for base in bases:
        path = ledger_path(directory, base)
        active = head.segment_bytes if head and head.segment == base else None
        check = _check_parquet if path.suffix == PARQUET else _check_segment
        ends[base] = check(path, base, active, report)
        report.files += 1
        report.bytes += path.stat().st_size
    for base, after in pairwise(bases):
        if ends[base] != after:
            problem = f"offsets {ends[base]} to {after} are missing behind it"
            report.findings.append(Finding(ledger_path(directory, base), -1, problem))
    if head and bases and ends[bases[-1]] != head.offset:
        problem = f"the head says offset {head.offset}, the last segment ends at {ends[bases[-1]]}"
        report.findings.append(Finding(directory / "head", -1, problem))
    return report


def _read_head(directory: Path, report: VerifyReport) -> LogHead | None:
    try:
        return HeadFile(directory).read()
    except LogCorrupt as error:
        report.findings.append(Finding(directory / "head", -1, str(error)))
        return None


def _check_segment(path: Path, base: int, active: int | None, report: VerifyReport) -> int:
    """Return the offset behind the last good row."""
    with path.open("rb") as file:
        size = file.seek(0, 2)
        limit = size if active is None else min(active, size)
        if active is not None and active > size:
            problem = f"the file ends, and {active} bytes were durable"
            report.findings.append(Finding(path, size, problem))
        if not limit:
            report.findings.append(Finding(path, 0, "the file is empty"))
            return base
        page = memoryview(mmap.mmap(file.fileno(), limit, access=mmap.ACCESS_READ))
    try:
        header, first = read_header(path, page, limit)
        start, clock = first.end, header.clock_before
    except LogCorrupt as error:
        report.findings.append(Finding(path, 0, str(error)))
        start, clock = _find_next_frame(page, 0, limit), None
    check = _SegmentCheck(path, base, clock)
    for found in read_frames(page, start, limit):
        check.step(found, page, report)
    if active is None and not check.sealed:
        report.findings.append(Finding(path, limit, "the footer is missing or damaged"))
    return check.offset


@dataclass(slots=True)
class _SegmentCheck:
    """The state of a check: the offset and clock expected next; no clock after damage."""

    path: Path
    offset: int
    clock: int | None
    sealed: bool = False

    def step(self, found: Frame | Damaged, page: memoryview, report: VerifyReport) -> None:
        if isinstance(found, Damaged):
            report.findings.append(Finding(self.path, found.position, found.reason))
            self.clock = None
        elif found.kind is FrameKind.FOOTER:
            self.sealed = parse_trailer(bytes(page[found.end :])) == found.position
        elif found.kind is FrameKind.DATA:
            start = (found.first, found.clock_before)
            if self.clock is not None and start != (self.offset, self.clock):
                problem = f"offset {found.first} follows {self.offset}, or the clock does not fit"
                report.findings.append(Finding(self.path, found.position, problem))
            self.offset, self.clock = found.next, found.clock_after
            report.events += found.rows


def read_frames(page: memoryview, start: int, limit: int) -> Iterator[Frame | Damaged]:
    at = start
    while 0 <= at < limit:
        try:
            frame = parse_frame(page, at, limit)
            check_body(page, frame)
        except Damaged as damaged:
            yield damaged
            at = _find_next_frame(page, at, limit)
            continue
        yield frame
        if frame.kind is FrameKind.FOOTER:
            return
        at = frame.end


def _find_next_frame(page: memoryview, at: int, limit: int) -> int:
    """Where the next frame with a whole header starts; -1 for none."""
    for position in range(at - at % ALIGN + ALIGN, limit, ALIGN):
        if page[position : position + 4] == MAGIC:
            try:
                parse_frame(page, position, limit)
            except Damaged:
                continue
            return position
    return -1


def _check_parquet(path: Path, base: int, _: int | None, report: VerifyReport) -> int:
    offset = base
    try:
        ledger = ParquetLedger(path)
        for batch in ledger.batches(base):
            if batch.first != offset:
                problem = f"offset {batch.first} follows {offset}"
                report.findings.append(Finding(path, -1, problem))
            offset = batch.first + batch.rows.num_rows
            report.events += batch.rows.num_rows
        if offset != ledger.footer.end:
            problem = f"it ends at offset {offset}, its metadata says {ledger.footer.end}"
            report.findings.append(Finding(path, -1, problem))
    except LogCorrupt as error:
        report.findings.append(Finding(path, -1, str(error)))
    return offset
