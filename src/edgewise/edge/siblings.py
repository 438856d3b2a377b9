"""Several edges on one port, one per processor: the kernel spreads the connections over them.

Each reads the log by itself. What clients publish is decided by the first one alone, so that
everybody sees the same order: the others pass it on, wait for the answer, and repeat whatever the
first one tells. The first one's `Head` and the others' `Limb` talk over a Unix socket in a
directory only we can enter; a frame is its size in four bytes and MessagePack.

A limb that loses its head ends: whoever started it starts it again, and it begins with a copy.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from edgewise.edge.puts import Told, history, put, repeat, told
from edgewise.edge.server import Edge
from edgewise.edge.session import Session
from edgewise.errors import ProtocolError
from edgewise.wire.codes import Code
from edgewise.wire.frames import Publish

BACKLOG_BYTES_MAX = 64 * 1024 * 1024  # a limb that is further behind starts anew
WAITING_MAX = 10_000  # of one limb, for the head's answer
FRAME_BYTES_MAX = 16 * 1024 * 1024

_log = logging.getLogger("edgewise.edge")


class Put(Struct, array_like=True, frozen=True, tag="put"):
    number: int
    frame: Publish


class Answer(Struct, array_like=True, frozen=True, tag="answer"):
    number: int
    code: int = 0  # 0: done
    reason: str = ""


class Tell(Struct, array_like=True, frozen=True, tag="tell"):
    told: Told


class Copied(Struct, array_like=True, frozen=True, tag="copied"):
    """Everything there was has been told."""


_encode = msgspec.msgpack.Encoder().encode
_to_head: Callable[[bytes], Put] = msgspec.msgpack.Decoder(Put).decode
_to_limb: Callable[[bytes], Answer | Tell | Copied] = msgspec.msgpack.Decoder(
    Answer | Tell | Copied
).decode


def packed(message: Struct) -> bytes:
    body = _encode(message)
    return len(body).to_bytes(4, "big") + body


async def unpacked(reader: asyncio.StreamReader) -> bytes | None:
    """One message, None at the end."""
    try:
        size = int.from_bytes(await reader.readexactly(4), "big")
        if size > FRAME_BYTES_MAX:
            return None
        return await reader.readexactly(size)
    except (asyncio.IncompleteReadError, ConnectionError):
        return None


class Head:
    """Of the edge that decides."""

    def __init__(self, edge: Edge) -> None:
        self._edge = edge
        self._limbs: set[asyncio.StreamWriter] = set()
        self._talks: set[asyncio.Task[None]] = set()
        self._server: asyncio.AbstractServer | None = None

    async def start(self, path: Path) -> None:
        self._edge.tell = self._tell
        self._server = await asyncio.start_unix_server(self._serve, path)

    async def stop(self) -> None:
        self._edge.tell = None
        if self._server is not None:
            self._server.close()
        for limb in list(self._limbs):
            limb.transport.abort()
        await asyncio.gather(*self._talks, return_exceptions=True)

    def _tell(self, change: Told) -> None:
        data = packed(Tell(change))
        for limb in self._limbs:
            limb.write(data)
            if limb.transport.get_write_buffer_size() > BACKLOG_BYTES_MAX:
                _log.warning("an edge process is too far behind and starts anew")
                limb.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for topic in self._edge.fanout.tree:
            if topic.shared:
                for change in history(topic):
                    writer.write(packed(Tell(change)))
        writer.write(packed(Copied()))
        self._limbs.add(writer)
        talk = asyncio.current_task()
        assert talk is not None
        self._talks.add(talk)
        try:
            while (body := await unpacked(reader)) is not None:
                writer.write(packed(self._decide(_to_head(body))))
        finally:
            self._limbs.discard(writer)
            self._talks.discard(talk)
            writer.transport.abort()

    def _decide(self, asked: Put) -> Answer:
        edge, frame = self._edge, asked.frame
        try:
            put(edge.fanout, frame, edge.now_us())
        except ProtocolError as error:
            return Answer(asked.number, int(error.code), error.reason)
        self._tell(told(edge.fanout, frame))
        edge.flush_soon()
        return Answer(asked.number)


class Limb:
    """Of an edge that repeats. `ended` is set when its head is gone."""

    def __init__(self, edge: Edge) -> None:
        self.ended = asyncio.Event()
        self._edge = edge
        self._waiting: dict[int, tuple[Session, int]] = {}
        self._count = 0
        self._writer: asyncio.StreamWriter | None = None
        self._task: asyncio.Task[None] | None = None

    async def start(self, path: Path) -> None:
        """Returns when this edge knows what its head knows."""
        reader, self._writer = await asyncio.open_unix_connection(path)
        copied = asyncio.Event()
        self._edge.decides_elsewhere = self._ask
        self._task = asyncio.create_task(self._listen(reader, copied))
        await copied.wait()

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
        if self._writer is not None:
            self._writer.transport.abort()

    def _ask(self, session: Session, frame: Publish) -> None:
        writer = self._writer
        if self.ended.is_set() or writer is None or len(self._waiting) >= WAITING_MAX:
            raise ProtocolError(Code.BUSY, "the edge that decides does not answer now")
        self._count += 1
        self._waiting[self._count] = (session, frame.id)
        writer.write(packed(Put(self._count, frame)))

    async def _listen(self, reader: asyncio.StreamReader, copied: asyncio.Event) -> None:
        try:
            while (body := await unpacked(reader)) is not None:
                self._hear(_to_limb(body), copied)
        finally:
            self.ended.set()
            copied.set()

    def _hear(self, message: Any, copied: asyncio.Event) -> None:
        edge = self._edge
        if isinstance(message, Tell):
            repeat(edge.fanout, message.told, edge.now_us())
        elif isinstance(message, Copied):
            copied.set()
        else:
            session, number = self._waiting.pop(message.number)
            if message.code:
                session.refuse(number, message.code, message.reason)
            else:
                session.reply(number, None)
        edge.flush_due(edge.now_us())
