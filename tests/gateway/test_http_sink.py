"""A sink that posts into another node's ingest endpoint."""

import asyncio
from contextlib import asynccontextmanager

import pytest
from tests.support.async_until import until
from tests.support.memory_log import MemoryLog

from edgewise.event.arrow import record_batch, to_arrow
from edgewise.event.clock import ManualClock
from edgewise.event.schema import Schema
from edgewise.gateway import sink_reader
from edgewise.gateway.connectors import check_sink, load_sink_class
from edgewise.gateway.http import IngestServer
from edgewise.gateway.sink_reader import FileCursor
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
    sink = load_sink_class("http")(spec, SCHEMA, place.reader(), cursor)
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
    monkeypatch.setattr(sink_reader, "RETRY_S", (0.01,))
    far = MemoryLog(SCHEMA)
    far.full = True

    async def scenario():
        server = IngestServer({"S": far}, ManualClock())
        port = await server.start()
        cursor = FileCursor(tmp_path / "cursor")
        append(place, *range(20))
        async with posting(place, port, cursor, delivery=delivery):
            await until(lambda: server.stats.refused_total)
            far.full = False
            await until(lambda: cursor.load() == 20)
        await server.stop()

    asyncio.run(scenario())
    assert [r["v"] for r in far.rows()] == list(range(20))


def test_effectively_once_survives_a_cursor_that_was_not_saved(place, tmp_path):
    far = MemoryLog(SCHEMA)

    async def scenario():
        server = IngestServer({"S": far}, ManualClock())
        port = await server.start()
        append(place, 1, 2, 3)
        for name in ("first", "lost"):
            cursor = FileCursor(tmp_path / name)
            async with posting(place, port, cursor, delivery="effectively-once"):
                await until(lambda c=cursor: c.load() == place.offset)
            append(place, 4)
        await server.stop()

    asyncio.run(scenario())
    assert [r["v"] for r in far.rows()] == [1, 2, 3, 4]


def test_what_cannot_work_is_refused():
    with pytest.raises(BadSpec, match="must be http://host"):
        check_sink(SinkSpec("S", "http", {"url": "ftp://x"}))
    with pytest.raises(BadSpec, match="one of: json, csv, text, xml, keyvalue; not as avro"):
        check_sink(SinkSpec("S", "http", {"url": "http://x"}, MapSpec("avro")))


def test_requests_carry_the_declared_method_headers_login_and_rows(place, tmp_path):
    requests = []

    async def answer(reader, writer):
        for _ in range(2):
            head = await reader.readuntil(b"\r\n\r\n")
            size = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
            requests.append((head.decode(), (await reader.readexactly(size)).decode()))
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    async def scenario():
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        cursor = FileCursor(tmp_path / "cursor")
        append(place, 1, 2)
        options = {"method": "PUT", "headers": "'X-A:b','Content-Type:text/x'", "rows": "1"}
        async with posting(place, port, cursor, username="u", password="p", **options):
            await until(lambda: cursor.load() == 2)
        server.close()
        await server.wait_closed()

    asyncio.run(scenario())
    assert [body for _, body in requests] == ['{"v":1}\n', '{"v":2}\n']
    for head, _ in requests:
        assert head.startswith("PUT /streams/S ")
        lines = head.split("\r\n")
        assert {"X-A: b", "Content-Type: text/x", "Authorization: Basic dTpw"} <= set(lines)
