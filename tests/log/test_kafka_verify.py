"""The commands for logs in Kafka, against a real broker."""

from itertools import pairwise

import msgspec
import pytest
from confluent_kafka import Producer

from edgewise.errors import LogError
from edgewise.log import kafka_verify, kafka_writer
from edgewise.log.kafka_record import HEADER, RecordHeader
from edgewise.log.kafka_verify import topic_ledgers, verify_topic
from edgewise.log.laws import SCHEMA, rows_of
from edgewise.log.places import broker_and_topic

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]


def put(broker, topic, value, header):
    producer = Producer({"bootstrap.servers": broker})
    said = [] if header is None else [(HEADER, msgspec.msgpack.encode(header))]
    producer.produce(topic, value=value, partition=0, headers=said)
    assert producer.flush(20) == 0


def test_a_good_log_is_listed_and_verified(kafka_broker, kafka_home, call, monkeypatch):
    monkeypatch.setattr(kafka_writer, "CHECKPOINT_RECORDS", 6)
    for start in (0, 60):
        writer = kafka_home.writer(SCHEMA)
        for at in range(start, start + 60, 10):
            writer.append(rows_of(list(range(at, at + 10))))
        writer.close()
    broker, topic = broker_and_topic(kafka_home.place)
    found = topic_ledgers(broker, topic)
    assert [(e.first, e.end) for e in found][-1] == (found[-1].first, 120)
    assert all(a.end == b.first for a, b in pairwise(found))
    assert (found[0].first, found[0].epochs[0], found[-1].epochs[1]) == (0, 1, 2)
    assert [e.sealed for e in found] == [True] * (len(found) - 1) + [False]
    code, out = call("list", kafka_home.place)
    assert code == 0
    out_head = out.splitlines()[0]
    assert out_head.startswith(f"{kafka_home.place}: 120 events, {len(found)} ledgers")
    assert "1970-01-01T00:00:00.119Z" in out.splitlines()[-1]
    code, out = call("verify", kafka_home.place)
    assert (code, out.count("120 events")) == (0, 1)
    assert out.strip().endswith(": good")
    put(broker, "not-a-log", b"x", None)
    looked = kafka_verify._is
    ours = {topic, "not-a-log"}  # of the broker that all tests share
    monkeypatch.setattr(kafka_verify, "_is", lambda b, name: name in ours and looked(b, name))
    listed = call("list", f"kafka://{kafka_broker.address}")[1]
    assert [line for line in listed.splitlines() if "kafka://" in line] == [out_head]


def test_all_that_is_wrong_is_said_and_where(kafka_home):
    writer = kafka_home.writer(SCHEMA)
    writer.append(rows_of([1, 2, 3]))
    writer.close()
    broker, topic = broker_and_topic(kafka_home.place)
    put(broker, topic, b"x", None)
    put(broker, topic, b"y", RecordHeader(9, 4, 3, 8, 1, 0, 100, 0))
    report = verify_topic(broker, topic)
    foreign, hole, value = (str(f) for f in report.findings)
    assert "it is not from this log" in foreign
    assert "offset 9 follows 3" in hole
    assert "its value cannot be read" in value


def test_no_log_is_said(kafka_broker, call):
    with pytest.raises(LogError, match="there is no topic nothing"):
        call("verify", f"kafka://{kafka_broker.address}/nothing")
    with pytest.raises(LogError, match="there is no topic nothing"):
        call("list", f"kafka://{kafka_broker.address}/nothing")
