"""Write a log of segment files in a directory; a log has one writer.

An append is written behind the last durable byte, synced, and only then published in the head
file; readers never read further. So a crash can only leave bytes that nobody was told of, and the
next writer cuts them off (`segment_recovery`). Appends that wait together share one fsync; the
price is that an error of the disk fails all of them. A writer that was fenced by a newer epoch
refuses to append. Nodes and engines open it through `locations`.
"""

from __future__ import annotations

import itertools
import logging
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

from edgewise.errors import LogCorrupt, LogError, LogFull, LogLocked
from edgewise.event.arrow import to_arrow
from edgewise.event.position import Position
from edgewise.event.schema import Schema
from edgewise.log.active_segment import ActiveSegment, pack_group
from edgewise.log.api import CLOCK_NONE, DEFAULTS, Appended, EncodedBatch, LogConfig
from edgewise.log.files import (
    FULL_ERRORS,
    make_directory,
    parquet_path,
    release_writer_lock,
    replace_writer_lock,
    segment_bases,
    segment_path,
    sync_directory,
    take_writer_lock,
)
from edgewise.log.frame import SegmentHeader
from edgewise.log.group_commit import GroupCommit, PendingAppend
from edgewise.log.head import HeadFile, LogHead
from edgewise.log.ledger import count_expired
from edgewise.log.producers import Producers
from edgewise.log.rows import encode_batches, evolve_schema
from edgewise.log.scan import SegmentScan, scan_segment
from edgewise.log.segment_recovery import (
    TornTail,
    find_torn_tail,
    remove_stray_segments,
    replace_with_copy,
)

logger = logging.getLogger(__name__)


def wall_ms() -> int:
    return time.time_ns() // 1_000_000


