"""Connect ZeroMQ sockets: SUB and PULL as sources, PUB and PUSH as sinks.

ZeroMQ has no acknowledgements, so both deliver at most once, and an app that declares more is
refused. PULL and PUSH slow the sender down when we are slow; PUB drops messages for a subscriber
that does not keep up. Loaded by `connectors`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import zmq
import zmq.asyncio

from edgewise.errors import SetupError
from edgewise.event.clock import SystemClock
from edgewise.event.schema import Schema
from edgewise.gateway.admit import BODY_BYTES_MAX
from edgewise.gateway.sink_reader import Message, SinkCursor, SinkReader, Undelivered
from edgewise.gateway.source_writer import SourceWriter
from edgewise.gateway.spec import SinkSpec, SourceSpec
from edgewise.log.api import LogReader, LogWriter

QUEUE_MAX = 1000  # messages in ZeroMQ's own queue
TOPICS_MAX = 256
SEND_S = 5.0
_SOURCES = {"sub": zmq.SUB, "pull": zmq.PULL}
_SINKS = {"pub": zmq.PUB, "push": zmq.PUSH}


class ZeroMqSource:
    def __init__(
        self, spec: SourceSpec, schema: Schema, writer: LogWriter, clock: SystemClock
    ) -> None:
        self._options = spec.options
        self._kind = _SOURCES[spec.options["socket"]]
        self._ingest = SourceWriter(spec, schema, writer, clock)
        self.stats = self._ingest.stats
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        socket = zmq.asyncio.Context.instance().socket(self._kind)
        socket.set(zmq.RCVHWM, QUEUE_MAX)
        socket.set(zmq.MAXMSGSIZE, BODY_BYTES_MAX)
        if self._kind == zmq.SUB:
            for topic in self._options["topic"].split(",")[:TOPICS_MAX]:
                socket.subscribe(topic.strip())
        _attach(socket, self._options)
        self._task = self._ingest.supervise(asyncio.create_task(self._run(socket)))

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
            self._task = None
        await self._ingest.close()

    async def _run(self, socket: Any) -> None:
        try:
            while True:
                frames = await socket.recv_multipart()
                await self._ingest.offer(frames[-1])
        finally:
            socket.close(linger=0)


class ZeroMqSink:
    def __init__(
        self, spec: SinkSpec, schema: Schema, reader: LogReader, cursor: SinkCursor
    ) -> None:
        self._options = spec.options
        self._kind = _SINKS[spec.options["socket"]]
        self._reader = SinkReader(spec, schema, reader, cursor)
        self.stats = self._reader.stats
        self._socket: Any = None

    async def start(self) -> None:
        self._socket = zmq.asyncio.Context.instance().socket(self._kind)
        self._socket.set(zmq.SNDHWM, QUEUE_MAX)
        _attach(self._socket, self._options)
        self._reader.start(self._deliver)

    async def stop(self) -> None:
        await self._reader.stop()
        if self._socket is not None:
            self._socket.close(linger=500)
            self._socket = None

    async def _deliver(self, messages: list[Message]) -> None:
        topic = self._options["topic"].encode()
        for message in messages:
            frames = [topic, message.payload] if topic else [message.payload]
            try:
                async with asyncio.timeout(SEND_S):
                    await self._socket.send_multipart(frames)
            except TimeoutError:
                raise Undelivered(f"nobody took a message within {SEND_S:g} s") from None


def _attach(socket: Any, options: Mapping[str, str]) -> None:
    url, mode = options["url"], options["mode"]
    try:
        (socket.bind if mode == "bind" else socket.connect)(url)
    except zmq.ZMQError as error:
        socket.close(linger=0)
        raise SetupError(f"ZeroMQ cannot {mode} to '{url}': {error.strerror}") from error
