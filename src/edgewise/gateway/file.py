"""Read files as a source: growing files of lines, whole files, or Parquet.

How far a file was read is the producer's sequence in the log itself, written with the events. So a
restart continues exactly after the last durable line, and no line is read twice. A file is
identified by its inode and its first line (with a header: the first two), whatever its name; a
file that became shorter is read again from its beginning. Loaded by `connectors`.
"""

from __future__ import annotations

import asyncio
import glob
import logging
import os
import time
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

import pyarrow as pa
import pyarrow.parquet as pq

from edgewise.errors import SetupError
from edgewise.event.clock import SystemClock
from edgewise.event.schema import Schema
from edgewise.gateway.admit import BODY_BYTES_MAX, AdmittedEvents
from edgewise.gateway.refusal import Refusal, refuse_request
from edgewise.gateway.source_writer import SourceWriter
from edgewise.gateway.spec import MapSpec, SourceSpec
from edgewise.log.api import LogWriter

logger = logging.getLogger(__name__)
CHUNK_BYTES = 1024 * 1024  # also the longest line
FILES_MAX = 1024
GENERATIONS_MAX = 1000  # how often one file may become shorter
ROWS_MAX = 32 * 1024  # of Parquet in one append
FOOTER_BYTES = 4096
STEPS_MAX = 256  # chunks of one file before the next file is read
POLL_S = 0.1
SETTLED_S = 1.0  # a file that is read as a whole was not written for this long


@dataclass(slots=True)
class _OpenFile:
    """One file and how far it was read."""

    path: Path
    producer: str
    position: int
    inode: int
    header: bytes = b""
    done: bool = False
    skipping: bool = False  # inside a line that is too long


