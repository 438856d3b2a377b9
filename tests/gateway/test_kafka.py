import asyncio

import pytest
from tests.support.async_until import until
from tests.support.brokers import free_port
from tests.support.memory_log import MemoryLog

from edgewise.errors import SetupError
from edgewise.event.arrow import record_batch, to_arrow
from edgewise.event.clock import ManualClock
from edgewise.event.schema import Schema
from edgewise.gateway import kafka as module
from edgewise.gateway.connectors import (
    check_sink,
    check_source,
    load_sink_class,
    load_source_class,
)
from edgewise.gateway.sink_reader import FileCursor
from edgewise.gateway.spec import BadSpec, SinkSpec, SourceSpec
from edgewise.log.memory import MemoryLog as Place

SCHEMA = Schema.of("S", v="int")


@pytest.fixture
def broker(kafka_broker):
    return kafka_broker


def source(log, servers, topic, **options):
    spec = check_source(SourceSpec("S", "kafka", {"servers": servers, "topic": topic, **options}))
    return load_source_class("kafka")(spec, SCHEMA, log, ManualClock(1000))


def sink(place, servers, topic, cursor, **options):
    spec = check_sink(SinkSpec("S", "kafka", {"servers": servers, "topic": topic, **options}))
    return load_sink_class("kafka")(spec, SCHEMA, place.reader(), cursor)


def stored(log):
    return [r["v"] for r in log.rows()]


def make_topic(servers, name, partitions=1):
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": servers})
    for future in admin.create_topics([NewTopic(name, partitions, 1)]).values():
        future.result(30)


def publish(servers, topic, *values, partition=0):
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": servers})
    for value in values:
        body = b'{"v": %d}' % value if isinstance(value, int) else value
        producer.produce(topic, body, partition=partition)
    assert producer.flush(30) == 0


def append(place, *values):
    zeros = [0] * len(values)
    place.owner.append(record_batch(to_arrow(SCHEMA), zeros, zeros, zeros, [list(values)]))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"servers": "nowhere"}, "must be host:port"),
        ({"topic": ""}, "names no topic"),
        ({"delivery": "at-most-once"}, "'kafka' cannot give 'at-most-once'"),
    ],
)
def test_what_cannot_work_is_refused_before_it_starts(options, words):
    given = {"servers": "h:1", "topic": "t", **options}
    with pytest.raises(BadSpec, match=words):
        check_source(SourceSpec("S", "kafka", given))
    with pytest.raises(BadSpec, match=words):
        check_sink(SinkSpec("S", "kafka", given))


def test_no_broker_is_a_sentence(monkeypatch):
    monkeypatch.setattr(module, "ANSWER_S", 0.2)
    with pytest.raises(SetupError, match="no Kafka at 127"):
        asyncio.run(source(MemoryLog(SCHEMA), f"127.0.0.1:{free_port()}", "t").start())


@pytest.mark.integration
def test_all_partitions_are_read_and_a_restart_repeats_nothing(broker):
    log = MemoryLog(SCHEMA)
    make_topic(broker.address, "in", 2)

    async def scenario():
        publish(broker.address, "in", *range(100), partition=0)
        publish(broker.address, "in", *range(100, 150), b"bad", partition=1)
        first = source(log, broker.address, "in")
        await first.start()
        await until(lambda: len(stored(log)) == 150 and first.stats.refused_total == 1, 60)
        await first.stop()
        publish(broker.address, "in", 200, partition=1)
        second = source(log, broker.address, "in")
        await second.start()
        await until(lambda: 200 in stored(log), 60)
        await second.stop()

    asyncio.run(scenario())
    got = stored(log)
    assert [v for v in got if v < 100] == list(range(100))
    assert [v for v in got if v >= 100] == [*range(100, 150), 200]


