"""Move sealed ledgers to Parquet, and read them there.

Other tools read such a file as it is; readers of the log go on reading it too. The file has the
rows of the ledger in order, the system columns first. What the log must know besides (offsets,
epochs, the clock before each row group) is JSON in the file's metadata under `edgewise.ledger`.
Pages have checksums, and the copy is compared before the segment is removed: a move reads the
ledger twice. `edgewise log archive` and the node's archiver use it.
"""

from __future__ import annotations

import bisect
import fcntl
import logging
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from edgewise.errors import LogCorrupt, OutOfRange
from edgewise.log.api import LogBatch
from edgewise.log.files import parquet_path, segment_path, sync_directory
from edgewise.log.frame import SegmentFooter
from edgewise.log.mapped_segment import MappedSegment
from edgewise.log.rows import compute_clock

logger = logging.getLogger(__name__)

GROUP_ROWS_MAX = 64 * 1024
_KEY = b"edgewise.ledger"
_LOCK = "archive.lock"


class GroupStart(msgspec.Struct, array_like=True, frozen=True):
    """The first offset of a row group, and the clock before it."""

    first: int
    clock_before: int


class LedgerMetadata(msgspec.Struct, frozen=True):
    """What the log keeps in the metadata of the file."""

    footer: SegmentFooter
    groups: list[GroupStart]


def _strip_metadata(schema: Any) -> Any:
    """The schema without what Parquet adds to the metadata."""
    fields = [
        f.with_metadata({k: v for k, v in (f.metadata or {}).items() if k[:8] != b"PARQUET:"})
        for f in schema
    ]
    kept = {k: v for k, v in (schema.metadata or {}).items() if k != _KEY}
    return pa.schema(fields, metadata=kept)


class ParquetLedger:
    """A ledger in Parquet. Each read opens the file for itself, so threads may share it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            metadata = pq.read_metadata(path)
            stored = msgspec.json.decode((metadata.metadata or {})[_KEY], type=LedgerMetadata)
            self.schema = _strip_metadata(pq.read_schema(path))
        except FileNotFoundError as error:
            raise OutOfRange(f"{path.name} was removed by retention") from error
        except (pa.ArrowException, OSError, KeyError, msgspec.MsgspecError) as error:
            raise LogCorrupt(f"{path}: the metadata is damaged ({error})") from error
        self.footer = stored.footer
        self._groups = stored.groups

    def batches(self, start: int) -> Iterator[LogBatch]:
        """Row groups, whole, from the one that holds `start` on."""
        at = bisect.bisect_right(self._groups, start, key=lambda g: g.first) - 1
        for number in range(max(at, 0), len(self._groups)):
            group = self._groups[number]
            yield LogBatch(group.first, group.clock_before, self._group(number))

    def _group(self, number: int) -> Any:
        try:
            with pq.ParquetFile(self.path, page_checksum_verification=True) as file:
                table = file.read_row_group(number)
        except FileNotFoundError as error:
            raise OutOfRange(f"{self.path.name} was removed by retention") from error
        except (pa.ArrowException, OSError) as error:
            raise LogCorrupt(f"{self.path}: row group {number} is damaged ({error})") from error
        batches = table.combine_chunks().to_batches()
        rows = batches[0] if batches else pa.RecordBatch.from_pylist([], schema=table.schema)
        return pa.RecordBatch.from_arrays(rows.columns, schema=self.schema)


def move_to_parquet(directory: Path, base: int) -> bool:
    """Move one sealed ledger; False if it was moved or dropped already. Runs in any process.

    The order makes it safe: the new file is complete, compared and durable before it gets its
    name, and only then the segment is removed. A crash between leaves both; the segment counts.
    """
    lock = os.open(directory / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        source = segment_path(directory, base)
        if not source.exists():
            return False
        view = MappedSegment(source)
        if view.footer is None:
            raise LogCorrupt(
                f"{source}: its footer is damaged or missing; only a sealed ledger can be moved"
            )
        temporary = parquet_path(directory, base).with_suffix(".parquet-temporary")
        try:
            _write(view, temporary)
            _check(view, ParquetLedger(temporary))
            temporary.replace(parquet_path(directory, base))
        finally:
            temporary.unlink(missing_ok=True)
        sync_directory(directory)
        size = source.stat().st_size
        source.unlink(missing_ok=True)
        sync_directory(directory)
        logger.info(
            "%s: moved offsets %d to %d to Parquet, %d to %d bytes",
            directory, base, view.footer.end, size, parquet_path(directory, base).stat().st_size,
        )  # fmt: skip
        return True
    finally:
        os.close(lock)


def _write(view: MappedSegment, path: Path) -> None:
    assert view.footer is not None
    groups: list[GroupStart] = []
    with pq.ParquetWriter(path, view.schema, compression="zstd", write_page_checksum=True) as file:
        for first, clock, table in _groups(view):
            groups.append(GroupStart(first, clock))
            file.write_table(table, row_group_size=GROUP_ROWS_MAX)
        stored = LedgerMetadata(msgspec.structs.replace(view.footer, index=[]), groups)
        file.add_key_value_metadata({_KEY.decode(): msgspec.json.encode(stored).decode()})
    with path.open("rb") as written:
        os.fsync(written.fileno())


def _groups(view: MappedSegment) -> Iterator[tuple[int, int, Any]]:
    """The rows of a segment in groups of GROUP_ROWS_MAX: small batches become few large ones."""
    batches: list[Any] = []
    count, first, clock = 0, view.header.base, view.header.clock_before
    for batch in view.batches(first):
        at = 0
        while at < batch.rows.num_rows:
            take = min(GROUP_ROWS_MAX - count, batch.rows.num_rows - at)
            batches.append(batch.rows.slice(at, take))
            at, count = at + take, count + take
            if count == GROUP_ROWS_MAX:
                yield first, clock, pa.Table.from_batches(batches)
                first, clock = first + count, compute_clock(batch.rows, at, batch.clock_before)
                batches, count = [], 0
    if batches:
        yield first, clock, pa.Table.from_batches(batches)


def _check(view: MappedSegment, moved: ParquetLedger) -> None:
    """Read both and compare: after this the segment is not needed."""
    groups = moved.batches(view.header.base)
    for first, clock, table in _groups(view):
        batch = next(groups)
        same = (batch.first, batch.clock_before) == (first, clock)
        if not same or not pa.Table.from_batches([batch.rows]).equals(table):
            raise LogCorrupt(f"{moved.path}: offsets from {first} came back different")
