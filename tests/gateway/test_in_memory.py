import asyncio

import pytest
from tests.support.async_until import until
from tests.support.memory_log import MemoryLog

from edgewise.event.arrow import record_batch, to_arrow
from edgewise.event.clock import ManualClock
from edgewise.event.schema import Schema
from edgewise.gateway.connectors import check_sink, check_source
from edgewise.gateway.in_memory import InMemorySink, InMemorySource
from edgewise.gateway.sink_reader import FileCursor
from edgewise.gateway.spec import MapSpec, SinkSpec, SourceSpec
from edgewise.log.memory import MemoryLog as SinkLog

OUT = Schema.of("Out", k="string", data="object")
IN = Schema.of("In", k="string", data="object")


@pytest.fixture
def sink_log():
    log = SinkLog()
    log.writer(OUT)
    return log


def append(log, *rows):
    zeros = [0] * len(rows)
    columns = [list(column) for column in zip(*rows, strict=True)]
    times = [1000 + number for number in range(len(rows))]
    log.owner.append(record_batch(to_arrow(OUT), times, zeros, zeros, columns))


def source(log, mapping, topic="t"):
    spec = check_source(SourceSpec("In", "inMemory", {"topic": topic}, mapping))
    return InMemorySource(spec, IN, log, ManualClock(1))


def run(sink_log, cursor, sources, mapping):
    spec = check_sink(SinkSpec("Out", "inMemory", {"topic": "t"}, mapping))

    async def scenario():
        sink = InMemorySink(spec, OUT, sink_log.reader(), cursor)
        for each in sources:
            await each.start()
        await sink.start()
        await until(lambda: cursor.load() == sink_log.offset)
        await sink.stop()
        for each in sources:
            await each.stop()

    asyncio.run(scenario())


@pytest.mark.parametrize("mapping", [MapSpec("passThrough"), MapSpec("json")])
def test_rows_of_a_sink_become_events_of_every_source_of_its_topic(sink_log, tmp_path, mapping):
    logs = [MemoryLog(IN), MemoryLog(IN), MemoryLog(IN)]
    append(sink_log, ("a", '{"x":1}'), (None, None))

    async def build():
        return [source(log, mapping, topic) for log, topic in zip(logs, "ttu", strict=True)]

    run(sink_log, FileCursor(tmp_path / "c"), asyncio.run(build()), mapping)
    wanted = [("a", '{"x":1}'), (None, None)]
    assert [(r["k"], r["data"]) for r in logs[0].rows()] == wanted
    assert [(r["k"], r["data"]) for r in logs[1].rows()] == wanted
    assert logs[2].rows() == []
    if mapping.type == "passThrough":
        assert [r["_ts"] for r in logs[0].rows()] == [1000, 1001]


def test_rows_that_are_delivered_again_are_appended_once(sink_log, tmp_path):
    log = MemoryLog(IN)
    append(sink_log, ("a", None), ("b", None))

    async def build():
        return source(log, MapSpec("passThrough"))

    run(sink_log, FileCursor(tmp_path / "c"), [asyncio.run(build())], MapSpec("passThrough"))
    append(sink_log, ("c", None))
    lost = FileCursor(tmp_path / "lost")  # as after a crash before the cursor was saved
    run(sink_log, lost, [asyncio.run(build())], MapSpec("passThrough"))
    assert [r["k"] for r in log.rows()] == ["a", "b", "c"]


def test_rows_of_a_topic_without_a_source_go_nowhere(sink_log, tmp_path):
    append(sink_log, ("a", None))
    cursor = FileCursor(tmp_path / "c")
    run(sink_log, cursor, [], MapSpec("passThrough"))
    assert cursor.load() == 1
