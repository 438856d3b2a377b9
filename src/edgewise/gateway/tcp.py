"""Receive and send events by Siddhi's TCP transport.

All TCP sources of a process that name the same address share one server; the channel of a message
says which source it is for. The protocol has no acknowledgements, so both sides deliver at most
once: what was on its way when a connection broke is lost. A sink that cannot connect waits, with
growing pauses, and keeps its rows. Loaded by `connectors`.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from urllib.parse import urlsplit

from edgewise.errors import SetupError
from edgewise.event.clock import SystemClock
from edgewise.event.schema import Schema
from edgewise.gateway.admit import BODY_BYTES_MAX
from edgewise.gateway.sink_reader import Message, SinkCursor, SinkReader, Undelivered
from edgewise.gateway.source_writer import SourceWriter
from edgewise.gateway.spec import SinkSpec, SourceSpec
from edgewise.gateway.tcp_frame import FrameDecoder, encode_frame
from edgewise.log.api import LogReader, LogWriter

logger = logging.getLogger(__name__)
READ_BYTES = 256 * 1024
RETRY_S = (0.2, 1.0, 5.0, 30.0)
CLOSE_S = 1.0
PORT = 9892


class TcpServer:
    """One listening socket and the sources behind it, by channel."""

    def __init__(self) -> None:
        self.sources: dict[str, TcpSource] = {}
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.StreamWriter] = set()

    async def start(self, host: str, port: int) -> None:
        try:
            self._server = await asyncio.start_server(self._serve, host, port)
        except OSError as error:
            raise SetupError(f"TCP cannot listen on {host}:{port}: {error.strerror}") from error

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
        for writer in list(self._open):
            writer.close()

    def find(self, channel: str) -> TcpSource | None:
        """By its context; a source without one is called `<app>/<stream>`."""
        return self.sources.get(channel) or self.sources.get("/" + channel.rsplit("/", 1)[-1])

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer = writer.get_extra_info("peername")
        decoder = FrameDecoder(BODY_BYTES_MAX)
        self._open.add(writer)
        try:
            while data := await reader.read(READ_BYTES):
                for channel, payload in decoder.feed(data):
                    source = self.find(channel)
                    if source is None:
                        logger.warning(
                            "TCP from %s: no source has the context '%s'", peer, channel
                        )
                        continue
                    await source.offer(payload)
        except (ValueError, ConnectionError) as error:
            logger.warning("TCP from %s: %s; closed", peer, error)
        finally:
            self._open.discard(writer)
            writer.close()


_SERVERS: dict[tuple[str, int], TcpServer] = {}  # of this process


class TcpSource:
    def __init__(
        self, spec: SourceSpec, schema: Schema, writer: LogWriter, clock: SystemClock
    ) -> None:
        self._address = (spec.options["host"], int(spec.options["port"]))
        self._channel = spec.options["context"] or f"/{spec.stream}"
        self._ingest = SourceWriter(spec, schema, writer, clock)
        self.stats = self._ingest.stats
        self.offer = self._ingest.offer

    async def start(self) -> None:
        server = _SERVERS.get(self._address)
        if server is None:
            server = TcpServer()
            await server.start(*self._address)
            _SERVERS[self._address] = server
        if self._channel in server.sources:
            raise SetupError(f"two TCP sources have the context '{self._channel}'")
        server.sources[self._channel] = self

    async def stop(self) -> None:
        server = _SERVERS.get(self._address)
        if server is not None and server.sources.get(self._channel) is self:
            del server.sources[self._channel]
            if not server.sources:
                del _SERVERS[self._address]
                await server.stop()
        await self._ingest.close()


class TcpSink:
    def __init__(
        self, spec: SinkSpec, schema: Schema, reader: LogReader, cursor: SinkCursor
    ) -> None:
        parts = urlsplit(spec.options["url"])
        self._host, self._port = parts.hostname or "", parts.port or PORT
        self._channel = parts.path.lstrip("/")
        self._session = f"edgewise-{spec.stream}"
        self._reader = SinkReader(spec, schema, reader, cursor)
        self.stats = self._reader.stats
        self._writer: asyncio.StreamWriter | None = None

    async def start(self) -> None:
        self._reader.start(self._deliver)

    async def stop(self) -> None:
        await self._reader.stop()
        await self._disconnect()

    async def _deliver(self, messages: list[Message]) -> None:
        writer = self._writer or await self._connect()
        frames = (encode_frame(self._session, self._channel, m.payload) for m in messages)
        try:
            writer.writelines(frames)
            await writer.drain()
        except (OSError, ConnectionError) as error:
            await self._disconnect()
            raise Undelivered(f"{self._host}:{self._port}: {error}") from error

    async def _connect(self) -> asyncio.StreamWriter:
        """However long the other side is away: rows wait in the log."""
        attempts = 0
        while True:
            try:
                _, self._writer = await asyncio.open_connection(self._host, self._port)
            except OSError as error:
                delay = RETRY_S[min(attempts, len(RETRY_S) - 1)]
                self.stats.failed = f"cannot connect to {self._host}:{self._port}: {error}"
                if attempts < len(RETRY_S):
                    logger.warning("TCP sink %s; again in %g s", self.stats.failed, delay)
                attempts += 1
                await asyncio.sleep(delay)
                continue
            self.stats.failed = ""
            return self._writer

    async def _disconnect(self) -> None:
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.close()
            with suppress(OSError, TimeoutError):
                await asyncio.wait_for(writer.wait_closed(), CLOSE_S)
