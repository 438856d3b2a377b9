import msgspec
import pytest
from confluent_kafka import KafkaError, KafkaException

from edgewise.errors import LogError
from edgewise.log.kafka_reader import LogTopic
from edgewise.log.kafka_record import HEADER, RecordHeader
from edgewise.log.locations import open_reader


class Forgetful:
    """A client that was told by a broker that just came back that there is no such topic."""

    def __init__(self, *, gone=False):
        self.known = False
        self.gone = gone

    def get_watermark_offsets(self, _place, timeout):
        assert timeout
        if not self.known:
            raise KafkaException(KafkaError(KafkaError._UNKNOWN_PARTITION))
        return 3, 9

    def list_topics(self, name, timeout):
        assert (name, timeout > 0) == ("t", True)
        self.known = not self.gone


def test_a_topic_that_seems_to_be_gone_is_looked_for_again():
    topic = LogTopic("127.0.0.1:1", "t")
    topic.close()
    topic._consumer = Forgetful()
    assert topic.range() == (3, 9)
    topic._consumer = Forgetful(gone=True)
    with pytest.raises(LogError, match="there is no topic t"):
        topic.range()


class Said:
    """A message of the client: a record, or an error in its place."""

    def __init__(self, position, error=None):
        self._position = position
        self._error = error

    def error(self):
        return None if self._error is None else KafkaError(self._error)

    def offset(self):
        return self._position

    def headers(self):
        header = RecordHeader(self._position, 1, 0, 0, 1, 0, 0, 0)
        return [(HEADER, msgspec.msgpack.encode(header))]

    def value(self):
        return b""


class Answering:
    """A client that has these messages, one to poll for and the rest at once."""

    def __init__(self, *messages):
        self.messages = list(messages)

    def assign(self, _places):
        pass

    def poll(self, _timeout_s):
        return self.messages.pop(0)

    def consume(self, count, _timeout_s):
        taken, self.messages = self.messages[:count], self.messages[count:]
        return taken


def test_what_follows_the_end_of_a_topic_in_one_answer_is_not_lost():
    topic = LogTopic("127.0.0.1:1", "t")
    topic.close()
    eof = Said(-1, KafkaError._PARTITION_EOF)
    topic._consumer = Answering(Said(4), eof, Said(5), Said(6))
    records, end = topic.fetch(4, 64, 1.0)
    assert ([r.position for r in records], end) == ([4, 5, 6], False)
    topic._consumer = Answering(Said(7), eof)
    records, end = topic.fetch(7, 64, 1.0)
    assert ([r.position for r in records], end) == ([7], True)
    topic._consumer = Answering(eof, Said(8))
    records, end = topic.fetch(8, 64, 1.0)
    assert ([r.position for r in records], end) == ([8], False)


@pytest.mark.integration
@pytest.mark.timeout(120)
def test_no_broker_and_no_topic_are_said(kafka_broker, monkeypatch):
    with pytest.raises(LogError, match=r"there is no (topic nothing|log)"):
        open_reader(f"kafka://{kafka_broker.address}/nothing")
    monkeypatch.setattr("edgewise.log.kafka_reader.REQUEST_S", 1.0)
    with pytest.raises(LogError, match=r"127\.0\.0\.1:1"):
        open_reader("kafka://127.0.0.1:1/x")
