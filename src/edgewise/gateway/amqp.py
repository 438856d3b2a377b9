"""Connect to AMQP 0.9.1 brokers: a queue as a source, an exchange as a sink.

A source acknowledges a message when the log has it; a durable queue keeps the rest. A sink goes on
to the next rows when the broker has confirmed the last ones. Loaded by `connectors`.
"""

from __future__ import annotations

import asyncio
from typing import Any
from urllib.parse import urlsplit

import aio_pika
from aio_pika.abc import AbstractIncomingMessage
from aio_pika.exceptions import AMQPError

from edgewise.errors import SetupError
from edgewise.event.clock import SystemClock
from edgewise.event.schema import Schema
from edgewise.gateway.renderers import build_renderer
from edgewise.gateway.sink_reader import Message, SinkCursor, SinkReader, Undelivered
from edgewise.gateway.source_writer import SourceWriter
from edgewise.gateway.spec import Guarantee, MapSpec, SinkSpec, SourceSpec
from edgewise.log.api import LogReader, LogWriter

PREFETCH = 500  # messages the broker sends ahead of our acknowledgements
CONNECT_S = 10.0
CONFIRM_S = 10.0
RECONNECT_S = 1.0
_FAULTS = (AMQPError, OSError, TimeoutError)


async def _connect(url: str) -> Any:
    try:
        connection = await aio_pika.connect_robust(url, timeout=CONNECT_S)
    except _FAULTS as error:
        address = urlsplit(url)
        raise SetupError(
            f"no AMQP broker at {address.hostname}:{address.port or 5672}: {error or 'no answer'}"
        ) from error
    connection.reconnect_interval = RECONNECT_S
    return connection


class AmqpSource:
    def __init__(
        self, spec: SourceSpec, schema: Schema, writer: LogWriter, clock: SystemClock
    ) -> None:
        self._options = spec.options
        self._queue = spec.options["queue"] or f"edgewise-{spec.stream}"
        self._at_most_once = spec.options["delivery"] == Guarantee.AT_MOST_ONCE.value
        self._ingest = SourceWriter(spec, schema, writer, clock)
        self.stats = self._ingest.stats
        self._connection: Any = None
        self._acks: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        options = self._options
        self._connection = await _connect(options["url"])
        try:
            channel = await self._connection.channel()
            await channel.set_qos(prefetch_count=PREFETCH)
            queue = await channel.declare_queue(self._queue, durable=True)
            if options["exchange"]:
                exchange = await channel.declare_exchange(
                    options["exchange"], options["exchange.type"], durable=True
                )
                await queue.bind(exchange, options["key"])
            await queue.consume(self._on_message, no_ack=self._at_most_once)
        except _FAULTS as error:
            await self._connection.close()
            raise SetupError(f"queue '{self._queue}': {error}") from error

    async def stop(self) -> None:
        await self._ingest.close()
        if self._acks:
            await asyncio.wait(set(self._acks), timeout=1)
        if self._connection is not None:
            await self._connection.close()
            self._connection = None

    async def _on_message(self, message: AbstractIncomingMessage) -> None:
        def durable() -> None:
            if not self._at_most_once:
                task = asyncio.create_task(self._acknowledge(message))
                self._acks.add(task)
                task.add_done_callback(self._acks.discard)

        await self._ingest.offer(message.body, durable)

    @staticmethod
    async def _acknowledge(message: AbstractIncomingMessage) -> None:
        try:
            await message.ack()
        except (AMQPError, OSError, RuntimeError):
            return  # the connection broke: the broker sends it again, and that is at least once


class AmqpSink:
    def __init__(
        self, spec: SinkSpec, schema: Schema, reader: LogReader, cursor: SinkCursor
    ) -> None:
        self._options = spec.options
        self._stream = spec.stream
        self._key = build_renderer(MapSpec("text", {"template": spec.options["key"]}), schema)
        self._reader = SinkReader(spec, schema, reader, cursor)
        self.stats = self._reader.stats
        self._connection: Any = None
        self._exchange: Any = None

    async def start(self) -> None:
        self._connection = await _connect(self._options["url"])
        try:
            channel = await self._connection.channel(publisher_confirms=True)
            self._exchange = await channel.declare_exchange(
                self._options["exchange"], self._options["exchange.type"], durable=True
            )
        except _FAULTS as error:
            await self._connection.close()
            raise SetupError(f"exchange '{self._options['exchange']}': {error}") from error
        self._reader.start(self._deliver)

    async def stop(self) -> None:
        await self._reader.stop()
        if self._connection is not None:
            await self._connection.close()
            self._connection = None

    async def _deliver(self, messages: list[Message]) -> None:
        try:
            async with asyncio.timeout(CONFIRM_S):
                await asyncio.gather(*(self._publish(message) for message in messages))
        except (*_FAULTS, RuntimeError) as error:
            raise Undelivered(f"the broker did not confirm: {error or 'no answer'}") from error

    async def _publish(self, message: Message) -> None:
        # The id lets a receiver drop what it has seen: an offset is never used twice.
        body = aio_pika.Message(
            message.payload,
            delivery_mode=aio_pika.DeliveryMode.PERSISTENT,
            message_id=f"{self._stream}/{message.offset}",
        )
        key = self._key(0, message.row).decode()
        await self._exchange.publish(body, key, mandatory=False)
