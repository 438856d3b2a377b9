"""Read the rows of a log and deliver them, from where a sink left off.

A sink is a transport and a `SinkReader`, as a source is a transport and a `SourceWriter`. The
cursor is the offset of the next row to deliver. At-least-once delivery saves it after the other
side has the rows, at-most-once before they are sent. Used by all sinks.
"""

from __future__ import annotations

import asyncio
import logging
import struct
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from edgewise.errors import OutOfRange
from edgewise.event.event import EventKind
from edgewise.event.schema import Schema
from edgewise.gateway.renderers import build_renderer
from edgewise.gateway.spec import Guarantee, SinkSpec
from edgewise.gateway.stats import ConnectorStats
from edgewise.gateway.task_failures import report_failure
from edgewise.log.api import LogReader

logger = logging.getLogger(__name__)
ROWS_MAX = 1024  # read from the log at once
WAIT_S = 0.5
LOG_EVERY = 1000  # unmappable rows between two lines in the program's log
RETRY_S = (0.1, 0.5, 2.0)


class SinkCursor(Protocol):
    """Remembers how far a sink has delivered."""

    def load(self) -> int:
        """The offset of the next row; -1 where none was saved."""
        ...

    def save(self, offset: int) -> None: ...


class FileCursor:
    """A small file that is replaced as a whole: a crash leaves the old number or the new one."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def load(self) -> int:
        try:
            return int(self._path.read_text())
        except FileNotFoundError:
            return -1

    def save(self, offset: int) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        new = self._path.with_suffix(".new")
        new.write_text(str(offset))
        new.replace(self._path)


@dataclass(frozen=True, slots=True)
class Message:
    """A row to deliver. Its offset is never used again, so a receiver can drop repeats."""

    offset: int
    payload: bytes
    row: Sequence[Any]
    ts: int = 0  # event time


class Undelivered(Exception):
    """The other side did not accept the messages; they are sent again."""


Deliver = Callable[[list[Message]], Awaitable[None]]


class SinkReader:
    """Calls `deliver`, which returns when the other side has the messages, or Undelivered."""

    def __init__(
        self, spec: SinkSpec, schema: Schema, reader: LogReader, cursor: SinkCursor
    ) -> None:
        self.stats = ConnectorStats()
        self._name = f"sink {spec.type} of {spec.stream}"
        self._stream = spec.stream
        self._share = spec.share
        self._render = build_renderer(spec.map, schema)
        self._reader = reader
        self._cursor = cursor
        self._drops = spec.options.get("on.error") == "log"
        self._save_first = spec.options.get("delivery") == Guarantee.AT_MOST_ONCE.value
        self._task: asyncio.Task[None] | None = None

    def start(self, deliver: Deliver) -> None:
        self._task = report_failure(
            asyncio.create_task(self._run(deliver)), self._name, self.stats
        )

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
            self._task = None

    async def _run(self, deliver: Deliver) -> None:
        offset = max(self._cursor.load(), 0)
        while True:
            if not await asyncio.to_thread(self._reader.wait, offset, WAIT_S):
                continue
            try:
                messages, end = await asyncio.to_thread(self._read, offset)
            except OutOfRange:
                earliest = self._reader.earliest()
                logger.warning(
                    "%s: offsets %d to %d were removed before they were delivered",
                    self._name, offset, earliest,
                )  # fmt: skip
                offset = earliest
                continue
            if self._save_first:
                self._cursor.save(end)
            if messages:
                await self._deliver(deliver, messages)
            if not self._save_first:
                self._cursor.save(end)
            offset = end

    def _read(self, offset: int) -> tuple[list[Message], int]:
        end = min(self._reader.head().offset, offset + ROWS_MAX)
        messages = []
        for batch in self._reader.read(offset, end):
            columns = [column.to_pylist() for column in batch.rows.columns]
            ts, _at, kinds, *attributes = columns
            for index, row in enumerate(zip(*attributes, strict=True)):
                offset = batch.first + index
                if self._share is not None and not self._share.takes(offset, row):
                    continue
                payload = self._render_row(offset, ts[index], row, kinds[index])
                if payload is not None:
                    messages.append(Message(offset, payload, row, ts[index]))
        return messages, end

    def _render_row(self, offset: int, ts: int, row: Sequence[Any], kind: int) -> bytes | None:
        if kind != EventKind.CURRENT:
            return None
        try:
            return self._render(ts, row)
        except (ValueError, TypeError, LookupError, ArithmeticError, struct.error) as error:
            # One row that the layout or schema cannot hold must not stop the others.
            count = self.stats.refused[self._stream, "unmappable"] = (
                self.stats.refused[self._stream, "unmappable"] + 1
            )
            if count % LOG_EVERY == 1:
                logger.warning("%s cannot map offset %d: %s", self._name, offset, error)
            return None

    async def _deliver(self, deliver: Deliver, messages: list[Message]) -> None:
        attempts = 0
        while True:
            try:
                await deliver(messages)
            except Undelivered as error:
                if self._save_first or self._drops:
                    if self._drops:
                        count = len(messages)
                        logger.warning("%s drops %d rows: %s", self._name, count, error)
                    self.stats.refused[self._stream, "undelivered"] += len(messages)
                    return
                if attempts == 0:
                    logger.warning("%s: %s; retrying", self._name, error)
                await asyncio.sleep(RETRY_S[min(attempts, len(RETRY_S) - 1)])
                attempts += 1
                continue
            self.stats.accepted[self._stream] += len(messages)
            return
