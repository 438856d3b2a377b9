"""ZeroMQ needs no broker: both ends are real sockets."""

import asyncio

import pytest
import zmq
import zmq.asyncio
from tests.support.async_until import until
from tests.support.memory_log import MemoryLog

from edgewise.errors import SetupError
from edgewise.event.arrow import record_batch, to_arrow
from edgewise.event.clock import ManualClock
from edgewise.event.schema import Schema
from edgewise.gateway.connectors import (
    check_sink,
    check_source,
    load_sink_class,
    load_source_class,
)
from edgewise.gateway.sink_reader import FileCursor
from edgewise.gateway.spec import BadSpec, MapSpec, SinkSpec, SourceSpec
from edgewise.log.memory import MemoryLog as Place

SCHEMA = Schema.of("S", v="int")


def source(log, **options):
    spec = check_source(SourceSpec("S", "zeromq", options))
    return load_source_class("zeromq")(spec, SCHEMA, log, ManualClock(1000))


def stored(log):
    return [r["v"] for r in log.rows()]


def test_pulled_messages_are_in_the_log_in_order(tmp_path):
    log = MemoryLog(SCHEMA)
    url = f"ipc://{tmp_path}/pull"

    async def scenario():
        pulling = source(log, url=url, socket="pull", mode="bind")
        await pulling.start()
        with zmq.asyncio.Context.instance().socket(zmq.PUSH) as push:
            push.connect(url)
            for i in range(300):
                await push.send(b'{"v": %d}' % i)
            await push.send(b"bad")
            await until(lambda: pulling.stats.refused_total and len(stored(log)) == 300)
        await pulling.stop()

    asyncio.run(scenario())
    assert stored(log) == list(range(300))


def test_subscribed_topics_only(tmp_path):
    log = MemoryLog(SCHEMA)
    url = f"ipc://{tmp_path}/pub"

    async def scenario():
        with zmq.asyncio.Context.instance().socket(zmq.XPUB) as pub:
            pub.bind(url)
            listening = source(log, url=url, topic="a, b")
            await listening.start()
            await pub.recv()
            await pub.recv()
            for topic, value in ((b"a", 1), (b"x", 2), (b"b", 3)):
                await pub.send_multipart([topic, b'{"v": %d}' % value])
            await until(lambda: len(stored(log)) == 2)
            await listening.stop()

    asyncio.run(scenario())
    assert stored(log) == [1, 3]


def test_a_sink_pushes_the_rows_of_a_log(tmp_path):
    place = Place()
    writer = place.writer(SCHEMA)
    url = f"ipc://{tmp_path}/push"
    spec = check_sink(SinkSpec("S", "zeromq", {"url": url, "socket": "push"}, MapSpec("text")))

    async def scenario():
        pushing = load_sink_class("zeromq")(
            spec, SCHEMA, place.reader(), FileCursor(tmp_path / "cursor")
        )
        await pushing.start()
        with zmq.asyncio.Context.instance().socket(zmq.PULL) as pull:
            pull.connect(url)
            writer.append(record_batch(to_arrow(SCHEMA), [0] * 2, [0] * 2, [0] * 2, [[5, 6]]))
            async with asyncio.timeout(10):
                assert [await pull.recv(), await pull.recv()] == [b"5", b"6"]
        await pushing.stop()

    asyncio.run(scenario())


def test_more_than_at_most_once_is_refused_before_it_starts():
    for check, spec in ((check_source, SourceSpec), (check_sink, SinkSpec)):
        with pytest.raises(BadSpec, match="'zeromq' cannot give 'at-least-once'"):
            check(spec("S", "zeromq", {"url": "ipc://x", "delivery": "at-least-once"}))


def test_what_cannot_work_is_said():
    log = MemoryLog(SCHEMA)
    with pytest.raises(BadSpec, match="must be one of: sub, pull"):
        source(log, url="ipc://x", socket="req")
    with pytest.raises(SetupError, match="ZeroMQ cannot bind to 'nowhere'"):
        asyncio.run(source(log, url="nowhere", mode="bind").start())
