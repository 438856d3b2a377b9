import asyncio

import pytest
from tests.support.amqp_cases import (
    SCHEMA,
    a_sink_is_confirmed_by_the_broker,
    publish,
    queue_of,
    stored,
    the_broker_keeps_what_the_log_does_not_have,
)
from tests.support.async_until import until
from tests.support.brokers import free_port
from tests.support.memory_log import MemoryLog

from edgewise.errors import SetupError
from edgewise.event.clock import ManualClock
from edgewise.gateway import amqp1 as module
from edgewise.gateway.connectors import (
    check_sink,
    check_source,
    load_sink_class,
    load_source_class,
)
from edgewise.gateway.spec import BadSpec, SinkSpec, SourceSpec


def source(log, url, queue, **options):
    given = {"url": url, "address": f"/amq/queue/{queue}", **options}
    spec = check_source(SourceSpec("S", "amqp1", given))
    return load_source_class("amqp1")(spec, SCHEMA, log, ManualClock(1000))


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
def test_a_queue_that_is_not_there_is_said(rabbit):
    with pytest.raises(SetupError, match="nowhere"):
        asyncio.run(source(MemoryLog(SCHEMA), rabbit.url, "nowhere").start())


@pytest.mark.integration
@pytest.mark.parametrize("delivery", ["at-least-once", "at-most-once"])
def test_messages_are_in_the_log_in_order(rabbit, delivery):
    log = MemoryLog(SCHEMA)
    name = f"one-q1-{delivery}"

    async def scenario():
        await queue_of(rabbit.url, name)
        consuming = source(log, rabbit.url, name, delivery=delivery)
        await consuming.start()
        # More than the credit: it must be given back.
        await publish(rabbit.url, name, *range(1200), b"bad")
        await until(lambda: len(stored(log)) == 1200 and consuming.stats.refused_total)
        await consuming.stop()

    asyncio.run(scenario())
    assert stored(log) == list(range(1200))


@pytest.mark.integration
def test_the_broker_keeps_what_the_log_does_not_have(rabbit):
    the_broker_keeps_what_the_log_does_not_have(rabbit.url, "one-q2", source)


@pytest.mark.integration
def test_a_sink_is_confirmed_by_the_broker(rabbit, tmp_path):
    def sink(place, cursor):
        options = {"url": rabbit.url, "address": "/exchange/out", "subject": "v.{{v}}"}
        spec = check_sink(SinkSpec("S", "amqp1", options))
        return load_sink_class("amqp1")(spec, SCHEMA, place.reader(), cursor)

    a_sink_is_confirmed_by_the_broker(rabbit.url, "one-q3", sink, tmp_path)
