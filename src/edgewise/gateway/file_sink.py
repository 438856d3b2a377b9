"""Write rows to a file as a sink: one line for each row, each row once.

What was delivered and how long the file was then are saved together, in `<path>.position`, after
the lines are on the disk. A start truncates the file to that length: lines of a batch that a crash
left behind are removed and written again. Loaded by `connectors`.
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from edgewise.errors import SetupError
from edgewise.event.schema import Schema
from edgewise.gateway.sink_reader import Message, SinkCursor, SinkReader, Undelivered
from edgewise.gateway.spec import MapSpec, SinkSpec
from edgewise.log.api import LogReader


class _FileCursor:
    """The cursor of a file: an offset, and the length of the file at that offset."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._position_file = path.with_name(path.name + ".position")
        self._saved = -1

    def load(self) -> int:
        return self._saved

    def truncate(self, fd: int) -> None:
        """Truncate the file to the length of the last save."""
        try:
            offset, length = map(int, self._position_file.read_text().split())
        except FileNotFoundError:
            offset, length = -1, 0
        size = os.fstat(fd).st_size
        if offset < 0 and size:
            raise SetupError(f"{self._path} exists and was not written by this sink; move it away")
        if size < length:
            raise SetupError(
                f"{self._path} has {size} bytes and should have {length}: another program "
                f"changed it; move it and {self._position_file.name} away"
            )
        os.ftruncate(fd, length)
        self._saved = offset

    def save(self, offset: int) -> None:
        new = self._position_file.with_name(self._position_file.name + ".new")
        new.write_text(f"{offset} {self._path.stat().st_size}")
        new.replace(self._position_file)


class FileSink:
    def __init__(
        self, spec: SinkSpec, schema: Schema, reader: LogReader, cursor: SinkCursor
    ) -> None:
        del cursor  # the file has its own, since both must be saved at once
        self._header = self._build_header(spec.map, schema)
        self._path = Path(spec.options["path"])
        self._cursor = _FileCursor(self._path)
        self._reader = SinkReader(spec, schema, reader, self._cursor)
        self.stats = self._reader.stats
        self._fd = -1

    @staticmethod
    def _build_header(spec: MapSpec, schema: Schema) -> bytes:
        if spec.type != "csv":
            return b""
        names = spec.attributes or schema.names
        delimiter = spec.options.get("delimiter", ",").replace("\\t", "\t")
        return delimiter.join(names).encode() + b"\n"

    async def start(self) -> None:
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC)
        except OSError as error:
            raise SetupError(f"{self._path} cannot be written: {error.strerror}") from error
        try:
            self._cursor.truncate(self._fd)
        except SetupError:
            os.close(self._fd)
            self._fd = -1
            raise
        self._reader.start(self._deliver)

    async def stop(self) -> None:
        await self._reader.stop()
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    async def _deliver(self, messages: list[Message]) -> None:
        await asyncio.to_thread(self._write, messages)

    def _write(self, messages: list[Message]) -> None:
        before = os.fstat(self._fd).st_size
        lines = b"".join(m.payload.replace(b"\n", b" ") + b"\n" for m in messages)
        data = lines if before else self._header + lines
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(self._fd, view) :]
            os.fsync(self._fd)
        except OSError as error:
            os.ftruncate(self._fd, before)
            raise Undelivered(f"{self._path}: {error.strerror}") from error
