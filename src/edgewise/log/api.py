"""Define the contract of a log; segment files and Kafka keep it, `log/laws.py` proves it.

- Offsets are dense, start at 0, are never reused.
- `append` returns when the data would survive power loss; concurrent appends share one fsync.
- One writer: a second one is refused with LogLocked. Each writer opens a new epoch.
- `producer` and `sequence` make an append idempotent: a sequence not above the producer's last
  one is answered with the offsets it got then (or the head, when they are too old to be known)
  and appends nothing.
- Readers never see a gap or half a batch, also while another process writes.
- `clock` is the largest event time of everything up to an offset: replay and batch know the time
  at any offset without reading what came before.

Batches are pyarrow RecordBatches of the schema that `event.arrow.to_arrow` gives.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable

from edgewise.event.position import Position

SEGMENTS_KEPT = 4  # segments that retention keeps at least, where it can
SEGMENT_BYTES_MIN = 1024 * 1024
SEGMENT_MS_MIN = 60 * 1000


@dataclass(frozen=True, slots=True)
class Appended:
    """Offsets `first` up to and without `end`. `duplicate`: the log had them already."""

    first: int
    end: int
    duplicate: bool = False


@dataclass(frozen=True, slots=True)
class LogConfig:
    """Limits of one log. Zero retention means: keep everything."""

    segment_bytes_max: int = 128 * 1024 * 1024
    segment_ms_max: int = 24 * 60 * 60 * 1000  # `retain` seals a segment that is older
    retain_bytes: int = 0
    retain_ms: int = 0
    batch_rows_max: int = 64 * 1024
    pending_bytes_max: int = 64 * 1024 * 1024  # appends waiting for the group commit
    producers_max: int = 4096  # producers whose last sequences are remembered

    @property
    def seal_bytes(self) -> int:
        """Whole segments are dropped, so a log that keeps little needs small ones."""
        if not self.retain_bytes:
            return self.segment_bytes_max
        return min(
            self.segment_bytes_max, max(self.retain_bytes // SEGMENTS_KEPT, SEGMENT_BYTES_MIN)
        )

    @property
    def seal_ms(self) -> int:
        if not self.retain_ms:
            return self.segment_ms_max
        return min(self.segment_ms_max, max(self.retain_ms // SEGMENTS_KEPT, SEGMENT_MS_MIN))


DEFAULTS = LogConfig()


@dataclass(frozen=True, slots=True)
class LogBatch:
    """A stored batch: offsets `first` ... `first + rows.num_rows - 1`."""

    first: int
    clock_before: int  # largest event time of all earlier offsets, CLOCK_NONE for none
    rows: Any  # pyarrow.RecordBatch


CLOCK_NONE = -(2**63)


class EncodedBatch(NamedTuple):
    """A record batch as bytes, with what the header of its frame says of it."""

    body: Any
    crc: int
    rows: int
    ts_min: int
    ts_max: int


class LogWriter(Protocol):
    @property
    def schema(self) -> Any: ...
    @property
    def head(self) -> Position:
        """Epoch of this writer, and the offset the next event will get."""
        ...

    def append(self, rows: Any, *, producer: str = "", sequence: int = -1) -> Appended:
        """Blocks until durable. Raises LogFull when there is no room: nothing was appended."""
        ...

    def last_sequence(self, producer: str) -> int:
        """The highest sequence appended for a producer, -1 when it is not known."""
        ...

    def retain(self, now_ms: int) -> int:
        """Drop whole segments that the config no longer keeps; return how many."""
        ...

    def close(self) -> None: ...


@runtime_checkable
class EncodedBatchWriter(LogWriter, Protocol):
    """A log that also takes rows encoded by `log.rows.encode_batches`, maybe elsewhere."""

    @property
    def rows_max(self) -> int:
        """The most rows of one encoded batch."""
        ...

    def append_encoded(
        self, batches: list[EncodedBatch], *, producer: str = "", sequence: int = -1
    ) -> Appended:
        """As `append`."""
        ...


class LogReader(Protocol):
    @property
    def schema(self) -> Any: ...
    def earliest(self) -> int: ...
    def head(self) -> Position: ...
    def clock(self, offset: int) -> int:
        """Largest event time of all offsets below `offset`, CLOCK_NONE for none."""
        ...

    def read(self, start: int, end: int, columns: list[str] | None = None) -> Iterator[LogBatch]:
        """Offsets `start` up to and without `end`, cut exactly; else OutOfRange."""
        ...

    def wait(self, offset: int, timeout_s: float) -> bool:
        """True as soon as the head is beyond `offset`, False after the timeout."""
        ...

    def close(self) -> None: ...
