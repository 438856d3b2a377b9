import asyncio

from tests.support.async_until import until

from edgewise.event.arrow import record_batch, to_arrow
from edgewise.event.schema import Schema
from edgewise.gateway import sink_reader as module
from edgewise.gateway.connectors import check_sink
from edgewise.gateway.sink_reader import FileCursor, SinkReader, Undelivered
from edgewise.gateway.spec import MapSpec, SinkSpec
from edgewise.log.api import LogConfig
from edgewise.log.memory import MemoryLog

SCHEMA = Schema.of("S", v="int")


def rows(*values, kind=0):
    zeros = [0] * len(values)
    return record_batch(to_arrow(SCHEMA), zeros, zeros, [kind] * len(values), [list(values)])


def drain(log, cursor, delivery="at-least-once"):
    return SinkReader(SinkSpec("S", "test", {"delivery": delivery}), SCHEMA, log.reader(), cursor)


def test_rows_are_delivered_in_order_and_a_restart_goes_on(tmp_path):
    log = MemoryLog()
    writer = log.writer(SCHEMA)
    cursor = FileCursor(tmp_path / "cursor")
    got = []

    async def deliver(messages):
        got.extend((m.offset, m.payload) for m in messages)

    async def scenario():
        writer.append(rows(1, 2))
        writer.append(rows(9, kind=1))
        first = drain(log, cursor)
        first.start(deliver)
        await until(lambda: len(got) == 2)
        writer.append(rows(3))
        await until(lambda: len(got) == 3)
        await until(lambda: cursor.load() == 4)
        await first.stop()
        writer.append(rows(4))
        second = drain(log, cursor)
        second.start(deliver)
        await until(lambda: len(got) == 4)
        await second.stop()
        assert second.stats.accepted["S"] == 1

    asyncio.run(scenario())
    assert got == [(0, b'{"v":1}'), (1, b'{"v":2}'), (3, b'{"v":3}'), (4, b'{"v":4}')]


def test_what_was_not_delivered_is_tried_again(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "RETRY_S", (0,))
    log = MemoryLog()
    log.writer(SCHEMA).append(rows(1))
    cursor = FileCursor(tmp_path / "cursor")
    tries = []

    async def deliver(messages):
        tries.append(cursor.load())
        if len(tries) < 4:
            raise Undelivered("no")

    async def scenario():
        draining = drain(log, cursor)
        draining.start(deliver)
        await until(lambda: cursor.load() == 1)
        await draining.stop()

    asyncio.run(scenario())
    assert tries == [-1, -1, -1, -1]


def test_at_most_once_saves_first_and_never_repeats(tmp_path):
    log = MemoryLog()
    log.writer(SCHEMA).append(rows(1))
    cursor = FileCursor(tmp_path / "cursor")
    tries = []

    async def deliver(messages):
        tries.append(cursor.load())
        raise Undelivered("no")

    async def scenario():
        draining = drain(log, cursor, "at-most-once")
        draining.start(deliver)
        await until(lambda: draining.stats.refused_total)
        await draining.stop()

    asyncio.run(scenario())
    assert tries == [1]


def test_rows_that_retention_removed_are_said_and_skipped(tmp_path, caplog):
    log = MemoryLog()
    writer = log.writer(SCHEMA, LogConfig(retain_bytes=1))
    cursor = FileCursor(tmp_path / "cursor")
    for value in range(5):
        writer.append(rows(value))
    writer.retain(0)
    got = []

    async def deliver(messages):
        got.extend(m.offset for m in messages)

    async def scenario():
        draining = drain(log, cursor)
        draining.start(deliver)
        await until(lambda: got)
        await draining.stop()

    asyncio.run(scenario())
    assert got == [4]
    assert "offsets 0 to 4 were removed" in caplog.text


def test_a_row_that_cannot_be_mapped_is_said_and_does_not_stop_the_rest(tmp_path, caplog):
    log = MemoryLog()
    log.writer(SCHEMA).append(rows(1, 70_000, 2))
    spec = SinkSpec("S", "test", {}, MapSpec("binary", {"layout": "<h"}))
    got = []

    async def deliver(messages):
        got.extend(m.payload for m in messages)

    async def scenario():
        draining = SinkReader(spec, SCHEMA, log.reader(), FileCursor(tmp_path / "cursor"))
        draining.start(deliver)
        await until(lambda: len(got) == 2)
        await draining.stop()
        assert draining.stats.refused == {("S", "unmappable"): 1}

    asyncio.run(scenario())
    assert got == [b"\x01\x00", b"\x02\x00"]
    assert "cannot map offset 1" in caplog.text


def test_rows_that_cannot_be_delivered_are_dropped_where_the_app_says_so(tmp_path):
    schema = Schema.of("S", v="int")
    log, cursor = MemoryLog(), FileCursor(tmp_path / "at")
    log.writer(schema)
    log.owner.append(record_batch(to_arrow(schema), [0, 0], [0, 0], [0, 0], [[1, 2]]))
    options = {"on.error": "LOG", "url": "http://127.0.0.1:1"}
    reader = SinkReader(check_sink(SinkSpec("S", "http", options)), schema, log.reader(), cursor)

    async def fail(_messages):
        raise Undelivered("nobody there")

    async def scenario():
        reader.start(fail)
        await until(lambda: cursor.load() == 2)
        await reader.stop()

    asyncio.run(scenario())
    assert reader.stats.refused["S", "undelivered"] == 2
