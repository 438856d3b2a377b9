import pytest
from confluent_kafka import KafkaError, KafkaException

from edgewise.errors import LogError
from edgewise.log.kafka_reader import Topic
from edgewise.log.places import open_reader


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
    topic = Topic("127.0.0.1:1", "t")
    topic.close()
    topic._consumer = Forgetful()
    assert topic.range() == (3, 9)
    topic._consumer = Forgetful(gone=True)
    with pytest.raises(LogError, match="there is no topic t"):
        topic.range()


@pytest.mark.integration
@pytest.mark.timeout(120)
def test_no_broker_and_no_topic_are_said(kafka_broker, monkeypatch):
    with pytest.raises(LogError, match=r"there is no (topic nothing|log)"):
        open_reader(f"kafka://{kafka_broker.address}/nothing")
    monkeypatch.setattr("edgewise.log.kafka_reader.REQUEST_S", 1.0)
    with pytest.raises(LogError, match=r"127\.0\.0\.1:1"):
        open_reader("kafka://127.0.0.1:1/x")
