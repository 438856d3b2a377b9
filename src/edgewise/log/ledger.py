"""List the ledgers of a log: its files, and the offsets and times each of them holds.

`edgewise log list`, retention and the archiver use it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from edgewise.errors import LogError
from edgewise.log.api import CLOCK_NONE, LogConfig
from edgewise.log.files import PARQUET, ledger_path, measure_ledger, segment_bases, segment_path
from edgewise.log.frame import TS_MAX, SegmentFooter
from edgewise.log.head import NAME, HeadFile
from edgewise.log.mapped_segment import MappedSegment
from edgewise.log.parquet import ParquetLedger, move_to_parquet


@dataclass(frozen=True, slots=True)
class Ledger:
    """One file of a log, or in Kafka the records from one checkpoint to the next.

    Times are None where there are no rows or they are not known; only the last is not sealed.
    """

    file: Path
    first: int
    end: int
    ts_min: int | None
    ts_max: int | None
    epochs: tuple[int, int]
    bytes: int
    sealed: bool
    sealed_ms: int
    storage: str = "segment"


def is_log(directory: Path) -> bool:
    return (directory / NAME).is_file()


def find_logs(directory: Path) -> Iterator[Path]:
    """The directory itself when it is a log, else the logs in it, however deep."""
    if is_log(directory):
        yield directory
        return
    for found in sorted(directory.rglob(NAME)):
        if is_log(found.parent) and segment_bases(found.parent):
            yield found.parent


def open_ledger(directory: Path, base: int) -> MappedSegment | ParquetLedger:
    """Open a sealed ledger, as a segment file or as Parquet."""
    path = ledger_path(directory, base)
    return ParquetLedger(path) if path.suffix == PARQUET else MappedSegment(path)


def read_footer(directory: Path, base: int) -> SegmentFooter | None:
    """The totals of a sealed ledger; None if its footer is damaged."""
    return open_ledger(directory, base).footer


def list_ledgers(directory: Path) -> list[Ledger]:
    """All files of a log, oldest first; the active segment comes last."""
    if not is_log(directory):
        raise LogError(f"{directory}: there is no log here")
    head = HeadFile(directory).read()
    found = [
        _describe_sealed(directory, base)
        for base in segment_bases(directory)
        if head.earliest <= base < head.segment
    ]
    path = segment_path(directory, head.segment)
    view = MappedSegment(path, durable_bytes=head.segment_bytes)
    low, high, epochs = TS_MAX, CLOCK_NONE, {head.epoch}
    for frame, _ in view.frames(head.segment):
        low, high = min(low, frame.ts_min), max(high, frame.ts_max)
        epochs.add(frame.epoch)
    has_rows = head.offset > head.segment
    active = Ledger(
        path, head.segment, head.offset, low if has_rows else None, high if has_rows else None,
        (min(epochs), max(epochs)), head.segment_bytes, sealed=False, sealed_ms=0,
    )  # fmt: skip
    return [*found, active]


def _describe_sealed(directory: Path, base: int) -> Ledger:
    path = ledger_path(directory, base)
    footer = read_footer(directory, base)
    if footer is None:
        raise LogError(f"{path}: the footer is damaged; `edgewise log verify` says more")
    return Ledger(
        path, footer.base, footer.end, footer.ts_min, footer.ts_max,
        (footer.epoch_first, footer.epoch_last), path.stat().st_size,
        sealed=True, sealed_ms=footer.sealed_ms,
        storage="parquet" if path.suffix == PARQUET else "segment",
    )  # fmt: skip


def count_expired(directory: Path, bases: list[int], config: LogConfig, now_ms: int) -> int:
    """How many of the oldest ledgers the config no longer keeps; the last always stays."""
    sizes = [measure_ledger(directory, base) for base in bases]
    total, expired = sum(sizes), 0
    for at, base in enumerate(bases[:-1]):
        large = config.retain_bytes and total > config.retain_bytes
        if not large and not _is_older(directory, base, config.retain_ms, now_ms):
            break
        total -= sizes[at]
        expired = at + 1
    return expired


def _is_older(directory: Path, base: int, retain_ms: int, now_ms: int) -> bool:
    footer = read_footer(directory, base) if retain_ms else None
    return footer is not None and footer.sealed_ms < now_ms - retain_ms


def select_for_archive(
    directory: Path, now_ms: int, age_ms: int | None, bytes_max: int | None = None
) -> list[Ledger]:
    """Segments sealed longer than `age_ms` ago, and the oldest of those above `bytes_max`."""
    sealed = [e for e in list_ledgers(directory) if e.sealed and e.storage == "segment"]
    total = sum(ledger.bytes for ledger in sealed)
    due = []
    for ledger in sealed:
        old = age_ms is not None and ledger.sealed_ms <= now_ms - age_ms
        if not old and (bytes_max is None or total <= bytes_max):
            break
        due.append(ledger)
        total -= ledger.bytes
    return due


def archive_ledgers(directory: Path, now_ms: int, age_ms: int) -> int:
    """Move ledgers that were sealed longer than `age_ms` ago to Parquet; return how many."""
    due = select_for_archive(directory, now_ms, age_ms)
    return sum(move_to_parquet(directory, ledger.first) for ledger in due)
