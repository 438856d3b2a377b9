import asyncio

import aio_pika
import pytest
from tests.gateway.brokers import RabbitMq, free_port
from tests.gateway.memory_log import MemoryLog
from tests.gateway.test_amqp import publish, stored
from tests.gateway.until import until

from edgewise.errors import SetupError
from edgewise.event.arrow import record_batch, to_arrow
from edgewise.event.clock import ManualClock
from edgewise.event.schema import Schema
from edgewise.gateway import amqp1 as module
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
    given = {"url": url, "address": f"/amq/queue/{queue}", **options}
    spec = check_source(SourceSpec("S", "amqp1", given))
    return source_class("amqp1")(spec, SCHEMA, log, ManualClock(1000))


def sink(place, url, cursor, **options):
    spec = check_sink(SinkSpec("S", "amqp1", {"url": url, **options}))
    return sink_class("amqp1")(spec, SCHEMA, place.reader(), cursor)


def append(writer, *values):
    count = len(values)
    writer.append(
        record_batch(to_arrow(SCHEMA), [0] * count, [0] * count, [0] * count, [list(values)])
    )


async def queue_of(url, name, exchange="", key=""):
    async with await aio_pika.connect(url) as connection:
        channel = await connection.channel()
        queue = await channel.declare_queue(name, durable=True)
        if exchange:
            kind = aio_pika.ExchangeType.TOPIC
            await queue.bind(await channel.declare_exchange(exchange, kind, durable=True), key)
        return queue


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"url": "http://x"}, "must be amqp://host"),
        ({"address": ""}, "names no node"),
        ({"delivery": "effectively-once"}, "'amqp1' cannot give 'effectively-once'"),
    ],
)
def test_what_amqp_cannot_give_is_refused_before_it_starts(options, words):
    given = {"url": "amqp://h", "address": "q", **options}
    with pytest.raises(BadSpec, match=words):
        check_source(SourceSpec("S", "amqp1", given))
    with pytest.raises(BadSpec, match=words):
        check_sink(SinkSpec("S", "amqp1", given))


def test_a_client_that_is_not_installed_is_named(monkeypatch):
    monkeypatch.setattr(module, "find_spec", lambda _name: None)
    with pytest.raises(SetupError, match=r"pip install 'edgewise\[amqp1\]'"):
        source(MemoryLog(SCHEMA), "amqp://127.0.0.1", "q")


@pytest.mark.integration  # the client is only there with the set-up of integration tests
def test_no_broker_is_a_sentence():
    port = free_port()
    with pytest.raises(SetupError, match=f"no AMQP 1.0 broker at 127.0.0.1:{port}"):
        asyncio.run(source(MemoryLog(SCHEMA), f"amqp://127.0.0.1:{port}", "q").start())


@pytest.mark.integration
def test_a_queue_that_is_not_there_is_said(broker):
    with pytest.raises(SetupError, match="nowhere"):
        asyncio.run(source(MemoryLog(SCHEMA), broker.url, "nowhere").start())


@pytest.mark.integration
@pytest.mark.parametrize("delivery", ["at-least-once", "at-most-once"])
def test_messages_are_in_the_log_in_order(broker, delivery):
    log = MemoryLog(SCHEMA)
    name = f"q1-{delivery}"

    async def scenario():
        await queue_of(broker.url, name)
        consuming = source(log, broker.url, name, delivery=delivery)
        await consuming.start()
        # More than the credit: it must be given back.
        await publish(broker.url, name, *range(1200), b"bad")
        await until(lambda: len(stored(log)) == 1200 and consuming.stats.refused_total)
        await consuming.stop()

    asyncio.run(scenario())
    assert stored(log) == list(range(1200))


@pytest.mark.integration
def test_the_broker_keeps_what_the_log_does_not_have(broker):
    hanging, log = MemoryLog(SCHEMA), MemoryLog(SCHEMA)
    hanging.open.clear()

    async def scenario():
        await queue_of(broker.url, "q2")
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
        await queue_of(broker.url, "q3", "out", "v.#")
        sending = sink(place, broker.url, cursor, address="/exchange/out", subject="v.{{v}}")
        await sending.start()
        async with await aio_pika.connect(broker.url) as connection:
            queue = await (await connection.channel()).get_queue("q3")

            async def arrived(message):
                got.append((message.routing_key, message.body, message.message_id))

            await queue.consume(arrived, no_ack=True)
            append(writer, 5, 6)
            await until(lambda: len(got) == 2 and cursor.load() == 2)
        await sending.stop()

    asyncio.run(scenario())
    assert got == [("v.5", b'{"v":5}', "S/0"), ("v.6", b'{"v":6}', "S/1")]
