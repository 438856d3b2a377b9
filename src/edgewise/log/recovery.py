"""What a new writer decides about the files that the last one left."""

from __future__ import annotations

import logging
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from edgewise.errors import LogCorrupt, LogError
from edgewise.log.files import segment_bases, segment_path, sync_directory
from edgewise.log.head import Head
from edgewise.log.rows import schema_difference, with_defaults
from edgewise.log.scan import Scan, scan

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Cut:
    """A torn tail that was cut away when the log was opened."""

    file: Path
    position: int
    bytes: int
    reason: str


def judge(found: Scan, known: Head | None) -> Cut | None:
    """A torn tail is cut and said; damage to what was durable is for a person to decide."""
    tally, damaged = found.tally, found.damaged
    if known and known.segment > tally.base and known.offset > tally.offset:
        lost = segment_path(found.path.parent, known.segment)
        raise LogCorrupt(f"{lost}: the active segment is missing; restore it from a copy")
    here = known is not None and known.segment == tally.base
    cut = None
    if damaged:
        durable = max(found.durable, known.segment_bytes if known and here else 0)
        if damaged.position < durable and not damaged.short:
            raise LogCorrupt(
                f"{found.path}: {damaged}, and this was durable once; restore the file from a copy"
            )
        cut = Cut(found.path, tally.position, found.file_bytes - tally.position, damaged.reason)
        logger.warning(
            "%s: cut a torn tail of %d bytes at byte %d (%s); the log goes on at offset %d",
            found.path, cut.bytes, cut.position, cut.reason, tally.offset,
        )  # fmt: skip
    if known and here and known.offset > tally.offset:
        logger.error(
            "%s: %d acknowledged events are gone, offsets %d to %d: the disk lost what it had "
            "confirmed",
            found.path, known.offset - tally.offset, tally.offset, known.offset,
        )  # fmt: skip
    return cut


def evolved(place: object, stored: Any, given: Any, defaults: dict[str, Any]) -> Any:
    """The schema to write: attributes may be added at the end, each with a default."""
    added = list(given)[len(stored) :]
    shared = given
    for _ in added:
        shared = shared.remove(len(shared) - 1)
    difference = schema_difference(stored, shared)
    if difference:
        raise LogError(
            f"{place}: the log has another schema: {difference}; attributes can be added at "
            "the end, nothing else"
        )
    for field in added:
        if field.name not in defaults:
            raise LogError(
                f"{place}: the log has another schema: attribute '{field.name}' is new; give "
                "it a default for the events that are there, in an app with "
                f"@default({field.name}='...') before the stream"
            )
    schema = stored
    for field in added:
        schema = schema.append(field)
    return with_defaults(schema, {f.name: defaults[f.name] for f in added})


def detach(path: Path) -> None:
    """Put a copy in place of a segment: who still has the old file open writes to nowhere."""
    young = path.with_suffix(".tmp")
    shutil.copyfile(path, young)
    with young.open("rb") as copied:
        os.fsync(copied.fileno())
    young.rename(path)
    sync_directory(path.parent)


def without_strays(directory: Path, known: Head | None) -> list[int]:
    """First offsets of the segments, without what a fenced writer made after it was fenced."""
    bases = segment_bases(directory)
    while known and bases and bases[-1] > known.segment:
        path = segment_path(directory, bases[-1])
        if scan(path, 1).header.epoch >= known.epoch:
            break
        logger.warning("%s: removed, a writer that had lost the log made it", path)
        path.unlink()
        bases.pop()
    return bases
