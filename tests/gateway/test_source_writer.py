import asyncio
import logging

from tests.support.async_until import until
from tests.support.memory_log import MemoryLog

from edgewise.errors import LogCorrupt, LogError
from edgewise.event.clock import ManualClock
from edgewise.event.schema import Schema
from edgewise.gateway import source_writer as module
from edgewise.gateway.source_writer import SourceWriter
from edgewise.gateway.spec import SourceSpec

SCHEMA = Schema.of("S", v="int")


def make(log):
    return SourceWriter(SourceSpec("S", "test"), SCHEMA, log, ManualClock(9000))


def test_a_message_is_taken_when_it_is_durable_or_refused_and_said(caplog):
    log = MemoryLog(SCHEMA)

    async def scenario():
        feed = make(log)
        assert await feed.accept(b'{"v": 1}')
        assert not await feed.accept(b'{"v": "x"}')
        assert not await feed.accept(b'{"v": "y"}')
        await feed.close()
        return feed.stats

    with caplog.at_level(logging.WARNING):
        stats = asyncio.run(scenario())
    assert [r["v"] for r in log.rows()] == [1]
    assert (stats.accepted_total, stats.refused_total) == (1, 2)
    assert len(caplog.records) == 1
    assert "field 'v': expected int, got a string" in caplog.text


def test_a_full_disk_is_waited_out_and_said_once(monkeypatch, caplog):
    log = MemoryLog(SCHEMA)
    log.full = True
    monkeypatch.setattr(module, "RETRY_S", 0)

    async def scenario():
        feed = make(log)
        task = asyncio.create_task(feed.accept(b'{"v": 1}'))
        await until(lambda: "waits for its log" in caplog.text)
        assert not task.done()
        log.full = False
        assert await task
        await feed.close()

    asyncio.run(scenario())
    assert [r["v"] for r in log.rows()] == [1]
    assert caplog.text.count("waits for its log") == 1
    assert "the log accepts events again" in caplog.text


def test_what_a_producer_sends_again_is_counted_as_duplicate():
    log = MemoryLog(SCHEMA)

    async def scenario():
        feed = make(log)
        for _ in range(2):
            await feed.accept(b'{"v": 1}', producer="p", sequence=1)
        await feed.close()
        assert (feed.stats.accepted["S"], feed.stats.duplicates["S"]) == (1, 1)

    asyncio.run(scenario())
    assert len(log.rows()) == 1


def test_a_log_that_takes_nothing_is_said_and_waited_for(monkeypatch):
    log = MemoryLog(SCHEMA)
    monkeypatch.setattr(module, "RETRY_S", 0.01)

    def broken(*_args, **_named):
        raise LogError("the broker is away")

    log.append, taking = broken, log.append

    async def scenario():
        feed = make(log)
        acknowledged = []
        await feed.offer(b'{"v": 1}', lambda: acknowledged.append(1))
        await until(lambda: feed.stats.failed == "waits for its log: the broker is away")
        assert not acknowledged
        log.append = taking
        await until(lambda: acknowledged)
        assert not feed.stats.failed
        await feed.close()

    asyncio.run(scenario())
    assert [r["v"] for r in log.rows()] == [1]


def test_a_damaged_log_is_not_waited_for():
    log = MemoryLog(SCHEMA)

    def damaged(*_args, **_named):
        raise LogCorrupt("byte 7")

    log.append = damaged

    async def scenario():
        feed = make(log)
        acknowledged = []
        await feed.offer(b'{"v": 1}', lambda: acknowledged.append(1))
        await until(lambda: "LogCorrupt" in feed.stats.failed)
        await feed.close()
        assert not acknowledged

    asyncio.run(scenario())
