"""Events that come twice, told apart by an attribute: the log keeps the first.

    @source(type='mqtt', ..., dedup='eventId', dedup.bound='100000')

The memory is of the stream, not of a door: an event whose id is among the last `bound` ids of the
log is dropped, whichever way it comes. When a node starts, the memory is filled from the end of
the log, so a restart forgets nothing that the log still has. An event without an id (null) is
never dropped.

An id counts as known once its event is durable. One that comes while the first is still on its
way waits for it: acknowledged earlier, both could be lost.
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
from edgewise.event.event import Kind
from edgewise.event.position import Position
from edgewise.gateway.spec import Dedup
from edgewise.log.api import Appended, LogReader, LogWriter

REFILL_ROWS = 64 * 1024  # read from the log at once, newest first


class Recent:
    """The last `bound` ids, in the order they came first."""

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
class Thinned(Appended):
    """Only the rows where `kept` is true were appended."""

    kept: Any = None  # numpy booleans, one for each row that was given


class DedupWriter:
    """A writer that appends each id once. All doors of a stream share it."""

    def __init__(self, writer: LogWriter, dedup: Dedup) -> None:
        self._writer = writer
        self._at = writer.schema.get_field_index(dedup.attribute)
        self._recent = Recent(dedup.bound)
        self._coming: set[Any] = set()  # on their way to the disk
        self._changed = threading.Condition()

    @classmethod
    def open(cls, writer: LogWriter, reader: LogReader, dedup: Dedup) -> DedupWriter:
        made = cls(writer, dedup)
        made._recent.add(last_keys(reader, dedup))
        return made

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
            got = self._append(rows, kept, producer, sequence)
            stored = not got.duplicate
        finally:
            with self._changed:
                self._coming.difference_update(fresh)
                if stored:
                    self._recent.add(fresh)
                self._changed.notify_all()
        return got

    def _claim(self, keys: Sequence[Any]) -> tuple[Any, dict[Any, None]]:
        """Which rows are new, and their ids, which nobody else appends until we are done."""
        with self._changed:
            while not self._coming.isdisjoint(keys):
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
            self._coming.update(fresh)
        return kept, fresh

    def _append(self, rows: Any, kept: Any, producer: str, sequence: int) -> Appended:
        if kept.all():
            return self._writer.append(rows, producer=producer, sequence=sequence)
        rest = rows.filter(pa.array(kept))
        # A sequence is remembered by the log even where none of its rows is new.
        got = self._writer.append(rest, producer=producer, sequence=sequence)
        return got if got.duplicate else Thinned(got.first, got.end, kept=kept)

    def last_sequence(self, producer: str) -> int:
        return self._writer.last_sequence(producer)

    def retain(self, now_ms: int) -> int:
        return self._writer.retain(now_ms)

    def close(self) -> None:
        self._writer.close()


def last_keys(reader: LogReader, dedup: Dedup) -> list[Any]:
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
                if kind != Kind.MARK and key is not None:
                    newest_first[key] = None
        end = start
    return list(newest_first)[: dedup.bound][::-1]
