"""Connect to a WebSocket server of others: its messages as a source, rows to it as a sink.

WebSockets have no acknowledgements, so both deliver at most once. A broken connection is opened
again, with growing pauses; a sink keeps its rows until it is connected. Loaded by `connectors`.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Mapping
from typing import Any

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import WebSocketException

from edgewise.event.clock import SystemClock
from edgewise.event.schema import Schema
from edgewise.gateway.admit import BODY_BYTES_MAX
from edgewise.gateway.sink_reader import Message, SinkCursor, SinkReader, Undelivered
from edgewise.gateway.source_writer import SourceWriter
from edgewise.gateway.spec import SinkSpec, SourceSpec
from edgewise.gateway.stats import ConnectorStats
from edgewise.log.api import LogReader, LogWriter

logger = logging.getLogger(__name__)
RETRY_S = (0.2, 1.0, 5.0, 30.0)
_HEADER = re.compile(r"""'([^':]+):([^']*)'""")
_BROKEN = (OSError, WebSocketException, TimeoutError)


async def _open(options: Mapping[str, str], stats: ConnectorStats, word: str) -> ClientConnection:
    """However long the server is away; says so."""
    names = [name.strip() for name in options["sub.protocol"].split(",") if name.strip()]
    settings: dict[str, Any] = {
        "additional_headers": dict(_HEADER.findall(options["headers"])),
        "subprotocols": names or None,
        "max_size": BODY_BYTES_MAX,
    }
    attempts = 0
    while True:
        try:
            opened = await connect(options["url"], **settings)
        except _BROKEN as error:
            delay = RETRY_S[min(attempts, len(RETRY_S) - 1)]
            stats.failed = f"cannot connect to {options['url']}: {error}"
            if attempts < len(RETRY_S):
                logger.warning("WebSocket %s %s; again in %g s", word, stats.failed, delay)
            attempts += 1
            await asyncio.sleep(delay)
            continue
        stats.failed = ""
        return opened


class WebSocketSource:
    def __init__(
        self, spec: SourceSpec, schema: Schema, writer: LogWriter, clock: SystemClock
    ) -> None:
        self._options = spec.options
        self._ingest = SourceWriter(spec, schema, writer, clock)
        self.stats = self._ingest.stats
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self._task = self._ingest.supervise(asyncio.create_task(self._run()))

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
            self._task = None
        await self._ingest.close()

    async def _run(self) -> None:
        while True:
            async with await _open(self._options, self.stats, "source") as connection:
                try:
                    async for message in connection:
                        payload = message.encode() if isinstance(message, str) else message
                        await self._ingest.offer(payload)
                except _BROKEN as error:
                    logger.warning("WebSocket %s: %s", self._options["url"], error)
            await asyncio.sleep(RETRY_S[0])


class WebSocketSink:
    def __init__(
        self, spec: SinkSpec, schema: Schema, reader: LogReader, cursor: SinkCursor
    ) -> None:
        self._options = spec.options
        self._as_text = spec.map.type not in {"binary", "avro"}
        self._reader = SinkReader(spec, schema, reader, cursor)
        self.stats = self._reader.stats
        self._connection: ClientConnection | None = None

    async def start(self) -> None:
        self._reader.start(self._deliver)

    async def stop(self) -> None:
        await self._reader.stop()
        await self._close()

    async def _deliver(self, messages: list[Message]) -> None:
        if self._connection is None:
            self._connection = await _open(self._options, self.stats, "sink")
        try:
            for message in messages:
                await self._connection.send(message.payload, text=self._as_text)
        except _BROKEN as error:
            await self._close()
            raise Undelivered(f"{self._options['url']}: {error}") from error

    async def _close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()
