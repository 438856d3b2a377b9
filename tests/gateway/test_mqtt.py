import asyncio
import threading

import paho.mqtt.client as paho
import pytest
from paho.mqtt.enums import CallbackAPIVersion
from tests.support.async_until import until
from tests.support.brokers import free_port, mosquitto, tls_listener
from tests.support.memory_log import MemoryLog
from tests.support.network_proxy import Wire

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
from edgewise.gateway.spec import BadSpec, SinkSpec, SourceSpec
from edgewise.log.memory import MemoryLog as Place

SCHEMA = Schema.of("S", v="int")


def source(log, url, **options):
    options = {k.replace("_", "."): v for k, v in options.items()}
    spec = check_source(SourceSpec("S", "mqtt", {"url": url, "topic": "s/#", **options}))
    return load_source_class("mqtt")(spec, SCHEMA, log, ManualClock(1000))


def stored(log):
    return [r["v"] for r in log.rows()]


class Peer:
    """A device: another client of the same broker."""

    def __init__(self, port, version=paho.MQTTv311):
        self.got = []
        self.client = paho.Client(CallbackAPIVersion.VERSION2, protocol=version)
        self.client.on_message = lambda _c, _u, m: self.got.append((m.topic, m.payload))
        self.client.connect("127.0.0.1", port)
        self.client.loop_start()

    def publish(self, *values, qos=1, topic="s/a"):
        for value in values:
            self.client.publish(topic, b'{"v": %d}' % value, qos).wait_for_publish(10)

    def subscribe(self, topic):
        done = threading.Event()
        self.client.on_subscribe = lambda *_: done.set()
        self.client.subscribe(topic, 1)
        assert done.wait(10)

    def close(self):
        self.client.disconnect()
        self.client.loop_stop()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"url": "http://x"}, "must be mqtt://host:port"),
        ({"qos": "3"}, "qos='3' must be one of: 0, 1, 2"),
        ({"version": "4"}, "must be one of: 3.1.1, 5"),
        ({"qos": "0"}, "say delivery='at-most-once'"),
        ({"delivery": "effectively-once"}, "'effectively-once'"),
    ],
)
def test_what_mqtt_cannot_give_is_refused_before_it_starts(options, words):
    with pytest.raises(BadSpec, match=words):
        check_source(SourceSpec("S", "mqtt", {"url": "mqtt://h", "topic": "t", **options}))
    with pytest.raises(BadSpec, match=words):
        check_sink(SinkSpec("S", "mqtt", {"url": "mqtt://h", "topic": "t", **options}))


def test_no_broker_is_a_sentence():
    with pytest.raises(SetupError, match="no MQTT broker at mqtt://"):
        asyncio.run(source(MemoryLog(SCHEMA), f"mqtt://127.0.0.1:{free_port()}").start())


@pytest.mark.integration
@pytest.mark.parametrize("version", ["3.1.1", "5"])
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_messages_are_in_the_log_in_order(tmp_path, version, qos):
    log = MemoryLog(SCHEMA)

    async def scenario(broker):
        delivery = "at-most-once" if qos == 0 else "at-least-once"
        url = f"mqtt://127.0.0.1:{broker.port}"
        listening = source(log, url, version=version, qos=str(qos), delivery=delivery)
        await listening.start()
        peer = Peer(broker.port)
        await asyncio.to_thread(peer.publish, *range(100), qos=qos)
        peer.client.publish("s/a", b"bad", qos)
        await until(lambda: len(stored(log)) == 100 and listening.stats.refused_total)
        await listening.stop()
        peer.close()

    with mosquitto(tmp_path) as broker:
        asyncio.run(scenario(broker))
    assert stored(log) == list(range(100))


@pytest.mark.integration
@pytest.mark.parametrize("qos", [1, 2])
def test_the_broker_keeps_what_the_log_does_not_have(tmp_path, qos):
    """Stopped while the disk hangs: nothing was acknowledged, so all comes again."""
    hanging, log = MemoryLog(SCHEMA), MemoryLog(SCHEMA)
    hanging.open.clear()

    async def scenario(broker):
        url = f"mqtt://127.0.0.1:{broker.port}"
        first = source(hanging, url, qos=str(qos))
        await first.start()
        peer = Peer(broker.port)
        await asyncio.to_thread(peer.publish, *range(50), qos=qos)
        await until(lambda: first._held)
        await first.stop()
        second = source(log, url, qos=str(qos))
        await second.start()
        await until(lambda: len(stored(log)) == 50)
        await second.stop()
        peer.close()

    with mosquitto(tmp_path) as broker:
        asyncio.run(scenario(broker))
    hanging.open.set()
    assert stored(log) == list(range(50))


@pytest.mark.integration
def test_a_broker_that_stops_and_starts_again_loses_nothing(tmp_path):
    log = MemoryLog(SCHEMA)

    async def scenario(broker):
        listening = source(log, f"mqtt://127.0.0.1:{broker.port}")
        await listening.start()
        peer = Peer(broker.port)
        await asyncio.to_thread(peer.publish, *range(10))
        peer.close()
        broker.stop()
        broker.start()
        peer = Peer(broker.port)
        await asyncio.to_thread(peer.publish, *range(10, 20))
        await until(lambda: len(set(stored(log))) == 20)
        await listening.stop()
        peer.close()

    with mosquitto(tmp_path) as broker:
        asyncio.run(scenario(broker))
    assert sorted(set(stored(log))) == list(range(20))
    print("faults: 1 broker stopped and started, mqtt; events checked: 20")


