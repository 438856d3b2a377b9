import asyncio

import aio_pika
import pytest
from tests.gateway.brokers import RabbitMq, free_port
from tests.gateway.memory_log import MemoryLog
from tests.gateway.until import until

from edgewise.errors import SetupError
from edgewise.event.arrow import record_batch, to_arrow
from edgewise.event.clock import ManualClock
from edgewise.event.schema import Schema
from edgewise.gateway.doors import check_sink, check_source, sink_class, source_class
from edgewise.gateway.drain import FileCursor
from edgewise.gateway.spec import BadSpec, SinkSpec, SourceSpec
from edgewise.log.memory import MemoryLog as Place

SCHEMA = Schema.of("S", v="int")


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    rabbit = RabbitMq(tmp_path_factory.mktemp("rabbit"))
    rabbit.start()
    yield rabbit
    rabbit.stop()


def source(log, url, queue, **options):
    spec = check_source(SourceSpec("S", "amqp", {"url": url, "queue": queue, **options}))
    return source_class("amqp")(spec, SCHEMA, log, ManualClock(1000))


def stored(log):
    return [r["v"] for r in log.rows()]


async def publish(url, key, *values, exchange=""):
    async with await aio_pika.connect(url) as connection:
        channel = await connection.channel()
        place = await channel.get_exchange(exchange) if exchange else channel.default_exchange
        for value in values:
            body = b'{"v": %d}' % value if isinstance(value, int) else value
            await place.publish(aio_pika.Message(body), key)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"url": "http://x"}, "must be amqp://host"),
        ({"delivery": "effectively-once"}, "'amqp' cannot give 'effectively-once'"),
    ],
)
def test_what_amqp_cannot_give_is_refused_before_it_starts(options, words):
    with pytest.raises(BadSpec, match=words):
        check_source(SourceSpec("S", "amqp", {"url": "amqp://h", "queue": "q", **options}))
    with pytest.raises(BadSpec, match=words):
        check_sink(SinkSpec("S", "amqp", {"url": "amqp://h", "exchange": "e", **options}))


def test_no_broker_is_a_sentence():
    port = free_port()
    with pytest.raises(SetupError, match=f"no AMQP broker at 127.0.0.1:{port}"):
        asyncio.run(source(MemoryLog(SCHEMA), f"amqp://127.0.0.1:{port}", "q").start())


@pytest.mark.integration
def test_messages_are_in_the_log_in_order(broker):
    log = MemoryLog(SCHEMA)

    async def scenario():
        consuming = source(log, broker.url, "q1", exchange="e1", key="in.#")
        await consuming.start()
        await publish(broker.url, "in.a", *range(200), b"bad", exchange="e1")
        await until(lambda: len(stored(log)) == 200 and consuming.stats.refused_total)
        await consuming.stop()

    asyncio.run(scenario())
    assert stored(log) == list(range(200))


@pytest.mark.integration
def test_the_broker_keeps_what_the_log_does_not_have(broker):
    hanging, log = MemoryLog(SCHEMA), MemoryLog(SCHEMA)
    hanging.open.clear()

    async def scenario():
        first = source(hanging, broker.url, "q2")
        await first.start()
        await publish(broker.url, "q2", *range(50))
        await until(lambda: first._feed._tasks)
        await first.stop()
        second = source(log, broker.url, "q2")
        await second.start()
        await until(lambda: len(stored(log)) == 50)
        await second.stop()

    asyncio.run(scenario())
    hanging.open.set()
    assert sorted(stored(log)) == list(range(50))


@pytest.mark.integration
def test_a_sink_is_confirmed_by_the_broker(broker, tmp_path):
    place = Place()
    writer = place.writer(SCHEMA)
    got = []

    async def scenario():
        cursor = FileCursor(tmp_path / "cursor")
        spec = check_sink(
            SinkSpec("S", "amqp", {"url": broker.url, "exchange": "out", "key": "v.{{v}}"})
        )
        sending = sink_class("amqp")(spec, SCHEMA, place.reader(), cursor)
        await sending.start()
        async with await aio_pika.connect(broker.url) as connection:
            channel = await connection.channel()
            queue = await channel.declare_queue("", exclusive=True)
            await queue.bind("out", "v.#")

            async def arrived(message):
                got.append((message.routing_key, message.body, message.message_id))

            await queue.consume(arrived, no_ack=True)
            writer.append(record_batch(to_arrow(SCHEMA), [0] * 2, [0] * 2, [0] * 2, [[5, 6]]))
            await until(lambda: len(got) == 2 and cursor.load() == 2)
        await sending.stop()

    asyncio.run(scenario())
    assert sorted(got) == [("v.5", b'{"v":5}', "S/0"), ("v.6", b'{"v":6}', "S/1")]
