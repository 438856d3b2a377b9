"""The network between us and a broker, cut again and again: nothing is lost, and with an id
nothing is twice. The last line of each test is its report."""

import asyncio

import pytest
from tests.support.amqp_cases import append, publish, queue_of, stored
from tests.support.async_until import until
from tests.support.memory_log import MemoryLog
from tests.support.network_proxy import Wire

from edgewise.event.clock import ManualClock
from edgewise.event.schema import Schema
from edgewise.gateway.connectors import (
    check_sink,
    check_source,
    load_sink_class,
    load_source_class,
)
from edgewise.gateway.dedup import DedupWriter
from edgewise.gateway.sink_reader import FileCursor
from edgewise.gateway.spec import DedupSpec, SinkSpec, SourceSpec
from edgewise.log.memory import MemoryLog as Place

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]
SCHEMA = Schema.of("S", v="int")
CUTS = 5
EACH = 40
ENDS = {
    "amqp": ({"queue": "in-amqp"}, {"exchange": "out-amqp", "key": "v"}),
    "amqp1": (
        {"address": "/amq/queue/in-amqp1"},
        {"address": "/exchange/out-amqp1", "subject": "v"},
    ),
}


@pytest.mark.parametrize("kind", list(ENDS))
def test_a_source_behind_a_wire_that_is_cut_loses_and_doubles_nothing(rabbit, kind):
    log = MemoryLog(SCHEMA)
    known = DedupWriter(log, DedupSpec("v", 100_000))

    async def scenario():
        await queue_of(rabbit.url, f"in-{kind}")
        wire = Wire(rabbit.port)
        await wire.start()
        url = rabbit.url.replace(str(rabbit.port), str(wire.port))
        said = {"url": url, "dedup": "v", "delivery": "effectively-once", **ENDS[kind][0]}
        spec = check_source(SourceSpec("S", kind, said))
        consuming = load_source_class(kind)(spec, SCHEMA, known, ManualClock(1000))
        await consuming.start()
        for cut in range(CUTS):
            first = cut * EACH
            await publish(rabbit.url, f"in-{kind}", *range(first, first + EACH // 2))
            if cut % 2:  # with messages accepted, and with messages on their way
                await until(lambda first=first: len(stored(log)) >= first + EACH // 4)
            wire.cut()
            await publish(rabbit.url, f"in-{kind}", *range(first + EACH // 2, first + EACH))
            wire.mend()
        await until(lambda: len(stored(log)) == CUTS * EACH, 60)
        await consuming.stop()
        await wire.stop()
        return consuming.stats.duplicates["S"]

    again = asyncio.run(scenario())
    assert stored(log) == list(range(CUTS * EACH))
    print(f"faults: {CUTS} cuts, {kind}; events checked: {CUTS * EACH}, sent again: {again}")


@pytest.mark.parametrize("kind", list(ENDS))
def test_a_sink_behind_a_wire_that_is_cut_loses_nothing(rabbit, tmp_path, kind):
    place, log = Place(), MemoryLog(SCHEMA)
    writer = place.writer(SCHEMA)
    back = DedupWriter(log, DedupSpec("v", 100_000))

    async def scenario():
        await queue_of(rabbit.url, f"back-{kind}", f"out-{kind}", "v")
        wire = Wire(rabbit.port)
        await wire.start()
        url = rabbit.url.replace(str(rabbit.port), str(wire.port))
        spec = check_sink(SinkSpec("S", kind, {"url": url, **ENDS[kind][1]}))
        cursor = FileCursor(tmp_path / "cursor")
        sending = load_sink_class(kind)(spec, SCHEMA, place.reader(), cursor)
        await sending.start()
        said = {"url": rabbit.url, "queue": f"back-{kind}"}
        reading = check_source(SourceSpec("S", "amqp", said))
        consuming = load_source_class("amqp")(reading, SCHEMA, back, ManualClock(1000))
        await consuming.start()
        for cut in range(CUTS):
            append(writer, *range(cut * EACH, cut * EACH + EACH // 2))
            if cut % 2:
                await until(lambda cut=cut: len(stored(log)) >= cut * EACH + EACH // 4, 60)
            wire.cut()
            append(writer, *range(cut * EACH + EACH // 2, cut * EACH + EACH))
            await asyncio.sleep(0.05)
            wire.mend()
        await until(lambda: len(stored(log)) == CUTS * EACH, 60)
        await until(lambda: cursor.load() == CUTS * EACH, 60)
        await sending.stop()
        await consuming.stop()
        await wire.stop()
        return consuming.stats.duplicates["S"]

    again = asyncio.run(scenario())
    assert sorted(stored(log)) == list(range(CUTS * EACH))
    print(f"faults: {CUTS} cuts, {kind} sink; rows checked: {CUTS * EACH}, sent again: {again}")
