"""A reader that waits out a broker that is away: for those who tail a log and must not end.

What a log that is damaged or cut says is passed on at once; that would not get better by waiting.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from edgewise.errors import LogCorrupt, LogError, OutOfRange
from edgewise.event.position import Position
from edgewise.log.api import LogBatch, LogReader

logger = logging.getLogger(__name__)
PAUSE_S = 0.5
T = TypeVar("T")


class PatientReader:
    """As the reader it is given. `close`, from any thread, ends the waiting."""

    def __init__(self, reader: LogReader) -> None:
        self._reader = reader
        self._closed = threading.Event()

    @property
    def schema(self) -> Any:
        return self._reader.schema

    def earliest(self) -> int:
        return self._asked(self._reader.earliest)

    def head(self) -> Position:
        return self._asked(self._reader.head)

    def clock(self, offset: int) -> int:
        return self._asked(lambda: self._reader.clock(offset))

    def wait(self, offset: int, timeout_s: float) -> bool:
        """Its callers ask again anyway, so this one does not wait longer than it was told."""
        try:
            return self._reader.wait(offset, timeout_s)
        except LogError as error:
            self._pause_or_raise(error)
            return False

    def read(self, start: int, end: int, columns: list[str] | None = None) -> Iterator[LogBatch]:
        at = start
        while True:
            try:
                for batch in self._reader.read(at, end, columns):
                    yield batch
                    at = batch.first + batch.rows.num_rows
            except LogError as error:
                self._pause_or_raise(error)
            else:
                return

    def _asked(self, question: Callable[[], T]) -> T:
        while True:
            try:
                return question()
            except LogError as error:
                self._pause_or_raise(error)

    def _pause_or_raise(self, error: LogError) -> None:
        if isinstance(error, OutOfRange | LogCorrupt) or self._closed.is_set():
            raise error
        logger.warning("waiting for a log that does not answer: %s", error)
        self._closed.wait(PAUSE_S)

    def close(self) -> None:
        self._closed.set()
        self._reader.close()
