"""Read a log and wait while its broker is away, for readers that tail a log and must not end.

Only errors that may pass are waited out. A damaged log or an offset that is gone is raised at
once: waiting would not help. Feeds of the edge and sinks use it.
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


class RetryingReader:
    """A reader around another one. `close`, from any thread, ends the waiting."""

    def __init__(self, reader: LogReader) -> None:
        self._reader = reader
        self._closed = threading.Event()

    @property
    def schema(self) -> Any:
        return self._reader.schema

    def earliest(self) -> int:
        return self._retry(self._reader.earliest)

    def head(self) -> Position:
        return self._retry(self._reader.head)

    def clock(self, offset: int) -> int:
        return self._retry(lambda: self._reader.clock(offset))

    def wait(self, offset: int, timeout_s: float) -> bool:
        """Its callers call again anyway, so it never waits longer than `timeout_s`."""
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

    def _retry(self, request: Callable[[], T]) -> T:
        while True:
            try:
                return request()
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