@pytest.mark.integration
def test_a_topic_that_is_not_there_is_said(broker):
    with pytest.raises(SetupError, match="nowhere"):
        asyncio.run(source(MemoryLog(SCHEMA), broker.address, "nowhere").start())


@pytest.mark.integration
@pytest.mark.parametrize("delivery", ["effectively-once", "at-least-once"])
def test_rows_of_a_log_arrive_and_a_lost_cursor_doubles_nothing(broker, tmp_path, delivery):
    place, log = Place(), MemoryLog(SCHEMA)
    place.writer(SCHEMA)
    topic = f"out-{delivery}"
    make_topic(broker.address, topic)

    async def scenario():
        back = source(log, broker.address, topic)
        await back.start()
        append(place, *range(50))
        for name in ("one", "lost"):
            cursor = FileCursor(tmp_path / name)
            sending = sink(place, broker.address, topic, cursor, delivery=delivery, key="{{v}}")
            await sending.start()
            await until(lambda c=cursor: c.load() == place.offset, 60)
            await sending.stop()
            append(place, 50)
        await until(lambda: 50 in stored(log), 60)
        await back.stop()

    asyncio.run(scenario())
    if delivery == "effectively-once":
        assert stored(log) == list(range(51))
    else:
        assert sorted(set(stored(log))) == list(range(51))


@pytest.mark.integration
def test_a_broker_that_stops_and_starts_again_loses_and_doubles_nothing(
    broker, tmp_path, monkeypatch
):
    monkeypatch.setattr(module, "ANSWER_S", 5.0)
    place, log = Place(), MemoryLog(SCHEMA)
    place.writer(SCHEMA)
    make_topic(broker.address, "cut")

    async def scenario():
        back = source(log, broker.address, "cut")
        await back.start()
        cursor = FileCursor(tmp_path / "cursor")
        sending = sink(place, broker.address, "cut", cursor)
        await sending.start()
        append(place, *range(20))
        await until(lambda: len(stored(log)) == 20, 60)
        await asyncio.to_thread(broker.stop)
        append(place, *range(20, 40))
        await asyncio.to_thread(broker.start)
        await until(lambda: len(stored(log)) >= 40, 60)
        await sending.stop()
        await back.stop()

    asyncio.run(scenario())
    assert stored(log) == list(range(40))
    print("faults: 1 broker stopped and started, kafka; rows checked: 40")


@pytest.mark.integration
def test_a_source_reads_several_topics(broker):
    log = MemoryLog(SCHEMA)
    for topic, value in (("several-a", 1), ("several-b", 2)):
        make_topic(broker.address, topic)
        publish(broker.address, topic, value)

    async def scenario():
        reading = source(log, broker.address, "several-a, several-b")
        await reading.start()
        await until(lambda: sorted(stored(log)) == [1, 2])
        await reading.stop()
        with pytest.raises(SetupError, match="has no topic 'several-c'"):
            await source(log, broker.address, "several-a,several-c").start()

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("options", "settings"),
    [
        ({}, {}),
        ({"security": "ssl"}, {"security.protocol": "ssl"}),
        (
            {"security": "sasl_ssl", "username": "u", "password": "p"},
            {
                "security.protocol": "sasl_ssl",
                "sasl.mechanisms": "PLAIN",
                "sasl.username": "u",
                "sasl.password": "p",
            },
        ),
    ],
)
def test_tls_and_log_in_are_settings_of_the_client(options, settings):
    spec = check_source(SourceSpec("S", "kafka", {"servers": "h:1", "topic": "t", **options}))
    assert module.build_security(spec.options) == settings
    # The client itself refuses a name or a value that it does not know.
    module.Consumer({"bootstrap.servers": "h:1", "group.id": "g", **settings}).close()


def test_a_log_in_without_a_name_is_refused():
    with pytest.raises(BadSpec, match="needs username"):
        check_source(
            SourceSpec("S", "kafka", {"servers": "h:1", "topic": "t", "security": "sasl_ssl"})
        )
