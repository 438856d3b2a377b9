import asyncio

import pytest
from tests.support.amqp_cases import (
    SCHEMA,
    a_sink_is_confirmed_by_the_broker,
    publish,
    stored,
    the_broker_keeps_what_the_log_does_not_have,
)
from tests.support.async_until import until
from tests.support.brokers import free_port
from tests.support.memory_log import MemoryLog

from edgewise.errors import SetupError
from edgewise.event.clock import ManualClock
from edgewise.gateway.connectors import (
    check_sink,
    check_source,
    load_sink_class,
    load_source_class,
)
from edgewise.gateway.spec import BadSpec, SinkSpec, SourceSpec


def source(log, url, queue, **options):
    spec = check_source(SourceSpec("S", "amqp", {"url": url, "queue": queue, **options}))
    return load_source_class("amqp")(spec, SCHEMA, log, ManualClock(1000))


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
def test_messages_are_in_the_log_in_order(rabbit):
    log = MemoryLog(SCHEMA)

    async def scenario():
        consuming = source(log, rabbit.url, "q1", exchange="e1", key="in.#")
        await consuming.start()
        await publish(rabbit.url, "in.a", *range(200), b"bad", exchange="e1")
        await until(lambda: len(stored(log)) == 200 and consuming.stats.refused_total)
        await consuming.stop()

    asyncio.run(scenario())
    assert stored(log) == list(range(200))


@pytest.mark.integration
def test_the_broker_keeps_what_the_log_does_not_have(rabbit):
    the_broker_keeps_what_the_log_does_not_have(rabbit.url, "q2", source)


@pytest.mark.integration
def test_a_sink_is_confirmed_by_the_broker(rabbit, tmp_path):
    def sink(place, cursor):
        options = {"url": rabbit.url, "exchange": "out", "key": "v.{{v}}"}
        spec = check_sink(SinkSpec("S", "amqp", options))
        return load_sink_class("amqp")(spec, SCHEMA, place.reader(), cursor)

    a_sink_is_confirmed_by_the_broker(rabbit.url, "q3", sink, tmp_path)
