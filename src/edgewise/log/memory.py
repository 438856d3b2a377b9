"""Keep a log in memory: the same contract, but it ends with the process. For tests."""

from __future__ import annotations

import bisect
import threading
import time
from collections.abc import Iterator
from typing import Any

from edgewise.errors import LogError, LogLocked, OutOfRange
from edgewise.event.arrow import to_arrow
from edgewise.event.position import Position
from edgewise.event.schema import Schema
from edgewise.log.api import CLOCK_NONE, DEFAULTS, Appended, LogBatch, LogConfig
from edgewise.log.producers import Producers
from edgewise.log.rows import (
    compute_clock,
    describe_difference,
    encode_batches,
    fit_to_schema,
    slice_batch,
)


class MemoryLog:
    """The log itself: `writer` and `reader` open it, as the files of a directory are opened."""

    def __init__(self) -> None:
        self.schema: Any = None
        self.epoch = 0
        self.batches: list[LogBatch] = []
        self.offset = 0
        self.clock = CLOCK_NONE
        self.earliest = 0
        self.producers: Producers | None = None
        self.owner: MemoryWriter | None = None
        self.changed = threading.Condition()

    def writer(self, schema: Schema, config: LogConfig = DEFAULTS) -> MemoryWriter:
        with self.changed:
            if self.owner:
                raise LogLocked("this process writes this log, and a log has one writer")
            given = to_arrow(schema)
            difference = describe_difference(self.schema, given) if self.schema else ""
            if difference:
                raise LogError(f"the log has another schema: {difference}")
            self.schema = given
            self.epoch += 1
            self.producers = self.producers or Producers(config.producers_max)
            self.owner = MemoryWriter(self, config)
            return self.owner

    def reader(self) -> MemoryReader:
        if self.schema is None:
            raise LogError("there is no log here; a writer creates it")
        return MemoryReader(self)


class MemoryWriter:
    def __init__(self, log: MemoryLog, config: LogConfig) -> None:
        self._log = log
        self._config = config

    @property
    def schema(self) -> Any:
        return self._log.schema

    @property
    def head(self) -> Position:
        return Position(self._log.epoch, self._log.offset)

    def last_sequence(self, producer: str) -> int:
        assert self._log.producers is not None
        return self._log.producers.last(producer)

    def append(self, rows: Any, *, producer: str = "", sequence: int = -1) -> Appended:
        log = self._log
        rows = fit_to_schema(rows, log.schema)
        encoded = encode_batches(rows, log.schema, self._config.batch_rows_max)
        with log.changed:
            if log.owner is not self:
                raise LogError("the log was closed; open a new writer to append")
            assert log.producers is not None
            known = log.producers.find(producer, sequence, log.offset)
            if known:
                return known
            first = log.offset
            for batch in encoded:
                if batch.rows:
                    piece = rows.slice(log.offset - first, batch.rows)
                    log.batches.append(LogBatch(log.offset, log.clock, piece))
                log.offset += batch.rows
                log.clock = max(log.clock, batch.ts_max)
            log.producers.record(producer, sequence, first, log.offset)
            log.changed.notify_all()
            return Appended(first, log.offset)

    def retain(self, now_ms: int) -> int:
        """Only by size, a batch counting as a segment: batches in memory have no age."""
        del now_ms
        log, drop = self._log, 0
        with log.changed:
            sizes = [b.rows.nbytes for b in log.batches]
            while self._config.retain_bytes and sum(sizes[drop:]) > self._config.retain_bytes:
                if drop == len(sizes) - 1:
                    break
                drop += 1
            if drop:
                del log.batches[:drop]
                log.earliest = log.batches[0].first
        return drop

    def close(self) -> None:
        with self._log.changed:
            if self._log.owner is self:
                self._log.owner = None


class MemoryReader:
    def __init__(self, log: MemoryLog) -> None:
        self._log = log

    @property
    def schema(self) -> Any:
        return self._log.schema

    def earliest(self) -> int:
        return self._log.earliest

    def head(self) -> Position:
        return Position(self._log.epoch, self._log.offset)

    def clock(self, offset: int) -> int:
        with self._log.changed:
            batches = self._within(offset, offset)
            if offset == self._log.offset:
                return self._log.clock
        batch = batches[bisect.bisect_right(batches, offset, key=lambda b: b.first) - 1]
        return compute_clock(batch.rows, offset - batch.first, batch.clock_before)

    def read(self, start: int, end: int, columns: list[str] | None = None) -> Iterator[LogBatch]:
        with self._log.changed:
            batches = self._within(start, end)
        unknown = [c for c in columns or () if c not in self.schema.names]
        if unknown:
            raise LogError(f"the log has no attribute '{unknown[0]}'")
        return self._read(batches, start, end, columns)

    def wait(self, offset: int, timeout_s: float) -> bool:
        deadline = time.monotonic() + timeout_s
        with self._log.changed:
            while self._log.offset <= offset:
                left = deadline - time.monotonic()
                if left <= 0:
                    return False
                self._log.changed.wait(left)
            return True

    def close(self) -> None:
        """There is nothing to close."""

    def _within(self, start: int, end: int) -> list[LogBatch]:
        log = self._log
        if not log.earliest <= start <= end <= log.offset:
            raise OutOfRange(
                f"offsets {start} to {end} were asked, {log.earliest} to {log.offset} are there"
            )
        return list(log.batches)

    @staticmethod
    def _read(
        batches: list[LogBatch], start: int, end: int, columns: list[str] | None
    ) -> Iterator[LogBatch]:
        at = bisect.bisect_right(batches, start, key=lambda b: b.first) - 1
        for batch in batches[max(at, 0) :]:
            if max(start, batch.first) >= end:
                return
            cut = slice_batch(batch, start, end)
            rows = cut.rows.select(columns) if columns else cut.rows
            yield LogBatch(cut.first, cut.clock_before, rows)
