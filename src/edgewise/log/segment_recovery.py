"""Recover a log of segment files from what its last writer left.

A writer syncs a frame before it acknowledges it, and every frame says how many bytes of the file
were durable when it was written. So the end of the active segment can be judged after a crash:

    | header | frame | frame | frame | fra
                             ^       ^
                     durable_before  durable
                     of last frame   (head file, or a frame header further on)

  - Whole frames up to the end of the file: nothing to do. The head file may be older than they
    are (it is not synced with every append); frames behind it count, they were written whole.
  - Bytes that are no whole frame, and nothing says that they were durable: the torn tail of an
    append that nobody was told of. It is cut off, with a warning.
  - Bytes that are no whole frame inside what was durable: the disk damaged what it had confirmed.
    If the file just ends too early, the tail is cut off and an error names the lost offsets. Else
    a person must decide, and opening fails with LogCorrupt.

Segments behind the one that the head file names were created by a writer after it was fenced; it
acknowledged nothing in them, so they are removed. `segment_writer` uses this when it opens a log.
"""

from __future__ import annotations

import logging
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from edgewise.errors import LogCorrupt
from edgewise.log.files import segment_bases, segment_path, sync_directory
from edgewise.log.head import LogHead
from edgewise.log.scan import SegmentScan, scan_segment

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class TornTail:
    """The incomplete last append, cut off when the log was opened."""

    file: Path
    position: int
    bytes: int
    reason: str


def find_torn_tail(found: SegmentScan, known: LogHead | None) -> TornTail | None:
    """The torn tail to cut off, or None. LogCorrupt where durable bytes are damaged."""
    totals, damaged = found.totals, found.damaged
    if known and known.segment > totals.base and known.offset > totals.offset:
        lost = segment_path(found.path.parent, known.segment)
        raise LogCorrupt(f"{lost}: the active segment is missing; restore it from a copy")
    same_segment = known is not None and known.segment == totals.base
    torn = None
    if damaged:
        durable = max(found.durable, known.segment_bytes if known and same_segment else 0)
        if damaged.position < durable and not damaged.short:
            raise LogCorrupt(
                f"{found.path}: {damaged}, and this was durable once: `edgewise log repair "
                f"{found.path.parent}` says what is lost and restores or skips it"
            )
        torn = TornTail(
            found.path, totals.position, found.file_bytes - totals.position, damaged.reason
        )
        logger.warning(
            "%s: cut a torn tail of %d bytes at byte %d (%s); the log goes on at offset %d",
            found.path, torn.bytes, torn.position, torn.reason, totals.offset,
        )  # fmt: skip
    if known and same_segment and known.offset > totals.offset:
        logger.error(
            "%s: %d acknowledged events are gone, offsets %d to %d: the disk lost what it had "
            "confirmed",
            found.path, known.offset - totals.offset, totals.offset, known.offset,
        )  # fmt: skip
    return torn


def replace_with_copy(path: Path) -> None:
    """Replace a segment by a copy: a writer with the old file open no longer writes to the log."""
    temporary = path.with_suffix(".tmp")
    shutil.copyfile(path, temporary)
    with temporary.open("rb") as copied:
        os.fsync(copied.fileno())
    temporary.rename(path)
    sync_directory(path.parent)


def remove_stray_segments(directory: Path, known: LogHead | None) -> list[int]:
    """Remove segments that a writer created after it was fenced; return the other bases."""
    bases = segment_bases(directory)
    while known and bases and bases[-1] > known.segment:
        path = segment_path(directory, bases[-1])
        if scan_segment(path, 1).header.epoch >= known.epoch:
            break
        logger.warning("%s: removed, a writer created it after it was fenced", path)
        path.unlink()
        bases.pop()
    return bases