class FileSource:
    def __init__(
        self, spec: SourceSpec, schema: Schema, writer: LogWriter, clock: SystemClock
    ) -> None:
        options = spec.options
        self._pattern = options["path"]
        self._follow = options["follow"] == "true"
        self._at_end = options["from"] == "end"
        self._parquet = options["format"] == "parquet"
        self._whole = options["format"] == "whole"
        self._header = spec.map.options.get("header", "false") == "true"
        # Only these mappings take many lines at once; for others a line is a payload.
        self._line_by_line = not (spec.map.type in {"json", "csv"} or "regex" in spec.map.options)
        self._ingest = SourceWriter(
            replace(spec, map=self._line_map(spec.map)), schema, writer, clock
        )
        self.stats = self._ingest.stats
        self._open_files: dict[str, _OpenFile] = {}
        self._warned: set[str] = set()
        self._task: asyncio.Task[None] | None = None

    def _line_map(self, spec: MapSpec) -> MapSpec:
        if self._parquet:
            return MapSpec()
        if spec.type == "json" and not self._whole:
            return replace(spec, options={**spec.options, "framing": "lines"})
        return spec

    async def start(self) -> None:
        if not self._follow and not self._paths():
            raise SetupError(f"no file matches '{self._pattern}'; correct path, or follow='true'")
        self._task = self._ingest.supervise(asyncio.create_task(self._run()))

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
            self._task = None
        await self._ingest.close()

    async def finished(self) -> None:
        """Returns when every file was read to its end; never where files are followed."""
        if self._task is not None:
            await self._task

    async def _run(self) -> None:
        while True:
            busy = False
            for path in self._paths():
                for _ in range(STEPS_MAX):
                    if not await self._read_next(path):
                        break
                    busy = True
            if not busy:
                if not self._follow:
                    return
                await asyncio.sleep(POLL_S)

    def _paths(self) -> list[str]:
        return sorted(glob.glob(self._pattern))[:FILES_MAX]  # noqa: PTH207  a user's pattern

    async def _read_next(self, path: str) -> bool:
        """Read the next chunk of a file; False where there is none now."""
        try:
            file_state = self._open_files.get(path)
            if file_state is None or _was_replaced(file_state):
                file_state = await asyncio.to_thread(self._open, Path(path))
                if file_state is None:
                    self._open_files.pop(path, None)
                    return False
                self._open_files[path] = file_state
            if file_state.done:
                return False
            lines = self._next_whole if self._whole else self._next_lines
            read = self._next_rows if self._parquet else lines
            found = await asyncio.to_thread(read, file_state)
        except (OSError, pa.ArrowException) as error:
            if path not in self._warned:
                logger.warning("source file: %s: %s; retrying", path, error)
            self._warned.add(path)
            self._open_files.pop(path, None)
            return False
        if found is None:
            return False
        events, position = found
        if events is not None:
            await self._ingest.append(events, producer=file_state.producer, sequence=position)
        file_state.position = position
        return True

    def _open(self, path: Path) -> _OpenFile | None:
        with path.open("rb") as file:
            status = os.fstat(file.fileno())
            checksum, header = self._identify(file, status.st_size)
        if checksum is None:
            return None
        for generation in range(GENERATIONS_MAX):
            producer = f"file:{status.st_dev}:{status.st_ino}:{checksum:08x}:{generation}"
            known = self._ingest.writer.last_sequence(producer)
            if known <= status.st_size or self._parquet:
                break
        if self._whole and self._follow and time.time() - status.st_mtime < SETTLED_S:
            return None  # it may still be written
        begin = status.st_size if self._at_end and not self._parquet else len(header)
        position = known if known >= 0 else begin
        return _OpenFile(path, producer, position, status.st_ino, header)

    def _identify(self, file: IO[bytes], size: int) -> tuple[int | None, bytes]:
        """A checksum that identifies the file, should its inode be used again; and its header."""
        if self._parquet or self._whole:
            file.seek(max(0, size - FOOTER_BYTES))
            return zlib.crc32(file.read(FOOTER_BYTES)), b""
        first = file.readline(CHUNK_BYTES)
        second = file.readline(CHUNK_BYTES) if self._header else b"\n"
        if self._follow and not (first.endswith(b"\n") and second.endswith(b"\n")):
            return None, b""  # without a complete line it cannot be identified yet
        return zlib.crc32(first + second), first if self._header else b""

    def _next_lines(self, file_state: _OpenFile) -> tuple[AdmittedEvents | None, int] | None:
        with file_state.path.open("rb") as file:
            file.seek(file_state.position)
            chunk = file.read(CHUNK_BYTES)
        whole = chunk.rfind(b"\n") + 1
        if file_state.skipping and whole:
            file_state.skipping = False
            return None, file_state.position + chunk.index(b"\n") + 1
        if not whole and len(chunk) == CHUNK_BYTES:
            if not file_state.skipping:
                reason = f"a line is longer than {CHUNK_BYTES} bytes"
                self._ingest.refuse(refuse_request(413, "too_large", reason, at="line"))
            file_state.skipping = True
            return None, file_state.position + CHUNK_BYTES
        if not whole and not self._follow:
            whole = len(chunk)  # the last line of a file that does not grow any more
        if not whole:
            return None
        return self._read_lines(file_state.header, chunk[:whole]), file_state.position + whole

    def _read_lines(self, header: bytes, chunk: bytes) -> AdmittedEvents | None:
        if not chunk.strip():
            return None
        if not self._line_by_line:
            got = self._ingest.try_read(header + chunk)
            if not isinstance(got, Refusal):
                return got
        # One error line must not refuse the others.
        return self._ingest.read_each(header + line for line in _split_lines(chunk))

    def _next_whole(self, file_state: _OpenFile) -> tuple[AdmittedEvents | None, int] | None:
        if file_state.position > 0:
            file_state.done = True
            return None
        with file_state.path.open("rb") as file:
            payload = file.read(BODY_BYTES_MAX + 1)
        if len(payload) > BODY_BYTES_MAX:
            reason = f"{file_state.path} is larger than {BODY_BYTES_MAX} bytes"
            self._ingest.refuse(refuse_request(413, "too_large", reason, at="file"))
            return None, len(payload)
        return (self._ingest.read(payload), len(payload)) if payload else None

    def _next_rows(self, file_state: _OpenFile) -> tuple[AdmittedEvents | None, int] | None:
        with pq.ParquetFile(file_state.path) as file:
            position = 0
            for batch in file.iter_batches(batch_size=ROWS_MAX):
                end = position + batch.num_rows
                if end > file_state.position:
                    rest = batch.slice(max(0, file_state.position - position))
                    return self._ingest.read_table(pa.Table.from_batches([rest])), end
                position = end
        file_state.done = True
        return None


def _split_lines(chunk: bytes) -> Iterator[bytes]:
    return (line.rstrip(b"\r") for line in chunk.split(b"\n") if line.strip())


def _was_replaced(file_state: _OpenFile) -> bool:
    """Whether another file has this path now, or this one became shorter."""
    try:
        status = file_state.path.stat()
    except FileNotFoundError:
        return True
    return status.st_ino != file_state.inode or (
        not file_state.done and status.st_size < file_state.position
    )
