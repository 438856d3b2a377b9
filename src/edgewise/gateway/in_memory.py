"""Join streams of one process by topics in memory: `@sink(type='inMemory', topic='t')`.

Rows of a sink become events of every source of the same topic. The row's offset is the sequence of
the append, so a row that is delivered again after a crash is appended once. As in Siddhi, rows of
a topic without a source go nowhere. Loaded by `connectors`.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict

from edgewise.event.clock import SystemClock
from edgewise.event.schema import Schema
from edgewise.gateway.sink_reader import Message, SinkCursor, SinkReader
from edgewise.gateway.source_writer import SourceWriter
from edgewise.gateway.spec import SinkSpec, SourceSpec
from edgewise.log.api import LogReader, LogWriter


class InMemorySource:
    def __init__(
        self, spec: SourceSpec, schema: Schema, writer: LogWriter, clock: SystemClock
    ) -> None:
        self._topic = spec.options["topic"]
        self._ingest = SourceWriter(spec, schema, writer, clock)
        self.stats = self._ingest.stats

    async def start(self) -> None:
        _SOURCES[self._topic].append(self)

    async def stop(self) -> None:
        if self in _SOURCES[self._topic]:
            _SOURCES[self._topic].remove(self)
        await self._ingest.close()

    async def accept(self, producer: str, messages: list[Message]) -> None:
        """Append what this producer has not appended before; returns when it is durable."""
        known = self._ingest.writer.last_sequence(producer)
        fresh = [m for m in messages if m.offset > known]
        events = self._ingest.read_each(m.payload for m in fresh)
        if events is not None:
            await self._ingest.append(events, producer=producer, sequence=fresh[-1].offset)


_SOURCES: defaultdict[str, list[InMemorySource]] = defaultdict(list)  # of this process, by topic


class InMemorySink:
    def __init__(
        self, spec: SinkSpec, schema: Schema, reader: LogReader, cursor: SinkCursor
    ) -> None:
        self._topic = spec.options["topic"]
        self._producer = f"inMemory:{self._topic}:{spec.stream}"
        self._reader = SinkReader(spec, schema, reader, cursor)
        self.stats = self._reader.stats

    async def start(self) -> None:
        self._reader.start(self._deliver)

    async def stop(self) -> None:
        await self._reader.stop()

    async def _deliver(self, messages: list[Message]) -> None:
        sources = list(_SOURCES[self._topic])
        await asyncio.gather(*(source.accept(self._producer, messages) for source in sources))