class SegmentWriter:
    """Use `SegmentWriter.open`. Appends may come from many threads."""

    def __init__(
        self,
        directory: Path,
        schema: Schema,
        config: LogConfig,
        *,
        defaults: dict[str, Any],
        take_over: bool,
        now_ms: Callable[[], int],
    ) -> None:
        self.directory = directory
        self.torn_tail: TornTail | None = None
        self._config = config
        self._segment_bytes = config.seal_bytes
        self._schema = to_arrow(schema)
        self._now_ms = now_ms
        self._failed = ""
        self._disk = threading.Lock()
        self._active: ActiveSegment | None = None
        self._lock_fd = -1
        try:
            make_directory(directory)
            self._lock_fd = (replace_writer_lock if take_over else take_writer_lock)(directory)
            self._head = HeadFile(directory, writable=True)
            self._recover(defaults, take_over=take_over)
        except OSError as error:
            self._release()
            kind = LogFull if error.errno in FULL_ERRORS else LogError
            raise kind(f"{directory}: the log cannot be opened: {error}") from error
        except BaseException:
            self._release()
            raise
        self._group: GroupCommit[PendingAppend] = GroupCommit(
            self._commit, config.pending_bytes_max
        )

    @classmethod
    def open(
        cls,
        directory: Path,
        schema: Schema,
        config: LogConfig = DEFAULTS,
        *,
        defaults: dict[str, Any] | None = None,
        take_over: bool = False,
        now_ms: Callable[[], int] = wall_ms,
    ) -> SegmentWriter:
        """`defaults` for attributes that were added at the end of the schema since.

        `take_over` fences a writer that lost its lease but may not know it: from now on it cannot
        append. Only for those who hold the lease; everybody else is refused while one writes.
        """
        return cls(
            Path(directory), schema, config,
            defaults=defaults or {}, take_over=take_over, now_ms=now_ms,
        )  # fmt: skip

    @property
    def schema(self) -> Any:
        return self._schema

    @property
    def head(self) -> Position:
        return Position(self._epoch, self._totals.offset)

    @property
    def bytes_cut(self) -> int:
        """The length of the torn tail that opening cut off."""
        return self.torn_tail.bytes if self.torn_tail else 0

    def last_sequence(self, producer: str) -> int:
        """The highest sequence appended for a producer, -1 when it is not known."""
        return self._producers.last(producer)

    @property
    def rows_max(self) -> int:
        return self._config.batch_rows_max

    def append(self, rows: Any, *, producer: str = "", sequence: int = -1) -> Appended:
        batches = encode_batches(rows, self._schema, self.rows_max)
        return self.append_encoded(batches, producer=producer, sequence=sequence)

    def append_encoded(
        self, batches: list[EncodedBatch], *, producer: str = "", sequence: int = -1
    ) -> Appended:
        entry = PendingAppend.prepare(batches, producer, sequence)
        if entry is None:
            offset = self._totals.offset
            return Appended(offset, offset)
        self._group.submit(entry)
        assert isinstance(entry.answer, Appended)
        return entry.answer

    def retain(self, now_ms: int) -> int:
        with self._disk:
            self._check_writable()
            self._seal_if_old(now_ms)
            bases = segment_bases(self.directory)
            drop = count_expired(self.directory, bases, self._config, now_ms)
            if drop:
                self._drop(bases[:drop], bases[drop])
            return drop

    def close(self) -> None:
        self._group.close()
        with self._disk:
            if self._active:
                self._head.sync()
            self._release()

    # --- opening

    def _recover(self, defaults: dict[str, Any], *, take_over: bool) -> None:
        known = self._head.peek()
        for rest in (*self.directory.glob("*.tmp"), *self.directory.glob("*.parquet-temporary")):
            rest.unlink(missing_ok=True)  # a fenced writer may remove it as well
        if take_over:
            # First the fence, then the scan: what the old writer acknowledged before is found.
            self._head.raise_fence(1 + max(known.epoch if known else 0, self._head.fence))
        bases = remove_stray_segments(self.directory, known)
        if not bases:
            self._start_empty(known)
        else:
            last = segment_path(self.directory, bases[-1])
            if not last.exists():
                raise LogCorrupt(f"{last}: the active segment is missing; restore it from a copy")
            if take_over:
                replace_with_copy(last)
            self._earliest = max(bases[0], known.earliest if known else 0)
            found = scan_segment(last, self._config.producers_max)
            self._adopt(found, known, defaults)
        self._head.raise_fence(self._epoch)
        self._publish()
        self._publish()  # so that both slots have this epoch
        self._head.sync()
        sync_directory(self.directory)
        gone = [b for b, after in itertools.pairwise(bases) if after <= self._earliest]
        if gone:
            self._drop(gone, self._earliest)

    def _start_empty(self, known: LogHead | None) -> None:
        if known and known.offset:
            raise LogCorrupt(
                f"{self.directory}: the head says offset {known.offset}, but there is no segment "
                "file; restore the files or remove the directory"
            )
        self._epoch = max(known.epoch + 1 if known else 1, self._head.fence)
        self._earliest = 0
        self._latest_ms = 0
        self._producers = Producers(self._config.producers_max)
        self._replace(0, CLOCK_NONE)

    def _adopt(self, found: SegmentScan, known: LogHead | None, defaults: dict[str, Any]) -> None:
        """Continue where the last writer stopped."""
        stored = pa.ipc.read_schema(pa.py_buffer(found.header.schema))
        self._schema = evolve_schema(self.directory, stored, self._schema, defaults)
        self.torn_tail = find_torn_tail(found, known)
        totals = found.totals
        epochs = (found.header.epoch, totals.epoch_last, known.epoch if known else 0)
        self._epoch = max(1 + max(epochs), self._head.fence)
        self._producers = found.producers
        self._latest_ms = found.header.created_ms
        self._active, self._totals = ActiveSegment.reopen(found), totals
        grown = len(stored) < len(self._schema)
        if found.sealed:
            self._replace(totals.offset, totals.clock)
        elif grown and totals.frames:
            self._roll(self._active)
        elif grown:
            found.path.unlink()
            self._replace(totals.offset, totals.clock)

    # --- appending; `_disk` is held

    def _commit(self, group: list[PendingAppend]) -> None:
        with self._disk:
            waiting = group
            while waiting:
                try:
                    self._check_writable()
                    waiting = self._commit_some(waiting)
                except LogError as error:
                    for entry in waiting:
                        entry.error = entry.error or error
                    return

    def _commit_some(self, waiting: list[PendingAppend]) -> list[PendingAppend]:
        """Commit what fits into the active segment; return the rest."""
        run: list[PendingAppend] = []
        known: dict[str, int] = {}
        size = self._totals.position
        for entry in waiting:
            if 0 <= entry.sequence <= known.get(entry.producer, -1):
                break  # it repeats an append of this group: in the next it is a known duplicate
            offset = self._totals.offset
            entry.answer = self._producers.find(entry.producer, entry.sequence, offset)
            if entry.answer is None:
                full = size + entry.size > self._segment_bytes
                if full and run:
                    break
                if full and self._totals.offset > self._totals.base:
                    self._run_or_undo(self._roll)
                    size = self._totals.position
                if entry.producer:
                    known[entry.producer] = entry.sequence
                size += entry.size
            run.append(entry)
        fresh = [e for e in run if e.answer is None]
        if fresh:
            self._run_or_undo(lambda active: self._write(active, fresh))
        return waiting[len(run) :]

    def _run_or_undo(self, action: Callable[[ActiveSegment], None]) -> None:
        """Run a write; if it fails, truncate the file to its last durable byte."""
        assert self._active is not None
        try:
            action(self._active)
        except BaseException as error:
            try:
                self._active.undo()
            except OSError as second:
                self._failed = f"{self.directory}: {error}, then {second}; reopen the log"
            # Checked first: files that a new writer removed would look like a broken disk.
            self._check_not_fenced()
            if isinstance(error, OSError) and error.errno in FULL_ERRORS:
                raise LogFull(
                    f"{self.directory}: no room ({error.strerror}); nothing was appended, "
                    "appends go on when there is room again"
                ) from error
            if isinstance(error, OSError):
                # What a failed fsync left in memory is unknown: only a reopen reads the disk.
                self._failed = f"{self.directory}: the disk failed ({error}); reopen the log"
                raise LogError(self._failed) from error
            self._failed = (
                self._failed or f"{self.directory}: an append was interrupted; reopen the log"
            )
            raise

    def _check_writable(self) -> None:
        self._check_not_fenced()
        if self._failed or self._active is None:
            raise LogError(self._failed or f"{self.directory}: the log is closed")

    def _check_not_fenced(self) -> None:
        if self._head.fence > self._epoch:
            raise LogLocked(
                f"{self.directory}: a writer of epoch {self._head.fence} took over from epoch "
                f"{self._epoch}; nothing was appended"
            )

    def _write(self, active: ActiveSegment, fresh: list[PendingAppend]) -> None:
        packed = pack_group(fresh, self._totals, self._epoch)
        active.write(packed.buffers)
        self._check_not_fenced()
        packed.add_to(self._totals, self._epoch)
        for entry, answer in zip(fresh, packed.answers, strict=True):
            entry.answer = answer
            self._producers.record(entry.producer, entry.sequence, answer.first, answer.end)
        self._publish()

    def _publish(self) -> None:
        totals = self._totals
        self._head.publish(
            LogHead(
                self._epoch,
                totals.offset,
                totals.clock,
                totals.base,
                totals.position,
                self._earliest,
            )
        )

    # --- segments

    def _roll(self, active: ActiveSegment) -> None:
        """Seal the active segment and start the next one."""
        old = self._totals
        active.seal(self._epoch, self._monotonic_ms())
        self._check_not_fenced()
        for stray in (b for b in segment_bases(self.directory) if b > old.base):
            segment_path(self.directory, stray).unlink()  # created by a writer after it was fenced
        self._replace(old.offset, old.clock)
        self._publish()
        self._head.sync()

    def _replace(self, base: int, clock: int) -> None:
        """A new active segment; the old one stays if it cannot be made."""
        header = SegmentHeader(
            base=base, epoch=self._epoch, clock_before=clock, created_ms=self._monotonic_ms(),
            schema=self._schema.serialize().to_pybytes(), producers=self._producers.snapshot(),
        )  # fmt: skip
        old, self._active = self._active, ActiveSegment.create(self.directory, header)
        self._totals = self._active.totals
        if old:
            old.close()

    def _monotonic_ms(self) -> int:
        """The clock may jump back; no ledger may seem older than those before it."""
        self._latest_ms = max(self._latest_ms, self._now_ms())
        return self._latest_ms

    def _seal_if_old(self, now_ms: int) -> None:
        """Else a stream with few events would never drop its first one."""
        assert self._active is not None
        old = self._active.created_ms <= now_ms - self._config.seal_ms
        if old and self._totals.offset > self._totals.base:
            self._run_or_undo(self._roll)

    def _drop(self, bases: list[int], earliest: int) -> None:
        self._earliest = earliest
        self._publish()  # first, so that readers know before the file is gone
        self._head.sync()
        for base in bases:
            parquet_path(self.directory, base).unlink(missing_ok=True)
            segment_path(self.directory, base).unlink(missing_ok=True)
        sync_directory(self.directory)
        logger.info(
            "%s: retention removed %d segments, offsets start at %d",
            self.directory, len(bases), earliest,
        )  # fmt: skip

    def _release(self) -> None:
        active, self._active = self._active, None
        if active:
            active.close()
        fd, self._lock_fd = self._lock_fd, -1
        if fd >= 0:
            release_writer_lock(fd)
