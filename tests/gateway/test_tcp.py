"""Rows over TCP from a sink to the sources of a server, by their contexts."""

import asyncio

import pytest
from tests.support.async_until import until
from tests.support.brokers import free_port
from tests.support.memory_log import MemoryLog

from edgewise.errors import SetupError
from edgewise.event.arrow import record_batch, to_arrow
from edgewise.event.clock import ManualClock
from edgewise.event.schema import Schema
from edgewise.gateway import tcp
from edgewise.gateway.connectors import check_sink, check_source
from edgewise.gateway.sink_reader import FileCursor
from edgewise.gateway.spec import BadSpec, MapSpec, SinkSpec, SourceSpec
from edgewise.log.memory import MemoryLog as SinkLog

SCHEMA = Schema.of("S", k="string", v="int")


@pytest.fixture
def sink_log():
    log = SinkLog()
    log.writer(SCHEMA)
    zeros = [0, 0]
    log.owner.append(record_batch(to_arrow(SCHEMA), [5, 6], zeros, zeros, [["a", "b"], [1, 2]]))
    return log


def build_source(log, port, stream="S", **options):
    spec = SourceSpec(stream, "tcp", {"port": str(port), **options}, MapSpec("binary"))
    return tcp.TcpSource(check_source(spec), SCHEMA, log, ManualClock(1))


def build_sink(sink_log, port, context, cursor):
    url = f"tcp://127.0.0.1:{port}/{context}"
    spec = check_sink(SinkSpec("S", "tcp", {"url": url}, MapSpec("binary")))
    return tcp.TcpSink(spec, SCHEMA, sink_log.reader(), cursor)


def test_a_sink_waits_for_its_receiver_and_rows_reach_the_source_of_their_context(
    sink_log, tmp_path, monkeypatch
):
    monkeypatch.setattr(tcp, "RETRY_S", (0.01,))
    port = free_port()
    logs = [MemoryLog(SCHEMA), MemoryLog(SCHEMA)]

    async def scenario():
        sinks = [
            build_sink(sink_log, port, context, FileCursor(tmp_path / str(number)))
            for number, context in enumerate(("in", "app/Named", "nobody"))
        ]
        for sink in sinks:
            await sink.start()
        await until(lambda: all("cannot connect" in sink.stats.failed for sink in sinks))
        sources = [
            build_source(logs[0], port, context="in"),
            build_source(logs[1], port, "Named"),
        ]
        for source in sources:
            await source.start()
        await until(lambda: all(len(log.rows()) == 2 for log in logs))
        await until(lambda: not any(sink.stats.failed for sink in sinks))
        for each in (*sinks, *sources):
            await each.stop()

    asyncio.run(scenario())
    assert [(r["k"], r["v"]) for r in logs[0].rows()] == [("a", 1), ("b", 2)]
    assert not tcp._SERVERS


def test_bytes_of_another_protocol_close_the_connection():
    port = free_port()

    async def scenario():
        source = build_source(MemoryLog(SCHEMA), port)
        await source.start()
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET / HTTP/1.1\r\n\r\n")
        assert await reader.read() == b""
        writer.close()
        await source.stop()

    asyncio.run(scenario())


def test_two_sources_cannot_have_one_context_and_a_taken_port_is_told():
    port = free_port()

    async def scenario():
        first, second = (build_source(MemoryLog(SCHEMA), port) for _ in range(2))
        await first.start()
        with pytest.raises(SetupError, match="two TCP sources"):
            await second.start()
        other = build_source(MemoryLog(SCHEMA), port, host="localhost")
        with pytest.raises(SetupError, match="cannot listen"):
            await other.start()
        for each in (first, second, other):
            await each.stop()

    asyncio.run(scenario())


@pytest.mark.parametrize(
    "spec",
    [
        SourceSpec("S", "tcp", {"port": "x"}),
        SinkSpec("S", "tcp", {"url": "http://h"}),
    ],
)
def test_options_are_checked(spec):
    with pytest.raises(BadSpec):
        (check_source if isinstance(spec, SourceSpec) else check_sink)(spec)
