import msgspec
import pytest

from edgewise.errors import LogCorrupt
from edgewise.event.arrow import to_arrow
from edgewise.log.frame import ProducerState
from edgewise.log.kafka_record import (
    HEADER,
    LogCheckpoint,
    RecordHeader,
    empty_header,
    parse_checkpoint,
    parse_record,
    schema_of,
    search_key,
    timestamp_of,
)
from edgewise.log.laws import SCHEMA


def test_a_record_comes_back_as_it_went():
    header = RecordHeader(10, 5, 99, 120, 3, 7, 1000, 5, "p", 4)
    record = parse_record("t", 8, [(HEADER, msgspec.msgpack.encode(header))], b"body")
    assert (record.header, record.value, record.position) == (header, b"body", 8)
    assert (record.checkpoint_at, record.size) == (7, 4)
    assert (header.next, header.clock_after) == (15, 120)


def test_a_checkpoint_knows_its_schema_and_producers():
    schema = to_arrow(SCHEMA)
    said = LogCheckpoint(schema.serialize().to_pybytes(), [ProducerState("p", [(1, 0, 2)])])
    header = RecordHeader(0, 0, 0, 0, 1, -1, 0, 0)
    headers = [(HEADER, msgspec.msgpack.encode(header))]
    record = parse_record("t", 8, headers, msgspec.msgpack.encode(said))
    assert record.checkpoint_at == 8
    assert schema_of(record).equals(schema, check_metadata=True)
    assert parse_checkpoint(record) == said


def test_a_stranger_in_the_topic_is_said():
    with pytest.raises(LogCorrupt, match="topic t, record 3: it is not from this log"):
        parse_record("t", 3, None, b"hello")


def test_the_time_index_finds_the_record_of_an_event():
    headers = [RecordHeader(at, 5, 0, 0, 1, 0, 0, 0) for at in range(0, 50, 5)]
    for offset in range(50):
        found = next(h for h in headers if timestamp_of(h) >= search_key(offset))
        assert found.first <= offset < found.next
    assert timestamp_of(empty_header()) > 0
