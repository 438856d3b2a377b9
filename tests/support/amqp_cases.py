"""Check AMQP 0.9.1 and AMQP 1.0 alike: the cases that both versions must pass."""

import asyncio

import aio_pika
from tests.support.async_until import until
from tests.support.memory_log import MemoryLog

from edgewise.event.arrow import record_batch, to_arrow
from edgewise.event.schema import Schema
from edgewise.gateway.sink_reader import FileCursor
from edgewise.log.memory import MemoryLog as Place

SCHEMA = Schema.of("S", v="int")


def append(writer, *values):
    zeros = [0] * len(values)
    writer.append(record_batch(to_arrow(SCHEMA), zeros, zeros, zeros, [list(values)]))


def stored(log):
    return [r["v"] for r in log.rows()]


async def publish(url, key, *values, exchange=""):
    async with await aio_pika.connect(url) as connection:
        channel = await connection.channel()
        place = await channel.get_exchange(exchange) if exchange else channel.default_exchange
        for value in values:
            body = b'{"v": %d}' % value if isinstance(value, int) else value
            await place.publish(aio_pika.Message(body), key)


async def queue_of(url, name, exchange="", key=""):
    async with await aio_pika.connect(url) as connection:
        channel = await connection.channel()
        queue = await channel.declare_queue(name, durable=True)
        if exchange:
            kind = aio_pika.ExchangeType.TOPIC
            await queue.bind(await channel.declare_exchange(exchange, kind, durable=True), key)


def the_broker_keeps_what_the_log_does_not_have(url, queue, source):
    """`source(log, url, queue)` is stopped while the log hangs; a second one gets all."""
    hanging, log = MemoryLog(SCHEMA), MemoryLog(SCHEMA)
    hanging.open.clear()

    async def scenario():
        await queue_of(url, queue)
        first = source(hanging, url, queue)
        await first.start()
        await publish(url, queue, *range(50))
        await until(lambda: first._ingest._tasks)
        await first.stop()
        second = source(log, url, queue)
        await second.start()
        await until(lambda: len(stored(log)) == 50)
        await second.stop()

    asyncio.run(scenario())
    hanging.open.set()
    assert sorted(stored(log)) == list(range(50))


def a_sink_is_confirmed_by_the_broker(url, queue, sink, folder):
    """`sink(place, cursor)` sends to exchange `out` under the key `v.{{v}}`."""
    place = Place()
    writer = place.writer(SCHEMA)
    cursor = FileCursor(folder / "cursor")
    got = []

    async def arrived(message):
        got.append((message.routing_key, message.body, message.message_id))

    async def scenario():
        await queue_of(url, queue, "out", "v.#")
        sending = sink(place, cursor)
        await sending.start()
        async with await aio_pika.connect(url) as connection:
            bound = await (await connection.channel()).get_queue(queue)
            await bound.consume(arrived, no_ack=True)
            append(writer, 5, 6)
            await until(lambda: len(got) == 2 and cursor.load() == 2)
        await sending.stop()

    asyncio.run(scenario())
    assert sorted(got) == [("v.5", b'{"v":5}', "S/0"), ("v.6", b'{"v":6}', "S/1")]
