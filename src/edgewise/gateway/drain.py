"""The rows of a log to the world, from where a sink left off: the twin of `feed`.

A sink is a transport and a drain. The cursor is the offset of the next row to deliver. At least
once saves it after the other side has the rows, at most once before they are sent.
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
from edgewise.event.event import Kind
from edgewise.event.schema import Schema
from edgewise.gateway.renderers import renderer_of
from edgewise.gateway.spec import Guarantee, SinkSpec
from edgewise.gateway.stats import DoorStats
from edgewise.gateway.watch import watch
from edgewise.log.api import LogReader

logger = logging.getLogger(__name__)
ROWS_MAX = 1024  # read from the log at once
WAIT_S = 0.5
SAY_EVERY = 1000  # unmappable rows between two lines in the program's log
RETRY_S = (0.1, 0.5, 2.0)


class Cursor(Protocol):
    """Where a sink remembers how far it came."""

    def load(self) -> int:
        """The offset of the next row, -1 when nothing was saved."""
        ...

    def save(self, offset: int) -> None: ...


class FileCursor:
    """A small file, replaced as a whole: a crash leaves the old number or the new one."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def load(self) -> int:
        try:
            return int(self._path.read_text())
        except FileNotFoundError:
            return -1

    def save(self, offset: int) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        young = self._path.with_suffix(".new")
        young.write_text(str(offset))
        young.replace(self._path)


@dataclass(frozen=True, slots=True)
class Message:
    """`offset` of its row names it for ever: a receiver may drop what it has seen."""

    offset: int
    payload: bytes
    row: Sequence[Any]


class Undelivered(Exception):
    """The other side did not take the messages; they are tried again."""


Deliver = Callable[[list[Message]], Awaitable[None]]


class Drain:
    """`deliver` returns when the other side has the messages, or raises Undelivered."""

    def __init__(self, spec: SinkSpec, schema: Schema, reader: LogReader, cursor: Cursor) -> None:
        self.stats = DoorStats()
        self._name = f"sink {spec.type} of {spec.stream}"
        self._stream = spec.stream
        self._render = renderer_of(spec.map, schema)
        self._reader = reader
        self._cursor = cursor
        self._before = spec.options.get("delivery") == Guarantee.AT_MOST_ONCE.value
        self._task: asyncio.Task[None] | None = None

    def start(self, deliver: Deliver) -> None:
        self._task = watch(asyncio.create_task(self._run(deliver)), self._name, self.stats)

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
            if self._before:
                self._cursor.save(end)
            if messages:
                await self._deliver(deliver, messages)
            if not self._before:
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
                payload = self._payload(offset, ts[index], row, kinds[index])
                if payload is not None:
                    messages.append(Message(offset, payload, row))
        return messages, end

    def _payload(self, offset: int, ts: int, row: Sequence[Any], kind: int) -> bytes | None:
        if kind != Kind.CURRENT:
            return None
        try:
            return self._render(ts, row)
        except (ValueError, TypeError, LookupError, ArithmeticError, struct.error) as bad:
            # One row that a fixed layout or a foreign schema cannot hold must not stop the rest.
            count = self.stats.refused[self._stream, "unmappable"] = (
                self.stats.refused[self._stream, "unmappable"] + 1
            )
            if count % SAY_EVERY == 1:
                logger.warning("%s cannot map offset %d: %s", self._name, offset, bad)
            return None

    async def _deliver(self, deliver: Deliver, messages: list[Message]) -> None:
        tries = 0
        while True:
            try:
                await deliver(messages)
            except Undelivered as bad:
                if self._before:
                    self.stats.refused[self._stream, "undelivered"] += len(messages)
                    return
                if tries == 0:
                    logger.warning("%s: %s; it is tried again", self._name, bad)
                await asyncio.sleep(RETRY_S[min(tries, len(RETRY_S) - 1)])
                tries += 1
                continue
            self.stats.accepted[self._stream] += len(messages)
            return
