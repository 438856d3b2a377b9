"""What a kernel takes and gives. A kernel is a fragment compiled to Python source and loaded.

Input is columnar, one run of events of one stream at a time, in order; inside it is event at a
time. The rows that come out do not depend on how the input was cut into runs.

Order. Every output row carries the place it has in the one true order of the app, so that many
partitions of one fragment merge back into what a single kernel would have given:

    (clock, phase, offset, seq)

`clock` is the app's time when the row was made; `phase` is 0 for rows made by a timer (its due
time is the clock) and 1 for rows made by an event; `offset` is the place in the input of the event
that caused the row (for a timer: of the event that armed it); `seq` counts rows within one cause.
Timers due at or before an event's time fire before the event is handed on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from typing import Any, Protocol

from edgewise.event.event import Kind


@dataclass(slots=True)
class Run:
    """Events of one stream as columns of equal length."""

    stream: str
    ts: Sequence[int]  # event time, ms
    columns: Sequence[Sequence[Any]]  # one per attribute, in the order of the schema
    offset: Sequence[int]  # place in the merged input of the app
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
    kind: Kind
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
        streams, *places, data = zip(*rows, strict=True)
        columns: list[Any] = list(zip(*data, strict=True))
        return cls(streams[0], *places, columns)  # type: ignore[call-arg]

    def __len__(self) -> int:
        return len(self.ts)

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """The fields of `OutRow`, row by row."""
        places = (self.clock, self.phase, self.offset, self.seq, self.ts, self.at, self.kind)
        return zip(repeat(self.stream), *places, zip(*self.columns, strict=True), strict=False)


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


class Kernel(Protocol):
    """State belongs to keys; a fragment without a key has the single key ()."""

    source: str
    stats: KernelStats

    def feed(self, run: Run) -> None: ...
    def advance(self, clock: int, at: int) -> None:
        """Time moves without an event: fire every timer due at or before `clock`."""
        ...

    def take(self) -> list[OutRow]:
        """The rows made since the last call, in order."""
        ...

    def take_columns(self) -> list[OutColumns]:
        """The same rows as columns, by stream; their places say their order."""
        ...

    def changed(self) -> Iterable[tuple[bytes, bytes | None]]:
        """(key, state) of keys touched since the last call; None: the key is empty and gone."""
        ...

    def restore(self, states: Iterable[tuple[bytes, bytes]]) -> None:
        """Into a fresh kernel. StateError if they belong to another query or version."""
        ...
