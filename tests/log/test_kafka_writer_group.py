import pytest

from edgewise.errors import LogError, LogLocked
from edgewise.log.kafka_writer_group import WriterGroup
from edgewise.log.laws import SCHEMA


def test_without_a_broker_it_says_where_it_looked(monkeypatch):
    monkeypatch.setattr("edgewise.log.kafka_writer_group.REQUEST_S", 0.2)
    with pytest.raises(LogError, match=r"kafka://127\.0\.0\.1:1/t: "):
        WriterGroup("127.0.0.1:1", "t", take_over=False)


@pytest.mark.integration
@pytest.mark.timeout(120)
def test_the_second_is_refused_until_the_first_gives_it_back(kafka_subject):
    kafka_subject.writer(SCHEMA).close()  # makes the topic
    broker, topic = kafka_subject.place.removeprefix("kafka://").split("/")
    first = WriterGroup(broker, topic, take_over=False)
    with pytest.raises(LogLocked, match="writes this log, and a log has one writer"):
        WriterGroup(broker, topic, take_over=False)
    assert not first.lost
    first.close()
    second = WriterGroup(broker, topic, take_over=False)
    assert not second.lost
    second.close()
