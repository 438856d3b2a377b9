import pytest
from confluent_kafka import KafkaError, KafkaException

from edgewise.errors import LogError, LogLocked
from edgewise.log.api import CLOCK_NONE
from edgewise.log.kafka_commit import CommitUnknown, TopicTransactions
from edgewise.log.kafka_record import RecordHeader

HEADER = RecordHeader(0, 1, CLOCK_NONE, 5, 1, 0, 0, 0)


class Refusing:
    """A client whose commit is refused, and perhaps its abort too."""

    def __init__(self, code, *, abort=False, abort_fails=False, retriable=False):
        self.error = KafkaError(code, "no", False, retriable, abort)
        self.abort_fails = abort_fails
        self.aborted = 0

    def begin_transaction(self):
        pass

    def produce(self, *_words, **_more):
        pass

    def commit_transaction(self, _timeout_s):
        raise KafkaException(self.error)

    def abort_transaction(self, _timeout_s):
        self.aborted += 1
        if self.abort_fails:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT))


def committing(client):
    topic = TopicTransactions.__new__(TopicTransactions)
    topic._location, topic._topic, topic._client = "kafka://b/t", "t", client
    return topic


def test_what_was_aborted_was_not_appended():
    client = Refusing(KafkaError.INVALID_TXN_STATE, abort=True)
    with pytest.raises(LogError, match="nothing was appended") as refused:
        committing(client).commit([HEADER], [b""])
    assert not isinstance(refused.value, CommitUnknown)
    assert client.aborted == 1


def test_an_abort_without_an_answer_leaves_it_open():
    client = Refusing(KafkaError.INVALID_TXN_STATE, abort=True, abort_fails=True)
    with pytest.raises(CommitUnknown, match="no, then"):
        committing(client).commit([HEADER], [b""])


def test_one_that_was_fenced_lost_the_log():
    with pytest.raises(LogLocked):
        committing(Refusing(KafkaError.PRODUCER_FENCED)).commit([HEADER], [b""])


def test_a_commit_without_an_answer_may_be_there_or_not(monkeypatch):
    monkeypatch.setattr("edgewise.log.kafka_commit.COMMIT_S", 0.0)
    client = Refusing(KafkaError._TIMED_OUT, retriable=True)
    with pytest.raises(CommitUnknown, match="is not known"):
        committing(client).commit([HEADER], [b""])
