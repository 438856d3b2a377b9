"""AMQP 0.9.1: a queue as a source, an exchange as a sink.

A source acknowledges a message when the log has it; a queue that outlives us keeps the rest. A
sink is at the next row when the broker confirmed the last one.
"""

from __future__ import annotations

import asyncio
from typing import Any
from urllib.parse import urlsplit

import aio_pika
from aio_pika.abc import AbstractIncomingMessage
from aio_pika.exceptions import AMQPError

from edgewise.errors import SetupError
from edgewise.event.clock import Clock
from edgewise.event.schema import Schema
from edgewise.gateway.drain import Cursor, Drain, Message, Undelivered
from edgewise.gateway.feed import Feed
from edgewise.gateway.renderers import renderer_of
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
    except _FAULTS as bad:
        place = urlsplit(url)
        raise SetupError(
            f"no AMQP broker at {place.hostname}:{place.port or 5672}: {bad or 'no answer'}"
        ) from bad
    connection.reconnect_interval = RECONNECT_S
    return connection


class AmqpSource:
    def __init__(self, spec: SourceSpec, schema: Schema, writer: LogWriter, clock: Clock) -> None:
        self._options = spec.options
        self._before = spec.options["delivery"] == Guarantee.AT_MOST_ONCE.value
        self._feed = Feed(spec, schema, writer, clock)
        self.stats = self._feed.stats
        self._connection: Any = None
        self._acks: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        options = self._options
        self._connection = await _connect(options["url"])
        try:
            channel = await self._connection.channel()
            await channel.set_qos(prefetch_count=PREFETCH)
            queue = await channel.declare_queue(options["queue"], durable=True)
            if options["exchange"]:
                exchange = await channel.declare_exchange(
                    options["exchange"], aio_pika.ExchangeType.TOPIC, durable=True
                )
                await queue.bind(exchange, options["key"])
            await queue.consume(self._arrived, no_ack=self._before)
        except _FAULTS as bad:
            await self._connection.close()
            raise SetupError(f"queue '{options['queue']}': {bad}") from bad

    async def stop(self) -> None:
        await self._feed.close()
        if self._acks:
            await asyncio.wait(set(self._acks), timeout=1)
        if self._connection is not None:
            await self._connection.close()
            self._connection = None

    async def _arrived(self, message: AbstractIncomingMessage) -> None:
        def durable() -> None:
            if not self._before:
                task = asyncio.create_task(self._acknowledge(message))
                self._acks.add(task)
                task.add_done_callback(self._acks.discard)

        await self._feed.offer(message.body, durable)

    @staticmethod
    async def _acknowledge(message: AbstractIncomingMessage) -> None:
        try:
            await message.ack()
        except (AMQPError, OSError, RuntimeError):
            return  # the connection broke: the broker sends it again, and that is at least once


class AmqpSink:
    def __init__(self, spec: SinkSpec, schema: Schema, reader: LogReader, cursor: Cursor) -> None:
        self._options = spec.options
        self._stream = spec.stream
        self._key = renderer_of(MapSpec("text", {"template": spec.options["key"]}), schema)
        self._drain = Drain(spec, schema, reader, cursor)
        self.stats = self._drain.stats
        self._connection: Any = None
        self._exchange: Any = None

    async def start(self) -> None:
        self._connection = await _connect(self._options["url"])
        try:
            channel = await self._connection.channel(publisher_confirms=True)
            self._exchange = await channel.declare_exchange(
                self._options["exchange"], aio_pika.ExchangeType.TOPIC, durable=True
            )
        except _FAULTS as bad:
            await self._connection.close()
            raise SetupError(f"exchange '{self._options['exchange']}': {bad}") from bad
        self._drain.start(self._deliver)

    async def stop(self) -> None:
        await self._drain.stop()
        if self._connection is not None:
            await self._connection.close()
            self._connection = None

    async def _deliver(self, messages: list[Message]) -> None:
        try:
            async with asyncio.timeout(CONFIRM_S):
                await asyncio.gather(*(self._publish(message) for message in messages))
        except (*_FAULTS, RuntimeError) as bad:
            raise Undelivered(f"the broker did not confirm: {bad or 'no answer'}") from bad

    async def _publish(self, message: Message) -> None:
        # The id lets a receiver drop what it has seen: an offset is never used twice.
        body = aio_pika.Message(
            message.payload,
            delivery_mode=aio_pika.DeliveryMode.PERSISTENT,
            message_id=f"{self._stream}/{message.offset}",
        )
        key = self._key(0, message.row).decode()
        await self._exchange.publish(body, key, mandatory=False)
