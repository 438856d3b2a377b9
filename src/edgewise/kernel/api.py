"""Define what a kernel takes and gives: runs of events as columns, rows in order.

Input is columnar, one run of events of one stream at a time, in order; inside it is event at a
time. The rows that come out do not depend on how the input was cut into runs. Used by all engines.

Order of output rows. A fragment may run as many kernels, each with some of the keys. Every row
carries its order position, so that their rows merge into what a single kernel would have given:

    (clock, phase, offset, seq)

    clock    the app's time when the row was made
    phase    0: a timer made it (its due time is the clock); 1: an event made it
    offset   of the event that caused the row; for a timer, of the event that armed it
    seq      counts the rows of one cause

Timers due at or before an event's time fire before the event is handled:

    event at 1000, offset 7, arms a timer for 2000        row (1000, 1, 7, 0)
    event at 2500, offset 8                               row (2000, 0, 7, 0) of the timer,
                                                     then row (2500, 1, 8, 0) of the event
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from typing import Any

from edgewise.event.event import EventKind


@dataclass(slots=True)
class EventRun:
    """Events of one stream as columns of equal length."""

    stream: str
    ts: Sequence[int]  # event time, ms
    columns: Sequence[Sequence[Any]]  # one per attribute, in the order of the schema
    offset: Sequence[int]  # in the merged input of the app
    clock: Sequence[int]  # largest ts up to and with this event, over the whole app
    at: Sequence[int]  # capture time, us


@dataclass(slots=True)
class OutRow:
    stream: str
    clock: int
    phase: int
    offset: int
    seq: int
    ts: int
    at: int  # capture time of the event that caused it, us
    kind: EventKind
    data: tuple[Any, ...]


@dataclass(slots=True)
class OutColumns:
    """Rows of one stream as columns of equal length, each in the order of the rows."""

    stream: str
    clock: Sequence[int]
    phase: Sequence[int]
    offset: Sequence[int]
    seq: Sequence[int]
    ts: Sequence[int]
    at: Sequence[int]
    kind: Sequence[int]
    columns: Sequence[Sequence[Any]]

    @classmethod
    def of(cls, rows: Sequence[tuple[Any, ...]]) -> OutColumns:
        """Rows of one stream, as `rows` gives them; at least one."""
        streams, *positions, data = zip(*rows, strict=True)
        columns: list[Any] = list(zip(*data, strict=True))
        return cls(streams[0], *positions, columns)  # type: ignore[call-arg]

    def __len__(self) -> int:
        return len(self.ts)

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """The fields of `OutRow`, row by row."""
        fields = (self.clock, self.phase, self.offset, self.seq, self.ts, self.at, self.kind)
        return zip(repeat(self.stream), *fields, zip(*self.columns, strict=True), strict=False)


@dataclass(slots=True)
class KernelStats:
    """What people watch."""

    events_in: int = 0
    rows_out: int = 0
    keys: int = 0
    faults: dict[str, int] = field(default_factory=dict)  # events that failed, by stream
    reasons: dict[str, str] = field(default_factory=dict)  # why the last of them did
    late: dict[str, int] = field(default_factory=dict)  # events beyond the lateness, by stream
    dropped: dict[str, int] = field(default_factory=dict)  # for @state, by query or partition
