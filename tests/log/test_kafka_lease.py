import itertools
import time

import pytest

from edgewise.errors import LeaseError
from edgewise.log import kafka_lease
from edgewise.log.kafka_lease import KafkaLease, TopicRecord, TopicRecordKind, TopicState
from edgewise.log.lease_laws import LAWS

CLAIM, RENEWAL, RELEASE = TopicRecordKind
numbers = itertools.count()


def record(kind, epoch, holder, since_ms=0):
    return TopicRecord(kind, epoch, holder, since_ms, 1000)


def read(*records):
    state = TopicState()
    for each in records:
        state = state.apply(each)
    return state


def test_the_first_claim_of_an_epoch_wins_it():
    state = read(record(CLAIM, 1, "a"), record(CLAIM, 2, "b"), record(CLAIM, 2, "c"))
    assert (state.epoch, state.last.holder) == (2, "b")


@pytest.mark.parametrize(
    "late",
    [
        record(RENEWAL, 1, "a"),
        record(RELEASE, 1, "a"),
        record(CLAIM, 1, "a"),
        record(CLAIM, 4, "d"),
        record(RENEWAL, 2, "b", since_ms=5),
    ],
    ids=lambda late: f"{late.kind} {late.epoch} {late.holder}",
)
def test_a_record_of_another_holder_means_nothing(late):
    state = read(record(CLAIM, 1, "a"), record(CLAIM, 2, "b"))
    assert state.apply(late) is state


def test_a_released_lease_is_not_renewed_by_a_late_record():
    state = read(record(CLAIM, 1, "a"), record(RELEASE, 1, "a"))
    assert state.released
    assert state.apply(record(RENEWAL, 1, "a")) is state
    assert state.apply(record(CLAIM, 2, "b")).epoch == 2


def test_a_reader_that_comes_late_starts_with_the_oldest_record_there_is():
    assert read(record(RENEWAL, 7, "a"), record(CLAIM, 8, "b")).epoch == 8


def test_a_broker_that_does_not_answer_is_named(monkeypatch):
    monkeypatch.setattr(kafka_lease, "OPEN_S", 0.3)
    with pytest.raises(LeaseError, match=r"kafka://127\.0\.0\.1:1/t\.lease: "):
        KafkaLease("127.0.0.1:1", "t.lease").try_acquire()


class KafkaLeaseSubject:
    """A topic of its own, and the real clock."""

    ttl_ms = 1_500

    def __init__(self, broker):
        self.broker = broker
        self.topic = f"laws-{next(numbers)}.lease"

    def open(self, holder):
        return KafkaLease(self.broker, self.topic, holder, ttl_ms=self.ttl_ms)

    def wait(self, ms):
        time.sleep(ms / 1000)


@pytest.mark.integration
@pytest.mark.timeout(120)
@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
def test_a_topic_keeps_the_law(law, kafka_broker):
    law(KafkaLeaseSubject(kafka_broker.address))


@pytest.mark.integration
@pytest.mark.timeout(120)
def test_a_long_tenure_leaves_a_short_topic(kafka_broker, monkeypatch):
    monkeypatch.setattr(kafka_lease, "RENEWALS_KEPT_MAX", 10)
    subject = KafkaLeaseSubject(kafka_broker.address)
    holder = subject.open("a")
    assert holder.try_acquire()
    for _ in range(35):
        assert holder.renew()
    late = subject.open("b")
    assert late.read().epoch == holder.epoch
    assert (
        late._next
        - late._consumer.get_watermark_offsets(kafka_lease.TopicPartition(subject.topic, 0))[0]
        < 25
    )
