"""The ledgers of a log: which files there are, and the offsets and times each of them holds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from edgewise.errors import LogError
from edgewise.log.api import CLOCK_NONE
from edgewise.log.files import PARQUET, ledger_path, segment_bases, segment_path
from edgewise.log.frame import TS_MAX, SegmentFooter
from edgewise.log.head import NAME, HeadFile
from edgewise.log.parquet import ParquetView, move_to_parquet
from edgewise.log.view import SegmentView


@dataclass(frozen=True, slots=True)
class Ledger:
    """One file of a log, or in Kafka the records from one checkpoint to the next.

    Times are None where there are no rows or none is known; only the last is not sealed.
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
    home: str = "segment"


def is_log(directory: Path) -> bool:
    return (directory / NAME).is_file()


def logs_under(directory: Path) -> Iterator[Path]:
    """The directory itself when it is a log, else the logs in it, however deep."""
    if is_log(directory):
        yield directory
        return
    for found in sorted(directory.rglob(NAME)):
        if is_log(found.parent) and segment_bases(found.parent):
            yield found.parent


def open_view(directory: Path, base: int) -> SegmentView | ParquetView:
    """A sealed ledger, wherever it is now."""
    path = ledger_path(directory, base)
    return ParquetView(path) if path.suffix == PARQUET else SegmentView(path)


def read_footer(directory: Path, base: int) -> SegmentFooter | None:
    """The sums of a sealed ledger; None when its footer is damaged."""
    return open_view(directory, base).footer


def ledgers(directory: Path) -> list[Ledger]:
    """All files of a log, oldest first; the active segment comes last."""
    if not is_log(directory):
        raise LogError(f"{directory}: there is no log here")
    head = HeadFile(directory).read()
    found = [
        _sealed(directory, base)
        for base in segment_bases(directory)
        if head.earliest <= base < head.segment
    ]
    path = segment_path(directory, head.segment)
    view = SegmentView(path, durable_bytes=head.segment_bytes)
    low, high, epochs = TS_MAX, CLOCK_NONE, {head.epoch}
    for frame, _ in view.frames(head.segment):
        low, high = min(low, frame.ts_min), max(high, frame.ts_max)
        epochs.add(frame.epoch)
    some = head.offset > head.segment
    active = Ledger(
        path, head.segment, head.offset, low if some else None, high if some else None,
        (min(epochs), max(epochs)), head.segment_bytes, sealed=False, sealed_ms=0,
    )  # fmt: skip
    return [*found, active]


def _sealed(directory: Path, base: int) -> Ledger:
    path = ledger_path(directory, base)
    footer = read_footer(directory, base)
    if footer is None:
        raise LogError(f"{path}: the footer is damaged; `edgewise log verify` says more")
    return Ledger(
        path, footer.base, footer.end, footer.ts_min, footer.ts_max,
        (footer.epoch_first, footer.epoch_last), path.stat().st_size,
        sealed=True, sealed_ms=footer.sealed_ms,
        home="parquet" if path.suffix == PARQUET else "segment",
    )  # fmt: skip


def due_for_archive(
    directory: Path, now_ms: int, age_ms: int | None, bytes_max: int | None = None
) -> list[Ledger]:
    """Segments sealed longer than `age_ms` ago, and the oldest of those above `bytes_max`."""
    sealed = [e for e in ledgers(directory) if e.sealed and e.home == "segment"]
    total = sum(ledger.bytes for ledger in sealed)
    due = []
    for ledger in sealed:
        old = age_ms is not None and ledger.sealed_ms <= now_ms - age_ms
        if not old and (bytes_max is None or total <= bytes_max):
            break
        due.append(ledger)
        total -= ledger.bytes
    return due


def archive(directory: Path, now_ms: int, age_ms: int) -> int:
    """Move ledgers that were sealed longer than `age_ms` ago to Parquet; answers how many."""
    due = due_for_archive(directory, now_ms, age_ms)
    return sum(move_to_parquet(directory, ledger.first) for ledger in due)
