"""Copy a log from one location to another; after an interruption a copy resumes where it stopped.

Each append carries the source offset it ends at as its sequence, so the destination itself
remembers how far the copy came: nothing is copied twice, also when the copy dies between the
append and the answer. `edgewise log copy` uses it.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, Protocol, TextIO

import pyarrow as pa

from edgewise.errors import LogError
from edgewise.log.api import LogReader, LogWriter

ROWS_MAX = 64 * 1024
BYTES_MAX = 16 * 1024 * 1024
_BAR_WIDTH = 30
_REDRAW_S = 0.1
_REDRAW_PLAIN_S = 5.0


class ResumableLogWriter(LogWriter, Protocol):
    def last_sequence(self, producer: str) -> int: ...


def name_copy_producer(name: str) -> str:
    """Name the producer of a copy. A long name keeps its end, which tells more."""
    return f"copy:{name[-150:]}"


def copy_log(
    reader: LogReader,
    writer: ResumableLogWriter,
    name: str,
    *,
    start: int | None = None,
    end: int | None = None,
    progress: Callable[[int, int], None] = lambda _rows, _bytes: None,
) -> tuple[int, int]:
    """Copy offsets `start` to `end` of the source called `name`; return `(from, to)` copied."""
    producer = name_copy_producer(name)
    done = writer.last_sequence(producer)
    first = max(reader.earliest() if start is None else start, done)
    last = reader.head().offset if end is None else end
    if done > last:
        raise LogError(f"{name} was copied up to offset {done} already, beyond {last}")
    if done > 0 and first > done:
        raise LogError(
            f"{name} was copied up to offset {done}, and {done} to {first} are gone from it: "
            "copy to an empty log instead"
        )
    at = first
    for rows in _read_merged(reader, first, last):
        at += rows.num_rows
        writer.append(rows, producer=producer, sequence=at)
        progress(rows.num_rows, rows.nbytes)
    return first, at


def _read_merged(reader: LogReader, start: int, end: int) -> Iterator[Any]:
    """Read small batches as large ones: a copy must not pay an fsync for each of them."""
    waiting: list[Any] = []
    rows = size = 0
    for batch in reader.read(start, end):
        if waiting and (rows + batch.rows.num_rows > ROWS_MAX or size > BYTES_MAX):
            yield _join(waiting)
            waiting, rows, size = [], 0, 0
        waiting.append(batch.rows)
        rows += batch.rows.num_rows
        size += batch.rows.nbytes
    if waiting:
        yield _join(waiting)


def _join(batches: list[Any]) -> Any:
    if len(batches) == 1:
        return batches[0]
    (batch,) = pa.Table.from_batches(batches).combine_chunks().to_batches()
    return batch


class CopyProgress:
    """Show progress: a bar on a terminal, a line every few seconds in a file."""

    def __init__(
        self,
        total: int,
        out: TextIO | None = None,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._total = total
        self._out = out or sys.stderr
        self._now_s = now_s
        self._start = self._drawn = now_s()
        self._rows = self._bytes = 0
        self._live = self._out.isatty()

    def add(self, rows: int, size: int) -> None:
        self._rows += rows
        self._bytes += size
        pause = _REDRAW_S if self._live else _REDRAW_PLAIN_S
        if self._now_s() - self._drawn >= pause:
            self.draw()

    def draw(self) -> None:
        self._drawn = self._now_s()
        self._out.write(
            f"\r{self.format_text()}\x1b[K" if self._live else f"{self.format_text()}\n"
        )
        self._out.flush()

    def close(self) -> None:
        self.draw()
        if self._live:
            self._out.write("\n")

    def format_text(self) -> str:
        taken = max(self._now_s() - self._start, 1e-6)
        share = self._rows / self._total if self._total else 1.0
        bar = "#" * round(share * _BAR_WIDTH)
        left = taken / share - taken if share else 0.0
        return (
            f"[{bar:<{_BAR_WIDTH}}] {share:4.0%} {self._rows} of {self._total} events, "
            f"{self._bytes / taken / 1e6:.1f} MB/s, {left:.0f} s left"
        )
