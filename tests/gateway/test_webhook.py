"""A sink that posts into another node's HTTP door."""

import asyncio
from contextlib import asynccontextmanager

import pytest
from tests.gateway.memory_log import MemoryLog
from tests.gateway.until import until

from edgewise.event.arrow import record_batch, to_arrow
from edgewise.event.clock import ManualClock
from edgewise.event.schema import Schema
from edgewise.gateway import drain
from edgewise.gateway.doors import check_sink, sink_class
from edgewise.gateway.drain import FileCursor
from edgewise.gateway.http import HttpDoor
from edgewise.gateway.spec import BadSpec, MapSpec, SinkSpec
from edgewise.log.memory import MemoryLog as Place

SCHEMA = Schema.of("S", v="int")


def append(place, *values):
    zeros = [0] * len(values)
    place.owner.append(record_batch(to_arrow(SCHEMA), zeros, zeros, zeros, [list(values)]))


@asynccontextmanager
async def posting(place, port, cursor, **options):
    url = f"http://127.0.0.1:{port}/streams/S"
    spec = check_sink(SinkSpec("S", "http", {"url": url, **options}))
    sink = sink_class("http")(spec, SCHEMA, place.reader(), cursor)
    await sink.start()
    try:
        yield sink
    finally:
        await sink.stop()


@pytest.fixture
def place():
    log = Place()
    log.writer(SCHEMA)
    return log


@pytest.mark.parametrize("delivery", ["at-least-once", "effectively-once"])
def test_rows_arrive_in_order_and_a_full_receiver_is_waited_out(
    place, tmp_path, monkeypatch, delivery
):
    monkeypatch.setattr(drain, "RETRY_S", (0.01,))
    far = MemoryLog(SCHEMA)
    far.full = True

    async def scenario():
        door = HttpDoor({"S": far}, ManualClock())
        port = await door.start()
        cursor = FileCursor(tmp_path / "cursor")
        append(place, *range(20))
        async with posting(place, port, cursor, delivery=delivery):
            await until(lambda: door.stats.refused_total)
            far.full = False
            await until(lambda: cursor.load() == 20)
        await door.stop()

    asyncio.run(scenario())
    assert [r["v"] for r in far.rows()] == list(range(20))


def test_effectively_once_survives_a_cursor_that_was_not_saved(place, tmp_path):
    far = MemoryLog(SCHEMA)

    async def scenario():
        door = HttpDoor({"S": far}, ManualClock())
        port = await door.start()
        append(place, 1, 2, 3)
        for name in ("first", "lost"):
            cursor = FileCursor(tmp_path / name)
            async with posting(place, port, cursor, delivery="effectively-once"):
                await until(lambda c=cursor: c.load() == place.offset)
            append(place, 4)
        await door.stop()

    asyncio.run(scenario())
    assert [r["v"] for r in far.rows()] == [1, 2, 3, 4]


def test_what_cannot_work_is_refused():
    with pytest.raises(BadSpec, match="must be http://host"):
        check_sink(SinkSpec("S", "http", {"url": "ftp://x"}))
    with pytest.raises(BadSpec, match="one of: json, csv, text; not as avro"):
        check_sink(SinkSpec("S", "http", {"url": "http://x"}, MapSpec("avro")))
