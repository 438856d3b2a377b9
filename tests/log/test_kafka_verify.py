"""The commands for logs in Kafka, against a real broker."""

from itertools import pairwise

import msgspec
import pytest
from confluent_kafka import Producer

from edgewise.errors import LogError
from edgewise.log import kafka_verify, kafka_writer
from edgewise.log.kafka_record import HEADER, RecordHeader
from edgewise.log.kafka_verify import list_topic_ledgers, verify_topic
from edgewise.log.laws import SCHEMA, make_rows
from edgewise.log.locations import parse_kafka_location

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]


def put(broker, topic, value, header):
    producer = Producer({"bootstrap.servers": broker})
    said = [] if header is None else [(HEADER, msgspec.msgpack.encode(header))]
    producer.produce(topic, value=value, partition=0, headers=said)
    assert producer.flush(20) == 0


def test_a_good_log_is_listed_and_verified(kafka_broker, kafka_subject, call, monkeypatch):
    monkeypatch.setattr(kafka_writer, "CHECKPOINT_RECORDS", 6)
    for start in (0, 60):
        writer = kafka_subject.writer(SCHEMA)
        for at in range(start, start + 60, 10):
            writer.append(make_rows(list(range(at, at + 10))))
        writer.close()
    broker, topic = parse_kafka_location(kafka_subject.place)
    found = list_topic_ledgers(broker, topic)
    assert [(e.first, e.end) for e in found][-1] == (found[-1].first, 120)
    assert all(a.end == b.first for a, b in pairwise(found))
    assert (found[0].first, found[0].epochs[0], found[-1].epochs[1]) == (0, 1, 2)
    assert [e.sealed for e in found] == [True] * (len(found) - 1) + [False]
    code, out = call("list", kafka_subject.place)
    assert code == 0
    out_head = out.splitlines()[0]
    assert out_head.startswith(f"{kafka_subject.place}: 120 events, {len(found)} ledgers")
    assert "1970-01-01T00:00:00.119Z" in out.splitlines()[-1]
    code, out = call("verify", kafka_subject.place)
    assert (code, out.count("120 events")) == (0, 1)
    assert out.strip().endswith(": good")
    put(broker, "not-a-log", b"x", None)
    is_log = kafka_verify._is_log
    ours = {topic, "not-a-log"}  # of the broker that all tests share
    monkeypatch.setattr(kafka_verify, "_is_log", lambda b, n: n in ours and is_log(b, n))
    listed = call("list", f"kafka://{kafka_broker.address}")[1]
    assert [line for line in listed.splitlines() if "kafka://" in line] == [out_head]


def test_all_that_is_wrong_is_said_and_where(kafka_subject):
    writer = kafka_subject.writer(SCHEMA)
    writer.append(make_rows([1, 2, 3]))
    writer.close()
    broker, topic = parse_kafka_location(kafka_subject.place)
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
