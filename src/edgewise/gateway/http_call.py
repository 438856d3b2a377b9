"""Call an HTTP service with each row, and take its answers as events: `http-call`.

A sink of type `http-call` (`http-request` in older apps) sends a row as a request; sources of type
`http-call-response` (`http-response`) with the same `sink.id` and a matching status get the
answer. `trp:name` in the mapping of such a source is the attribute `name` of the row that was
sent. A row is done when its answer is durable; its offset is the sequence of the append, so that a
call repeated after a crash gives its event once. Loaded by `connectors`.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from edgewise.event.clock import SystemClock
from edgewise.event.schema import Schema
from edgewise.gateway.admit import BODY_BYTES_MAX
from edgewise.gateway.http_sink import HttpSink
from edgewise.gateway.sink_reader import Message, SinkCursor, Undelivered
from edgewise.gateway.source_writer import SourceWriter
from edgewise.gateway.spec import SinkSpec, SourceSpec
from edgewise.log.api import LogReader, LogWriter

logger = logging.getLogger(__name__)
TRANSPORT = "trp:"


def add_properties(payload: bytes, properties: Mapping[str, Any]) -> bytes:
    """A JSON object, or each object of a list, with the properties under `trp:name`."""
    try:
        value = json.loads(payload or b"{}")
    except ValueError:
        return payload
    more = {f"{TRANSPORT}{name}": held for name, held in properties.items()}
    objects = value if isinstance(value, list) else [value]
    if not all(isinstance(each, dict) for each in objects):
        return payload
    merged = [{**each, **more} for each in objects]
    return json.dumps(merged if isinstance(value, list) else merged[0]).encode()


class HttpCallSource:
    def __init__(
        self, spec: SourceSpec, schema: Schema, writer: LogWriter, clock: SystemClock
    ) -> None:
        self._sink_id = spec.options["sink.id"]
        self._status = re.compile(spec.options["http.status.code"])
        wanted = (path for path in spec.map.attributes.values() if path.startswith(TRANSPORT))
        self._adds = spec.map.type == "json" and any(wanted)
        self._ingest = SourceWriter(spec, schema, writer, clock)
        self.stats = self._ingest.stats

    async def start(self) -> None:
        _SOURCES[self._sink_id].append(self)

    async def stop(self) -> None:
        if self in _SOURCES[self._sink_id]:
            _SOURCES[self._sink_id].remove(self)
        await self._ingest.close()

    def takes(self, status: int) -> bool:
        return self._status.fullmatch(str(status)) is not None

    async def accept(
        self, producer: str, sequence: int, payload: bytes, properties: Mapping[str, Any]
    ) -> None:
        if sequence <= self._ingest.writer.last_sequence(producer):
            return
        body = add_properties(payload, properties) if self._adds else payload
        events = self._ingest.read(body)
        if events is not None:
            await self._ingest.append(events, producer=producer, sequence=sequence)


_SOURCES: defaultdict[str, list[HttpCallSource]] = defaultdict(list)  # of this process


class HttpCallSink(HttpSink):
    """One request for each row, in their order."""

    def __init__(
        self, spec: SinkSpec, schema: Schema, reader: LogReader, cursor: SinkCursor
    ) -> None:
        super().__init__(spec, schema, reader, cursor)
        self._sink_id = spec.options["sink.id"]
        self._stream = spec.stream
        self._names = schema.names
        self._producer = f"http-call:{self._sink_id}:{spec.stream}"

    async def _deliver(self, messages: list[Message]) -> None:
        for message in messages:
            await self._call(message)

    async def _call(self, message: Message) -> None:
        status, body = await asyncio.to_thread(
            self.exchange, message.payload, message.offset, BODY_BYTES_MAX
        )
        properties = dict(zip(self._names, message.row, strict=True))
        taking = [source for source in _SOURCES[self._sink_id] if source.takes(status)]
        if not taking and status >= 500:
            raise Undelivered(f"{self._parts.netloc} answered {status}")
        if not taking:
            self.stats.refused[self._stream, "no-source-for-answer"] += 1
            logger.warning("no source of sink.id '%s' takes status %d", self._sink_id, status)
        for source in taking:
            await source.accept(self._producer, message.offset, body, properties)