@pytest.mark.integration
@pytest.mark.parametrize("qos", [1, 2])
def test_a_network_that_is_cut_again_and_again_loses_nothing(tmp_path, qos):
    log = MemoryLog(SCHEMA)

    async def scenario(broker):
        wire = Wire(broker.port)
        await wire.start()
        listening = source(log, f"mqtt://127.0.0.1:{wire.port}", qos=str(qos))
        await listening.start()
        peer = Peer(broker.port)
        for cut in range(3):
            await asyncio.to_thread(peer.publish, *range(cut * 20, cut * 20 + 10), qos=qos)
            wire.cut()
            await asyncio.to_thread(peer.publish, *range(cut * 20 + 10, cut * 20 + 20), qos=qos)
            wire.mend()
        await until(lambda: len(set(stored(log))) == 60, 60)
        await listening.stop()
        peer.close()
        await wire.stop()

    with mosquitto(tmp_path) as broker:
        asyncio.run(scenario(broker))
    first_times = list(dict.fromkeys(stored(log)))
    assert first_times == list(range(60))
    again = len(stored(log)) - 60
    print(f"faults: 3 cuts, mqtt QoS {qos}; events checked: 60, sent again: {again}")


@pytest.mark.integration
def test_a_shared_subscription_splits_the_load(tmp_path):
    logs = [MemoryLog(SCHEMA), MemoryLog(SCHEMA)]

    async def scenario(broker):
        url = f"mqtt://127.0.0.1:{broker.port}"
        both = [
            source(log, url, topic="$share/g/s/#", client_id=f"c{i}", version="5")
            for i, log in enumerate(logs)
        ]
        for one in both:
            await one.start()
        peer = Peer(broker.port)
        await asyncio.to_thread(peer.publish, *range(40))
        await until(lambda: sum(len(stored(log)) for log in logs) == 40)
        for one in both:
            await one.stop()
        peer.close()

    with mosquitto(tmp_path) as broker:
        asyncio.run(scenario(broker))
    assert sorted(stored(logs[0]) + stored(logs[1])) == list(range(40))
    assert stored(logs[0])
    assert stored(logs[1])


@pytest.mark.integration
# The client library leaves the socket of a failed handshake to the garbage collector.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_tls_with_a_private_authority(tmp_path):
    tls, extra = tls_listener(tmp_path)
    log = MemoryLog(SCHEMA)

    async def scenario(broker):
        listening = source(log, f"mqtts://localhost:{tls}", ca=str(tmp_path / "cert"))
        await listening.start()
        peer = Peer(broker.port)
        await asyncio.to_thread(peer.publish, 1)
        await until(lambda: stored(log) == [1])
        await listening.stop()
        peer.close()
        with pytest.raises(SetupError, match="certificate"):
            await source(log, f"mqtts://localhost:{tls}").start()

    with mosquitto(tmp_path, *extra) as broker:
        asyncio.run(scenario(broker))


@pytest.mark.integration
def test_a_sink_publishes_each_row_to_its_topic(tmp_path):
    place = Place()
    writer = place.writer(SCHEMA)

    async def scenario(broker):
        peer = Peer(broker.port)
        await asyncio.to_thread(peer.subscribe, "out/#")
        url = f"mqtt://127.0.0.1:{broker.port}"
        spec = check_sink(SinkSpec("S", "mqtt", {"url": url, "topic": "out/{{v}}"}))
        cursor = FileCursor(tmp_path / "cursor")
        sending = load_sink_class("mqtt")(spec, SCHEMA, place.reader(), cursor)
        await sending.start()
        writer.append(record_batch(to_arrow(SCHEMA), [0] * 2, [0] * 2, [0] * 2, [[5, 6]]))
        await until(lambda: len(peer.got) == 2)
        await until(lambda: cursor.load() == 2)
        await sending.stop()
        peer.close()
        return peer.got

    with mosquitto(tmp_path) as broker:
        got = asyncio.run(scenario(broker))
    assert got == [("out/5", b'{"v":5}'), ("out/6", b'{"v":6}')]


@pytest.mark.integration
def test_a_row_carries_the_key_by_which_a_receiver_drops_repeats(tmp_path):
    place = Place()
    place.writer(SCHEMA).append(
        record_batch(to_arrow(SCHEMA), [0] * 2, [0] * 2, [0] * 2, [[5, 6]])
    )

    async def scenario(broker):
        peer = Peer(broker.port, paho.MQTTv5)
        peer.client.on_message = lambda _c, _u, m: peer.got.append(dict(m.properties.UserProperty))
        await asyncio.to_thread(peer.subscribe, "out")
        options = {
            "url": f"mqtt://127.0.0.1:{broker.port}",
            "topic": "out",
            "version": "5",
            "delivery": "effectively-once",
        }
        spec = check_sink(SinkSpec("S", "mqtt", options))
        sink = load_sink_class("mqtt")(
            spec, SCHEMA, place.reader(), FileCursor(tmp_path / "cursor")
        )
        await sink.start()
        await until(lambda: len(peer.got) == 2)
        await sink.stop()
        peer.close()
        return peer.got

    with mosquitto(tmp_path) as broker:
        got = asyncio.run(scenario(broker))
    assert got == [{"producer": "S", "sequence": "0"}, {"producer": "S", "sequence": "1"}]
