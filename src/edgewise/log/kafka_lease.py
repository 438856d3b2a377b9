"""Keep a lease in a Kafka topic, for logs that live in Kafka.

The topic has one partition, so all nodes read the same records in the same order, and that order
decides: the first claim of an epoch wins it, later claims of the same epoch mean nothing.

    offset   record                   what every reader concludes
    40       claim   epoch 7 by a     a holds epoch 7
    41       renewal epoch 7 by a     a is alive
    42       claim   epoch 8 by b     b holds epoch 8 (it saw no renewal for too long)
    43       claim   epoch 8 by c     nothing: epoch 8 is taken
    44       renewal epoch 7 by a     nothing: epoch 7 is over, a finds out when it reads 42

The holder deletes records before its own, so the topic stays short. A renewal costs a request to
the broker and a read of what others wrote. `log.locations` opens it for nodes.
"""

from __future__ import annotations

import enum
import time
from collections.abc import Callable
from typing import Any

import msgspec
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from edgewise.errors import LeaseError
from edgewise.log.file_lease import monotonic_ms, name_holder, wall_ms
from edgewise.log.kafka_reader import NO_TOPIC, client_config
from edgewise.log.lease import EPOCH_NONE, RATE_MARGIN, TTL_MS, LeaseRecord

REQUEST_S = 1.0  # a longer wait would outlast the lease
OPEN_S = 20.0  # the first contact with a broker
RENEWALS_KEPT_MAX = 512
_RETRY_S = 0.05
_END_OF_TOPIC = KafkaError._PARTITION_EOF  # noqa: SLF001  the client's own errors
_TOPIC = {"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1"}


class TopicRecordKind(enum.StrEnum):
    CLAIM = "claim"
    RENEWAL = "renewal"
    RELEASE = "release"


class TopicRecord(msgspec.Struct, frozen=True):
    """A record of the topic. `since_ms` is when the holder claimed, by its clock."""

    kind: TopicRecordKind
    epoch: int
    holder: str
    since_ms: int
    ttl_ms: int


class TopicState(msgspec.Struct, frozen=True):
    """What the records up to an offset mean."""

    last: TopicRecord | None = None  # the last record that counted

    @property
    def epoch(self) -> int:
        return EPOCH_NONE if self.last is None else self.last.epoch

    def apply(self, record: TopicRecord) -> TopicState:
        """The state after a record; the same state if the record means nothing."""
        last = self.last
        if last is None:  # the topic starts with a record of the holder that deleted the rest
            return TopicState(record)
        if record.kind is TopicRecordKind.CLAIM:
            return TopicState(record) if record.epoch == last.epoch + 1 else self
        own = (record.epoch, record.holder, record.since_ms)
        current = own == (last.epoch, last.holder, last.since_ms)
        return TopicState(record) if current and not self.released else self

    @property
    def released(self) -> bool:
        return self.last is not None and self.last.kind is TopicRecordKind.RELEASE


