"""A server of others: its messages become events, rows become its messages."""

import asyncio
from contextlib import suppress

import pytest
from tests.support.async_until import until
from tests.support.brokers import free_port
from tests.support.memory_log import MemoryLog
from websockets.asyncio.server import serve
from websockets.exceptions import ConnectionClosed

from edgewise.event.arrow import record_batch, to_arrow
from edgewise.event.clock import ManualClock
from edgewise.event.schema import Schema
from edgewise.gateway import websocket_client
from edgewise.gateway.connectors import check_sink, check_source
from edgewise.gateway.sink_reader import FileCursor
from edgewise.gateway.spec import BadSpec, SinkSpec, SourceSpec
from edgewise.gateway.websocket_client import WebSocketSink, WebSocketSource
from edgewise.log.memory import MemoryLog as SinkLog

SCHEMA = Schema.of("S", v="int")


def test_both_wait_for_the_server_and_a_source_connects_again(tmp_path, monkeypatch):
    monkeypatch.setattr(websocket_client, "RETRY_S", (0.01,))
    port, log, sink_log = free_port(), MemoryLog(SCHEMA), SinkLog()
    url = f"ws://127.0.0.1:{port}/x"
    sink_log.writer(SCHEMA)
    sink_log.owner.append(record_batch(to_arrow(SCHEMA), [0, 0], [0, 0], [0, 0], [[7, 8]]))
    got, seen = [], []

    async def answer(connection):
        with suppress(ConnectionClosed):
            await talk(connection)

    async def talk(connection):
        seen.append(connection.request.headers.get("X-From"))
        if seen[-1] == "source":
            await connection.send(f'{{"v": {len(seen)}}}')  # then it closes the connection
        else:
            while True:
                got.append(await connection.recv())

    async def scenario():
        given = {"url": url, "headers": "'X-From:source'"}
        source_spec = check_source(SourceSpec("S", "websocket", given))
        source = WebSocketSource(source_spec, SCHEMA, log, ManualClock(1))
        sink_spec = check_sink(SinkSpec("S", "websocket", {"url": url}))
        cursor = FileCursor(tmp_path / "at")
        sink = WebSocketSink(sink_spec, SCHEMA, sink_log.reader(), cursor)
        await source.start()
        await sink.start()
        await until(lambda: source.stats.failed and sink.stats.failed)
        async with serve(answer, "127.0.0.1", port):
            await until(lambda: len(log.rows()) > 1 and len(got) == 2)
            await source.stop()
            await sink.stop()

    asyncio.run(scenario())
    assert got == ['{"v":7}', '{"v":8}']


def test_an_address_that_is_no_websocket_is_refused():
    with pytest.raises(BadSpec, match="ws://"):
        check_sink(SinkSpec("S", "websocket", {"url": "http://h"}))
