"""The one writer of a log of segment files: opening, group commit, fence, roll, retention."""

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
from edgewise.log.active import ActiveSegment
from edgewise.log.api import CLOCK_NONE, DEFAULTS, Appended, LogConfig, Part
from edgewise.log.commit import Append, GroupCommit
from edgewise.log.files import (
    FULL_ERRORS,
    give_back_lock,
    ledger_bytes,
    make_directory,
    parquet_path,
    segment_bases,
    segment_path,
    sync_directory,
    take_over_lock,
    take_writer_lock,
)
from edgewise.log.frame import FrameKind, SegmentHeader, aligned, pack_frame
from edgewise.log.head import Head, HeadFile
from edgewise.log.ledger import read_footer
from edgewise.log.producers import Producers
from edgewise.log.recovery import Cut, detach, evolved, judge, without_strays
from edgewise.log.rows import parts_of
from edgewise.log.scan import Scan, scan

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
        self.cut: Cut | None = None
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
            self._lock_fd = (take_over_lock if take_over else take_writer_lock)(directory)
            self._head = HeadFile(directory, writable=True)
            self._recover(defaults, take_over=take_over)
        except OSError as error:
            self._release()
            kind = LogFull if error.errno in FULL_ERRORS else LogError
            raise kind(f"{directory}: the log cannot be opened: {error}") from error
        except BaseException:
            self._release()
            raise
        self._group: GroupCommit[Append] = GroupCommit(self._commit, config.pending_bytes_max)

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
        return Position(self._epoch, self._tally.offset)

    @property
    def bytes_cut(self) -> int:
        """How long the torn tail was that opening cut away."""
        return self.cut.bytes if self.cut else 0

    def last_sequence(self, producer: str) -> int:
        """The highest sequence appended for a producer, -1 when it is not known."""
        return self._producers.last(producer)

    @property
    def rows_max(self) -> int:
        return self._config.batch_rows_max

    def append(self, rows: Any, *, producer: str = "", sequence: int = -1) -> Appended:
        parts = parts_of(rows, self._schema, self.rows_max)
        return self.append_parts(parts, producer=producer, sequence=sequence)

    def append_parts(
        self, parts: list[Part], *, producer: str = "", sequence: int = -1
    ) -> Appended:
        entry = Append.of(parts, producer, sequence)
        if entry is None:
            offset = self._tally.offset
            return Appended(offset, offset)
        self._group.submit(entry)
        assert isinstance(entry.answer, Appended)
        return entry.answer

    def retain(self, now_ms: int) -> int:
        config = self._config
        with self._disk:
            self._usable()
            self._seal_if_old(now_ms)
            bases = segment_bases(self.directory)
            sizes = [ledger_bytes(self.directory, b) for b in bases]
            total, drop = sum(sizes), 0
            for at, base in enumerate(bases[:-1]):
                large = config.retain_bytes and total > config.retain_bytes
                if not large and not self._aged(base, now_ms):
                    break
                total -= sizes[at]
                drop = at + 1
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
        for rest in (*self.directory.glob("*.tmp"), *self.directory.glob("*.parquet-young")):
            rest.unlink(missing_ok=True)  # one that was fenced may clear up as well
        if take_over:
            # First the fence, then the scan: what the old writer acknowledged before is found.
            self._head.raise_fence(1 + max(known.epoch if known else 0, self._head.fence))
        bases = without_strays(self.directory, known)
        if not bases:
            self._start_empty(known)
        else:
            last = segment_path(self.directory, bases[-1])
            if not last.exists():
                raise LogCorrupt(f"{last}: the active segment is missing; restore it from a copy")
            if take_over:
                detach(last)
            self._earliest = max(bases[0], known.earliest if known else 0)
            found = scan(last, self._config.producers_max)
            self._adopt(found, known, defaults)
        self._head.raise_fence(self._epoch)
        self._publish()
        self._publish()  # both slots are of this epoch now
        self._head.sync()
        sync_directory(self.directory)
        gone = [b for b, after in itertools.pairwise(bases) if after <= self._earliest]
        if gone:
            self._drop(gone, self._earliest)

    def _start_empty(self, known: Head | None) -> None:
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

    def _adopt(self, found: Scan, known: Head | None, defaults: dict[str, Any]) -> None:
        """Go on where the last writer stopped."""
        stored = pa.ipc.read_schema(pa.py_buffer(found.header.schema))
        self._schema = evolved(self.directory, stored, self._schema, defaults)
        self.cut = judge(found, known)
        tally = found.tally
        epochs = (found.header.epoch, tally.epoch_last, known.epoch if known else 0)
        self._epoch = max(1 + max(epochs), self._head.fence)
        self._producers = found.producers
        self._latest_ms = found.header.created_ms
        self._active, self._tally = ActiveSegment.take_up(found), tally
        grown = len(stored) < len(self._schema)
        if found.sealed:
            self._replace(tally.offset, tally.clock)
        elif grown and tally.frames:
            self._roll(self._active)
        elif grown:
            found.path.unlink()
            self._replace(tally.offset, tally.clock)

    # --- appending; `_disk` is held

    def _commit(self, group: list[Append]) -> None:
        with self._disk:
            waiting = group
            while waiting:
                try:
                    self._usable()
                    waiting = self._commit_some(waiting)
                except LogError as error:
                    for entry in waiting:
                        entry.error = entry.error or error
                    return

    def _commit_some(self, waiting: list[Append]) -> list[Append]:
        """Commit what fits into the active segment; answers what is left."""
        run: list[Append] = []
        known: dict[str, int] = {}
        size = self._tally.position
        for entry in waiting:
            if 0 <= entry.sequence <= known.get(entry.producer, -1):
                break  # its first half is in this run: then it will be a known duplicate
            offset = self._tally.offset
            entry.answer = self._producers.find(entry.producer, entry.sequence, offset)
            if entry.answer is None:
                full = size + entry.size > self._segment_bytes
                if full and run:
                    break
                if full and self._tally.offset > self._tally.base:
                    self._guard(self._roll)
                    size = self._tally.position
                if entry.producer:
                    known[entry.producer] = entry.sequence
                size += entry.size
            run.append(entry)
        fresh = [e for e in run if e.answer is None]
        if fresh:
            self._guard(lambda active: self._write(active, fresh))
        return waiting[len(run) :]

    def _guard(self, action: Callable[[ActiveSegment], None]) -> None:
        """Undo a write that failed: the file ends again at its last durable byte."""
        assert self._active is not None
        try:
            action(self._active)
        except BaseException as error:
            try:
                self._active.undo()
            except OSError as second:
                self._failed = f"{self.directory}: {error}, then {second}; reopen the log"
            self._not_fenced()  # else the new writer's tidying would look like a broken disk
            if isinstance(error, OSError) and error.errno in FULL_ERRORS:
                raise LogFull(
                    f"{self.directory}: no room ({error.strerror}); nothing was appended, "
                    "appends go on when there is room again"
                ) from error
            if isinstance(error, OSError):
                # What a failed fsync left in memory is unknown: only a reopen reads the disk.
                self._failed = f"{self.directory}: the disk failed ({error}); reopen the log"
                raise LogError(self._failed) from error
            self._failed = self._failed or f"{self.directory}: an append was broken off; reopen"
            raise

    def _usable(self) -> None:
        self._not_fenced()
        if self._failed or self._active is None:
            raise LogError(self._failed or f"{self.directory}: the log is closed")

    def _not_fenced(self) -> None:
        if self._head.fence > self._epoch:
            raise LogLocked(
                f"{self.directory}: a writer of epoch {self._head.fence} took over from epoch "
                f"{self._epoch}; nothing was appended"
            )

    def _write(self, active: ActiveSegment, fresh: list[Append]) -> None:
        tally = self._tally
        durable = position = tally.position
        offset, clock = tally.offset, tally.clock
        buffers: list[Any] = []
        written: list[tuple[int, Part, int, int]] = []
        for entry in fresh:
            first = offset
            for part in entry.parts:
                frame = pack_frame(
                    FrameKind.DATA, part.body, body_crc=part.crc, first=offset, rows=part.rows,
                    epoch=self._epoch, ts_min=part.ts_min, ts_max=part.ts_max, clock_before=clock,
                    durable_before=durable, sequence=entry.sequence, producer=entry.producer,
                    more=part is not entry.parts[-1],
                )  # fmt: skip
                buffers += frame
                end = position + len(frame[0]) + aligned(part.body.size)
                written.append((offset, part, position, end))
                position = end
                offset, clock = offset + part.rows, max(clock, part.ts_max)
            entry.answer = Appended(first, offset)
        try:
            active.write(buffers)
            self._not_fenced()
        except BaseException:
            for entry in fresh:
                entry.answer = None
            raise
        for at, part, start, end in written:
            times = (part.ts_min, part.ts_max)
            tally.add(at, part.rows, epoch=self._epoch, times=times, position=start, end=end)
        for entry in fresh:
            done = entry.answer
            assert isinstance(done, Appended)
            self._producers.record(entry.producer, entry.sequence, done.first, done.end)
        self._publish()

    def _publish(self) -> None:
        tally = self._tally
        self._head.publish(
            Head(
                self._epoch, tally.offset, tally.clock, tally.base, tally.position, self._earliest
            )
        )

    # --- segments

    def _roll(self, active: ActiveSegment) -> None:
        """Seal the active segment and start the next one."""
        old = self._tally
        active.seal(self._epoch, self._time_ms())
        self._not_fenced()
        for stray in (b for b in segment_bases(self.directory) if b > old.base):
            segment_path(self.directory, stray).unlink()  # of a writer that was fenced in here
        self._replace(old.offset, old.clock)
        self._publish()
        self._head.sync()

    def _replace(self, base: int, clock: int) -> None:
        """A new active segment; the old one stays if it cannot be made."""
        header = SegmentHeader(
            base=base, epoch=self._epoch, clock_before=clock, created_ms=self._time_ms(),
            schema=self._schema.serialize().to_pybytes(), producers=self._producers.snapshot(),
        )  # fmt: skip
        old, self._active = self._active, ActiveSegment.create(self.directory, header)
        self._tally = self._active.tally
        if old:
            old.close()

    def _time_ms(self) -> int:
        """The clock may jump back; no ledger may look older than those before it."""
        self._latest_ms = max(self._latest_ms, self._now_ms())
        return self._latest_ms

    def _seal_if_old(self, now_ms: int) -> None:
        """Else a stream that trickles would keep its first event for ever."""
        assert self._active is not None
        old = self._active.created_ms <= now_ms - self._config.seal_ms
        if old and self._tally.offset > self._tally.base:
            self._guard(self._roll)

    def _aged(self, base: int, now_ms: int) -> bool:
        if not self._config.retain_ms:
            return False
        footer = read_footer(self.directory, base)
        return footer is not None and footer.sealed_ms < now_ms - self._config.retain_ms

    def _drop(self, bases: list[int], earliest: int) -> None:
        self._earliest = earliest
        self._publish()  # first, so that a reader is told before the file is gone
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
            give_back_lock(fd)
