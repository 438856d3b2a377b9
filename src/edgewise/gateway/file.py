"""Files as a source: lines of CSV, JSON or text, followed as they grow; Parquet by row groups.

How far a file was read is the producer's sequence in the log itself, written with the events. So
a restart goes on exactly behind the last durable line, and no line is taken twice. A file is known
by its inode and its first line (with a header: the first two), whatever its name; one that became
shorter starts again from its top.
"""

from __future__ import annotations

import asyncio
import glob
import logging
import os
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

import pyarrow as pa
import pyarrow.parquet as pq

from edgewise.errors import SetupError
from edgewise.event.clock import Clock
from edgewise.event.schema import Schema
from edgewise.gateway.admit import Admitted
from edgewise.gateway.feed import Feed
from edgewise.gateway.refusal import Refused, refused_body
from edgewise.gateway.spec import MapSpec, SourceSpec
from edgewise.log.api import LogWriter

logger = logging.getLogger(__name__)
CHUNK_BYTES = 1024 * 1024  # also the longest line
FILES_MAX = 1024
GENERATIONS_MAX = 1000  # how often one file may be cut short
ROWS_MAX = 32 * 1024  # of Parquet in one append
FOOTER_BYTES = 4096
STEPS_MAX = 256  # chunks of one file before the next has its turn
POLL_S = 0.1


@dataclass(slots=True)
class _Tail:
    """Where we are in one file."""

    path: Path
    producer: str
    position: int
    inode: int
    header: bytes = b""
    done: bool = False
    skipping: bool = False  # in the middle of a line that is too long


class FileSource:
    def __init__(self, spec: SourceSpec, schema: Schema, writer: LogWriter, clock: Clock) -> None:
        options = spec.options
        self._pattern = options["path"]
        self._follow = options["follow"] == "true"
        self._at_end = options["from"] == "end"
        self._parquet = options["format"] == "parquet"
        self._header = spec.map.options.get("header", "false") == "true"
        self._each = spec.map.type == "text" and not spec.map.options
        self._feed = Feed(replace(spec, map=self._line_map(spec.map)), schema, writer, clock)
        self.stats = self._feed.stats
        self._tails: dict[str, _Tail] = {}
        self._complained: set[str] = set()
        self._task: asyncio.Task[None] | None = None

    def _line_map(self, spec: MapSpec) -> MapSpec:
        if self._parquet:
            return MapSpec()
        if spec.type == "json":
            return replace(spec, options={**spec.options, "framing": "lines"})
        return spec

    async def start(self) -> None:
        if not self._follow and not self._paths():
            raise SetupError(f"no file matches '{self._pattern}'; correct path, or follow='true'")
        self._task = self._feed.watch(asyncio.create_task(self._run()))

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
            self._task = None
        await self._feed.close()

    async def finished(self) -> None:
        """Returns when every file was read to its end; never where files are followed."""
        if self._task is not None:
            await self._task

    async def _run(self) -> None:
        while True:
            busy = False
            for path in self._paths():
                for _ in range(STEPS_MAX):
                    if not await self._step(path):
                        break
                    busy = True
            if not busy:
                if not self._follow:
                    return
                await asyncio.sleep(POLL_S)

    def _paths(self) -> list[str]:
        return sorted(glob.glob(self._pattern))[:FILES_MAX]  # noqa: PTH207  a user's pattern

    async def _step(self, path: str) -> bool:
        """Take the next chunk of a file; False where there is none now."""
        try:
            tail = self._tails.get(path)
            if tail is None or _replaced(tail):
                tail = await asyncio.to_thread(self._open, Path(path))
                if tail is None:
                    self._tails.pop(path, None)
                    return False
                self._tails[path] = tail
            if tail.done:
                return False
            read = self._next_rows if self._parquet else self._next_lines
            found = await asyncio.to_thread(read, tail)
        except (OSError, pa.ArrowException) as bad:
            if path not in self._complained:
                logger.warning("source file: %s: %s; it is tried again", path, bad)
            self._complained.add(path)
            self._tails.pop(path, None)
            return False
        if found is None:
            return False
        events, position = found
        if events is not None:
            await self._feed.append(events, producer=tail.producer, sequence=position)
        tail.position = position
        return True

    def _open(self, path: Path) -> _Tail | None:
        with path.open("rb") as file:
            status = os.fstat(file.fileno())
            mark, header = self._mark(file, status.st_size)
        if mark is None:
            return None
        for generation in range(GENERATIONS_MAX):
            producer = f"file:{status.st_dev}:{status.st_ino}:{mark:08x}:{generation}"
            known = self._feed.writer.last_sequence(producer)
            if known <= status.st_size or self._parquet:
                break
        begin = status.st_size if self._at_end and not self._parquet else len(header)
        position = known if known >= 0 else begin
        return _Tail(path, producer, position, status.st_ino, header)

    def _mark(self, file: IO[bytes], size: int) -> tuple[int | None, bytes]:
        """What tells this file from one that gets its inode later, and its header."""
        if self._parquet:
            file.seek(max(0, size - FOOTER_BYTES))
            return zlib.crc32(file.read(FOOTER_BYTES)), b""
        first = file.readline(CHUNK_BYTES)
        second = file.readline(CHUNK_BYTES) if self._header else b"\n"
        if self._follow and not (first.endswith(b"\n") and second.endswith(b"\n")):
            return None, b""  # not even one line: it is nobody yet
        return zlib.crc32(first + second), first if self._header else b""

    def _next_lines(self, tail: _Tail) -> tuple[Admitted | None, int] | None:
        with tail.path.open("rb") as file:
            file.seek(tail.position)
            chunk = file.read(CHUNK_BYTES)
        whole = chunk.rfind(b"\n") + 1
        if tail.skipping and whole:
            tail.skipping = False
            return None, tail.position + chunk.index(b"\n") + 1
        if not whole and len(chunk) == CHUNK_BYTES:
            if not tail.skipping:
                reason = f"a line is longer than {CHUNK_BYTES} bytes"
                self._feed.refuse(refused_body(413, "too_large", reason, at="line"))
            tail.skipping = True
            return None, tail.position + CHUNK_BYTES
        if not whole and not self._follow:
            whole = len(chunk)  # the last line of a file that nobody writes any more
        if not whole:
            return None
        return self._lines(tail.header, chunk[:whole]), tail.position + whole

    def _lines(self, header: bytes, chunk: bytes) -> Admitted | None:
        if not chunk.strip():
            return None
        if not self._each:
            got = self._feed.attempt(header + chunk)
            if not isinstance(got, Refused):
                return got
        # One bad line must not take the others with it.
        return self._feed.read_each(header + line for line in _nonempty(chunk))

    def _next_rows(self, tail: _Tail) -> tuple[Admitted | None, int] | None:
        with pq.ParquetFile(tail.path) as file:
            position = 0
            for batch in file.iter_batches(batch_size=ROWS_MAX):
                end = position + batch.num_rows
                if end > tail.position:
                    rest = batch.slice(max(0, tail.position - position))
                    return self._feed.read_table(pa.Table.from_batches([rest])), end
                position = end
        tail.done = True
        return None


def _nonempty(chunk: bytes) -> Iterator[bytes]:
    return (line.rstrip(b"\r") for line in chunk.split(b"\n") if line.strip())


def _replaced(tail: _Tail) -> bool:
    """Whether another file has this path now, or this one was cut short."""
    try:
        status = tail.path.stat()
    except FileNotFoundError:
        return True
    return status.st_ino != tail.inode or (not tail.done and status.st_size < tail.position)