class KafkaLease:
    """See `log.lease.Lease`. `ttl_ms` is how long others leave us the lease without a renewal."""

    def __init__(
        self,
        broker: str,
        topic: str,
        holder: str = "",
        *,
        ttl_ms: int = TTL_MS,
        now_ms: Callable[[], int] = monotonic_ms,
    ) -> None:
        self._location = f"kafka://{broker}/{topic}"
        self._topic = topic
        self._holder = holder or name_holder()
        self._ttl_ms = ttl_ms
        self._now_ms = now_ms
        self._admin = AdminClient(client_config(broker))
        self._producer = Producer(
            {
                **client_config(broker),
                "acks": "all",
                "linger.ms": 0,
                "message.timeout.ms": ttl_ms,
            }
        )
        self._consumer = Consumer(
            {
                **client_config(broker),
                "group.id": f"edgewise-lease-{topic}",  # required, never joined
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "enable.partition.eof": True,
                "fetch.wait.max.ms": 50,
            }
        )
        self._state = TopicState()
        self._next = -1  # the offset to read next, -1 before the first read
        self._seen_ms = 0  # when the state changed last, by our clock
        self._held: TopicRecord | None = None
        self._renewals = 0

    @property
    def fails_with_logs(self) -> bool:
        return True  # the same broker commits the transactions of the writers

    @property
    def epoch(self) -> int:
        return EPOCH_NONE if self._held is None else self._held.epoch

    def try_acquire(self) -> bool:
        assert self._held is None, "the lease is ours already"
        self._create_topic()
        self._read_topic()
        if not self._is_free():
            return False
        claim = TopicRecord(
            TopicRecordKind.CLAIM, self._state.epoch + 1, self._holder, wall_ms(), self._ttl_ms
        )
        offset = self._append(claim)
        self._read_topic()
        if self._state.last != claim:
            return False  # another claim of this epoch came first
        self._held = claim
        self._delete_before(offset)
        return True

    def renew(self) -> bool:
        if self._held is None:
            return False
        self._read_topic()
        last = self._state.last
        own = (self._held.epoch, self._held.holder, self._held.since_ms)
        if last is None or (last.epoch, last.holder, last.since_ms) != own:
            return False
        offset = self._append(msgspec.structs.replace(self._held, kind=TopicRecordKind.RENEWAL))
        self._renewals += 1
        if self._renewals % RENEWALS_KEPT_MAX == 0:
            self._delete_before(offset)
        return True

    def read(self) -> LeaseRecord | None:
        self._create_topic()
        self._read_topic()
        last = self._state.last
        if last is None:
            return None
        return LeaseRecord(last.epoch, last.holder, last.since_ms, self._state.released)

    def release(self) -> None:
        held, self._held = self._held, None
        if held is not None:
            self._append(msgspec.structs.replace(held, kind=TopicRecordKind.RELEASE))

    def _is_free(self) -> bool:
        last = self._state.last
        if last is None or self._state.released:
            return True
        return self._now_ms() - self._seen_ms > last.ttl_ms * RATE_MARGIN

    def _create_topic(self) -> None:
        if self._next >= 0:
            return
        topic = NewTopic(self._topic, num_partitions=1, config=_TOPIC)
        try:
            created = self._admin.create_topics([topic], operation_timeout=OPEN_S)
            created[self._topic].result(OPEN_S)
        except KafkaException as error:
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise self._unreachable(error) from error
        except TimeoutError as error:
            raise LeaseError(f"{self._location}: no answer in {OPEN_S:.0f} s") from error

    def _read_topic(self) -> None:
        """Apply all records that are there now."""
        timeout_s = OPEN_S if self._next < 0 else REQUEST_S
        deadline_s = time.monotonic() + timeout_s
        try:
            low, high = self._find_range(deadline_s)
            if self._next < low:
                self._consumer.assign([TopicPartition(self._topic, 0, low)])
                self._next = low
            while self._next < high:
                if time.monotonic() > deadline_s:
                    raise LeaseError(f"{self._location}: record {self._next} did not come")
                self._apply(self._consumer.poll(REQUEST_S / 10))
        except KafkaException as error:
            raise self._unreachable(error) from error

    def _find_range(self, deadline_s: float) -> tuple[int, int]:
        """The client may not know yet that a topic was created: its metadata is refreshed."""
        partition = TopicPartition(self._topic, 0)
        while True:
            left_s = max(deadline_s - time.monotonic(), _RETRY_S)
            try:
                return self._consumer.get_watermark_offsets(partition, timeout=left_s)
            except KafkaException as error:
                if error.args[0].code() not in NO_TOPIC or left_s <= _RETRY_S:
                    raise
                self._consumer.list_topics(self._topic, timeout=left_s)
                time.sleep(_RETRY_S)

    def _apply(self, message: Any) -> None:
        if message is None:
            return
        if error := message.error():
            if error.code() != _END_OF_TOPIC:
                raise KafkaException(error)
            return
        self._next = message.offset() + 1
        try:
            record = msgspec.json.decode(message.value() or b"", type=TopicRecord)
        except msgspec.MsgspecError as error:
            raise LeaseError(
                f"{self._location}: record {message.offset()} is not from a lease ({error}); give "
                "the app another name for its topics with --log"
            ) from error
        state = self._state.apply(record)
        if state is not self._state:
            self._state, self._seen_ms = state, self._now_ms()

    def _append(self, record: TopicRecord) -> int:
        """The offset of the record, once all replicas have it."""
        offsets: list[int] = []
        errors: list[KafkaError] = []

        def delivered(error: KafkaError | None, message: Any) -> None:
            if error is None:
                offsets.append(message.offset())
            else:
                errors.append(error)

        self._producer.produce(
            self._topic, msgspec.json.encode(record), partition=0, on_delivery=delivered
        )
        self._producer.flush(max(REQUEST_S, self._ttl_ms / 2000))
        if not offsets:
            why = errors[0].str() if errors else "no answer"
            raise LeaseError(f"{self._location}: {why}; it is not known whether this was written")
        return offsets[0]

    def _delete_before(self, offset: int) -> None:
        """In the background; where it fails the topic is longer than needed."""
        self._admin.delete_records([TopicPartition(self._topic, 0, offset)])

    def _unreachable(self, error: KafkaException) -> LeaseError:
        return LeaseError(f"{self._location}: {error.args[0].str()}")
