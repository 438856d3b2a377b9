"""Keep several edge workers on one port in step, one per processor.

The kernel spreads connections over the workers, and each reads the log by itself. What clients
publish is decided by the primary worker alone, so that all see the same order: the others pass it
on, wait for the result, and repeat each publication of the primary. They talk over a Unix socket
in a directory only we can enter; a message is its size in four bytes and MessagePack.

A worker exits when the primary is gone; the node starts it again, and it begins with a copy. The
node's edge processes use it.
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

from edgewise.edge.server.publish import describe_change, describe_topic, publish_frame
from edgewise.edge.server.server import Edge
from edgewise.edge.sessions.session import Session
from edgewise.edge.topics.tree import Publication
from edgewise.errors import ProtocolError
from edgewise.wire.codes import ProtocolCode
from edgewise.wire.frames import Publish

BACKLOG_BYTES_MAX = 64 * 1024 * 1024  # a worker that is further behind starts anew
UNANSWERED_MAX = 10_000  # publications of one worker without a result yet
FRAME_BYTES_MAX = 16 * 1024 * 1024

_log = logging.getLogger("edgewise.edge")


class PublishRequest(Struct, array_like=True, frozen=True, tag="publish"):
    number: int
    frame: Publish


class PublishResult(Struct, array_like=True, frozen=True, tag="result"):
    number: int
    code: int = 0  # 0: done
    reason: str = ""


class Replicate(Struct, array_like=True, frozen=True, tag="replicate"):
    publication: Publication


class CopyDone(Struct, array_like=True, frozen=True, tag="copied"):
    """Everything there was has been sent."""


_encode = msgspec.msgpack.Encoder().encode
_decode_request: Callable[[bytes], PublishRequest] = msgspec.msgpack.Decoder(PublishRequest).decode
_decode_reply: Callable[[bytes], PublishResult | Replicate | CopyDone] = msgspec.msgpack.Decoder(
    PublishResult | Replicate | CopyDone
).decode


def encode_message(message: Struct) -> bytes:
    body = _encode(message)
    return len(body).to_bytes(4, "big") + body


async def read_message(reader: asyncio.StreamReader) -> bytes | None:
    """One message, None at the end."""
    try:
        size = int.from_bytes(await reader.readexactly(4), "big")
        if size > FRAME_BYTES_MAX:
            return None
        return await reader.readexactly(size)
    except (asyncio.IncompleteReadError, ConnectionError):
        return None


class PrimarySync:
    """Of the worker that decides."""

    def __init__(self, edge: Edge) -> None:
        self._edge = edge
        self._workers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.AbstractServer | None = None

    async def start(self, path: Path) -> None:
        self._edge.replicate = self._replicate
        self._server = await asyncio.start_unix_server(self._serve, path)

    async def stop(self) -> None:
        self._edge.replicate = None
        if self._server is not None:
            self._server.close()
        for worker in list(self._workers):
            worker.transport.abort()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _replicate(self, publication: Publication) -> None:
        data = encode_message(Replicate(publication))
        for worker in self._workers:
            worker.write(data)
            if worker.transport.get_write_buffer_size() > BACKLOG_BYTES_MAX:
                _log.warning("an edge worker is too far behind and starts anew")
                worker.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for topic in self._edge.fanout.tree:
            if topic.shared:
                for publication in describe_topic(topic):
                    writer.write(encode_message(Replicate(publication)))
        writer.write(encode_message(CopyDone()))
        self._workers.add(writer)
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            while (body := await read_message(reader)) is not None:
                writer.write(encode_message(self._decide(_decode_request(body))))
        finally:
            self._workers.discard(writer)
            self._tasks.discard(task)
            writer.transport.abort()

    def _decide(self, request: PublishRequest) -> PublishResult:
        edge, frame = self._edge, request.frame
        try:
            publish_frame(edge.fanout, frame, edge.now_us())
        except ProtocolError as error:
            return PublishResult(request.number, int(error.code), error.reason)
        self._replicate(describe_change(edge.fanout, frame))
        edge.flush_soon()
        return PublishResult(request.number)


class WorkerSync:
    """Of a worker that repeats. `ended` is set when the primary is gone."""

    def __init__(self, edge: Edge) -> None:
        self.ended = asyncio.Event()
        self._edge = edge
        self._unanswered: dict[int, tuple[Session, int]] = {}
        self._count = 0
        self._writer: asyncio.StreamWriter | None = None
        self._task: asyncio.Task[None] | None = None

    async def start(self, path: Path) -> None:
        """Returns when this worker knows what the primary knows."""
        reader, self._writer = await asyncio.open_unix_connection(path)
        copied = asyncio.Event()
        self._edge.publish_elsewhere = self._route_elsewhere
        self._task = asyncio.create_task(self._read(reader, copied))
        await copied.wait()

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
        if self._writer is not None:
            self._writer.transport.abort()

    def _route_elsewhere(self, session: Session, frame: Publish) -> None:
        writer = self._writer
        if self.ended.is_set() or writer is None or len(self._unanswered) >= UNANSWERED_MAX:
            raise ProtocolError(ProtocolCode.BUSY, "the worker that decides does not answer now")
        self._count += 1
        self._unanswered[self._count] = (session, frame.id)
        writer.write(encode_message(PublishRequest(self._count, frame)))

    async def _read(self, reader: asyncio.StreamReader, copied: asyncio.Event) -> None:
        try:
            while (body := await read_message(reader)) is not None:
                self._take(_decode_reply(body), copied)
        finally:
            self.ended.set()
            copied.set()

    def _take(self, message: Any, copied: asyncio.Event) -> None:
        edge = self._edge
        if isinstance(message, Replicate):
            edge.fanout.apply(message.publication, edge.now_us())
        elif isinstance(message, CopyDone):
            copied.set()
        else:
            session, number = self._unanswered.pop(message.number)
            if message.code:
                session.refuse(number, message.code, message.reason)
            else:
                session.reply(number, None)
        edge.flush_due(edge.now_us())
