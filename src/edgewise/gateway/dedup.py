"""Drop events whose id the log already has.

    @source(type='mqtt', ..., dedup='eventId', dedup.bound='100000')

The ids are remembered by stream, not by source: an event whose id is among the last `bound` ids of
the log is dropped, whichever source brings it. When a node starts, the ids are read from the end
of the log, so a restart forgets nothing that the log still has. An event without an id (null) is
never dropped.

An id is known once its event is durable. An event that arrives while the first one with its id is
still on its way to the disk waits for it: acknowledged earlier, both could be lost.

Used by `node.serve`, which wraps the writer of each stream that declares it.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from edgewise.event.arrow import KIND
from edgewise.event.event import EventKind
from edgewise.event.position import Position
from edgewise.gateway.spec import DedupSpec
from edgewise.log.api import Appended, LogReader, LogWriter

REFILL_ROWS = 64 * 1024  # read from the log at once, newest first


class RecentIds:
    """The last `bound` ids, in the order of their first arrival."""

    def __init__(self, bound: int) -> None:
        self._bound = bound
        self._keys: OrderedDict[Any, None] = OrderedDict()

    def __contains__(self, key: Any) -> bool:
        return key in self._keys

    def __len__(self) -> int:
        return len(self._keys)

    def add(self, keys: Iterable[Any]) -> None:
        self._keys.update(dict.fromkeys(keys))
        while len(self._keys) > self._bound:
            self._keys.popitem(last=False)


@dataclass(frozen=True, slots=True)
class PartlyAppended(Appended):
    """The result of an append that left out rows with known ids."""

    kept: Any = None  # numpy booleans, one per given row: True where it was appended


class DedupWriter:
    """A log writer that appends each id once. All sources of a stream share it."""

    def __init__(self, writer: LogWriter, dedup: DedupSpec) -> None:
        self._writer = writer
        self._at = writer.schema.get_field_index(dedup.attribute)
        self._recent = RecentIds(dedup.bound)
        self._in_flight: set[Any] = set()  # on their way to the disk
        self._changed = threading.Condition()

    @classmethod
    def open(cls, writer: LogWriter, reader: LogReader, dedup: DedupSpec) -> DedupWriter:
        opened = cls(writer, dedup)
        opened._recent.add(read_last_ids(reader, dedup))
        return opened

    @property
    def schema(self) -> Any:
        return self._writer.schema

    @property
    def head(self) -> Position:
        return self._writer.head

    @property
    def remembered(self) -> int:
        return len(self._recent)

    def append(self, rows: Any, *, producer: str = "", sequence: int = -1) -> Appended:
        keys = rows.column(self._at).to_pylist()
        kept, fresh = self._claim(keys)
        stored = False
        try:
            appended = self._append(rows, kept, producer, sequence)
            stored = not appended.duplicate
        finally:
            with self._changed:
                self._in_flight.difference_update(fresh)
                if stored:
                    self._recent.add(fresh)
                self._changed.notify_all()
        return appended

    def _claim(self, keys: Sequence[Any]) -> tuple[Any, dict[Any, None]]:
        """Which rows are new, and their ids; other appends with these ids wait for this one."""
        with self._changed:
            while not self._in_flight.isdisjoint(keys):
                self._changed.wait()
            fresh: dict[Any, None] = {}
            kept = np.ones(len(keys), np.bool_)
            for index, key in enumerate(keys):
                if key is None:
                    continue
                if key in self._recent or key in fresh:
                    kept[index] = False
                else:
                    fresh[key] = None
            self._in_flight.update(fresh)
        return kept, fresh

    def _append(self, rows: Any, kept: Any, producer: str, sequence: int) -> Appended:
        if kept.all():
            return self._writer.append(rows, producer=producer, sequence=sequence)
        rest = rows.filter(pa.array(kept))
        # A sequence is remembered by the log even where none of its rows is new.
        appended = self._writer.append(rest, producer=producer, sequence=sequence)
        return (
            appended
            if appended.duplicate
            else PartlyAppended(appended.first, appended.end, kept=kept)
        )

    def last_sequence(self, producer: str) -> int:
        return self._writer.last_sequence(producer)

    def retain(self, now_ms: int) -> int:
        return self._writer.retain(now_ms)

    def close(self) -> None:
        self._writer.close()


def read_last_ids(reader: LogReader, dedup: DedupSpec) -> list[Any]:
    """The last `bound` ids of a log, oldest first."""
    newest_first: dict[Any, None] = {}
    earliest, end = reader.earliest(), reader.head().offset
    while end > earliest and len(newest_first) < dedup.bound:
        start = max(earliest, end - REFILL_ROWS)
        columns = [KIND, dedup.attribute]
        batches = [b.rows for b in reader.read(start, end, columns)]
        for batch in reversed(batches):
            kinds, keys = (batch.column(name).to_pylist() for name in columns)
            for kind, key in zip(reversed(kinds), reversed(keys), strict=True):
                if kind != EventKind.TICK and key is not None:
                    newest_first[key] = None
        end = start
    return list(newest_first)[: dedup.bound][::-1]
