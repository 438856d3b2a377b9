"""Write a log that lives in Kafka; a log has one writer.

Who may write is settled twice. A group of one member (`kafka_writer_group`) refuses a second
writer. And a fence: each writer takes the topic's transactional id, so a writer that lost the log
cannot commit. A group of appends is one transaction, which costs a round trip to the broker more
than plain produce.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Any

import msgspec
from confluent_kafka import KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from edgewise.errors import LogError, LogLocked
from edgewise.event.arrow import to_arrow
from edgewise.event.position import Position
from edgewise.event.schema import Schema
from edgewise.log.api import DEFAULTS, Appended, EncodedBatch, LogConfig
from edgewise.log.group_commit import GroupCommit, PendingAppend
from edgewise.log.kafka_commit import COMMIT_S, RECORD_BYTES_MAX, CommitUnknown, TopicTransactions
from edgewise.log.kafka_reader import REQUEST_S, LogTopic, client_config
from edgewise.log.kafka_record import (
    LogCheckpoint,
    Record,
    RecordHeader,
    empty_header,
    parse_checkpoint,
    schema_of,
)
from edgewise.log.kafka_writer_group import WriterGroup
from edgewise.log.producers import Producers
from edgewise.log.rows import encode_batches, evolve_schema

logger = logging.getLogger(__name__)

CHECKPOINT_RECORDS = 512  # a new writer reads at most so many records to know the producers
_VISIBLE_S = 0.001
_RETRY_S = 0.1
_TOPIC = {
    "cleanup.policy": "delete",
    "retention.ms": "-1",  # `retain` decides, by event offsets; timestamps are not times here
    "retention.bytes": "-1",
    "message.timestamp.type": "CreateTime",
    "max.message.bytes": str(RECORD_BYTES_MAX),
    "flush.messages": "1",  # an append survives power loss, as the contract says
}


def wall_ms() -> int:
    return time.time_ns() // 1_000_000


class KafkaWriter:
    """Use `KafkaWriter.open`. Appends may come from many threads."""

    def __init__(
        self,
        broker: str,
        topic: str,
        schema: Schema,
        config: LogConfig,
        *,
        defaults: dict[str, Any],
        take_over: bool,
        now_ms: Callable[[], int],
    ) -> None:
        self.location = f"kafka://{broker}/{topic}"
        self._broker = broker
        self._topic = topic
        self._config = config
        self._schema = to_arrow(schema)
        self._now_ms = now_ms
        self._admin = AdminClient(client_config(broker))
        self._failed = ""  # permanent: another writer has the log
        self._unknown = (
            ""  # why the outcome of the last commit is not known; resolved before the next one
        )
        self._closed = False
        self._commits = threading.Lock()
        self._create_topic()
        self._membership = WriterGroup(broker, topic, take_over=take_over)
        self._reads = LogTopic(broker, topic)
        try:
            self._client = TopicTransactions(broker, topic)
            self._recover(defaults)
        except BaseException as error:
            self._membership.close()
            self._reads.close()
            if isinstance(error, KafkaException):
                raise LogError(f"{self.location}: {error.args[0].str()}") from error
            raise
        self._group: GroupCommit[PendingAppend] = GroupCommit(
            self._commit, config.pending_bytes_max
        )

    @classmethod
    def open(
        cls,
        broker: str,
        topic: str,
        schema: Schema,
        config: LogConfig = DEFAULTS,
        *,
        defaults: dict[str, Any] | None = None,
        take_over: bool = False,
        now_ms: Callable[[], int] = wall_ms,
    ) -> KafkaWriter:
        """`defaults` for attributes that were added at the end of the schema since.

        `take_over` fences a writer that lost its lease but may not know it.
        """
        return cls(
            broker, topic, schema, config,
            defaults=defaults or {}, take_over=take_over, now_ms=now_ms,
        )  # fmt: skip

    @property
    def schema(self) -> Any:
        return self._schema

    @property
    def head(self) -> Position:
        return Position(self._epoch, self._last.next)

    def last_sequence(self, producer: str) -> int:
        return self._producers.last(producer)

    @property
    def rows_max(self) -> int:
        return self._config.batch_rows_max

    def append(self, rows: Any, *, producer: str = "", sequence: int = -1) -> Appended:
        batches = encode_batches(rows, self._schema, self.rows_max)
        return self.append_encoded(batches, producer=producer, sequence=sequence)

    def append_encoded(
        self, batches: list[EncodedBatch], *, producer: str = "", sequence: int = -1
    ) -> Appended:
        entry = PendingAppend.prepare(batches, producer, sequence)
        if entry is None:
            return Appended(self._last.next, self._last.next)
        if max(batch.body.size for batch in entry.batches) > RECORD_BYTES_MAX // 2:
            raise LogError(
                f"{self.location}: a batch takes more than {RECORD_BYTES_MAX // 2} bytes; append "
                "fewer rows at once or lower batch_rows_max"
            )
        self._group.submit(entry)
        assert isinstance(entry.answer, Appended)
        return entry.answer

    def retain(self, now_ms: int) -> int:
        """Drop records that the config no longer keeps; return how many."""
        config = self._config
        with self._commits:
            self._check_writable()
            total = self._last.bytes_before + self._last_size
            if not config.retain_bytes and not config.retain_ms:
                return 0

            def kept(record: RecordHeader) -> bool:
                large = config.retain_bytes and total - record.bytes_before > config.retain_bytes
                old = config.retain_ms and record.written_ms < now_ms - config.retain_ms
                return not large and not old

            low, _ = self._reads.range()
            target = self._first_kept(kept, low, self._last_at)
            # Only whole ranges between checkpoints: a record needs its checkpoint's schema.
            records, _ = self._reads.fetch(target, 1, REQUEST_S)
            target = min(records[0].checkpoint_at if records else low, self._checkpoint_at)
            if target <= low:
                return 0
            gone = TopicPartition(self._topic, 0, target)
            self._admin.delete_records([gone], request_timeout=REQUEST_S)[gone].result()
            return target - low

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._group.close()
        with self._commits:
            self._membership.close()
            self._reads.close()

    # --- opening

    def _resolve_unknown_commit(self) -> None:
        """After a commit without an answer: a new client ends it, then the topic is read."""
        newest = self._reads.last()
        if newest is not None and newest.header.epoch > self._epoch:
            self._failed = self._explain_takeover()
            raise LogLocked(self._failed)
        try:
            self._client = TopicTransactions(self._broker, self._topic)
            self._recover({})
        except KafkaException as error:
            raise LogError(
                f"{self.location}: {error.args[0].str()}; nothing was appended"
            ) from error
        logger.warning(
            "%s: the broker answers again, at offset %d", self.location, self._last.next
        )
        self._unknown = ""

    def _explain_takeover(self) -> str:
        return (
            f"{self.location}: another writer took over from epoch {self._epoch}; nothing was "
            "appended"
        )

    def _create_topic(self) -> None:
        topic = NewTopic(self._topic, num_partitions=1, config=_TOPIC)
        try:
            self._admin.create_topics([topic], operation_timeout=REQUEST_S)[self._topic].result()
        except KafkaException as error:
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise LogError(f"{self.location}: {error.args[0].str()}") from error

    def _recover(self, defaults: dict[str, Any]) -> None:
        newest = self._reads.last()
        self._producers = Producers(self._config.producers_max)
        if newest is None:
            self._last, self._last_at, self._last_size = empty_header(), -1, 0
        else:
            checkpoint = self._reads.record(newest.checkpoint_at)
            stored = schema_of(checkpoint)
            self._schema = evolve_schema(self.location, stored, self._schema, defaults)
            states = parse_checkpoint(checkpoint).producers
            self._producers = Producers.restore(states, self._config.producers_max)
            self._replay(checkpoint, newest)
            self._last, self._last_at, self._last_size = (
                newest.header,
                newest.position,
                newest.size,
            )
        self._epoch = self._last.epoch + 1
        self._write_checkpoint()

    def _replay(self, checkpoint: Record, newest: Record) -> None:
        at = checkpoint.position
        while at < newest.position:
            records, _ = self._reads.fetch(at + 1, CHECKPOINT_RECORDS, REQUEST_S)
            if not records:
                raise LogError(
                    f"{self.location}: record {at + 1} did not come in {REQUEST_S:.0f} s"
                )
            for record in records:
                header = record.header
                self._producers.record(header.producer, header.sequence, header.first, header.next)
                at = record.position

    # --- appending; `_commits` is held

    def _commit(self, group: list[PendingAppend]) -> None:
        with self._commits:
            try:
                self._check_writable()
                if self._checkpoint_due():
                    self._write_checkpoint()
                waiting = group
                while waiting:
                    waiting = self._commit_some(waiting)
            except LogError as error:
                for entry in group:
                    if entry.answer is None:
                        entry.error = error

    def _checkpoint_due(self) -> bool:
        """Often enough for a new writer to open quickly, and for retention to drop up to one."""
        written = self._last.bytes_before + self._last_size - self._checkpoint_bytes
        many = self._last_at - self._checkpoint_at > CHECKPOINT_RECORDS
        return many or written > self._config.seal_bytes

    def _commit_some(self, waiting: list[PendingAppend]) -> list[PendingAppend]:
        known: dict[str, int] = {}
        headers: list[RecordHeader] = []
        bodies: list[Any] = []
        answers: dict[PendingAppend, Appended] = {}
        last, size = self._last, self._last_size
        taken = 0
        for entry in waiting:
            if 0 <= entry.sequence <= known.get(entry.producer, -1):
                break  # it repeats one of this transaction: in the next it is a known duplicate
            taken += 1
            found = self._producers.find(entry.producer, entry.sequence, self._last.next)
            if found:
                entry.answer = found
                continue
            if entry.producer:
                known[entry.producer] = entry.sequence
            first = last.next
            for batch in entry.batches:
                last = self._make_header(last, size, batch, entry)
                size = batch.body.size
                headers.append(last)
                bodies.append(batch.body)
            answers[entry] = Appended(first, last.next)
        if headers:
            self._transact(headers, bodies)
        for entry, answer in answers.items():
            self._producers.record(entry.producer, entry.sequence, answer.first, answer.end)
            entry.answer = answer
        return waiting[taken:]

    def _make_header(
        self, last: RecordHeader, size: int, batch: EncodedBatch, entry: PendingAppend
    ) -> RecordHeader:
        return RecordHeader(
            first=last.next, rows=batch.rows, clock_before=last.clock_after, ts_max=batch.ts_max,
            epoch=self._epoch, checkpoint=self._checkpoint_at,
            bytes_before=last.bytes_before + size, written_ms=self._now_ms(),
            producer=entry.producer, sequence=entry.sequence,
        )  # fmt: skip

    def _write_checkpoint(self) -> None:
        last = self._last
        header = RecordHeader(
            first=last.next, rows=0, clock_before=last.clock_after, ts_max=last.clock_after,
            epoch=self._epoch, checkpoint=-1, bytes_before=last.bytes_before + self._last_size,
            written_ms=self._now_ms(),
        )  # fmt: skip
        checkpoint = LogCheckpoint(
            self._schema.serialize().to_pybytes(), self._producers.snapshot()
        )
        self._transact([header], [msgspec.msgpack.encode(checkpoint)])
        self._checkpoint_at, self._checkpoint_bytes = self._last_at, header.bytes_before

    def _transact(self, headers: list[RecordHeader], bodies: list[Any]) -> None:
        """Commit records or none of them, and remember what that means for the next append."""
        try:
            position = self._client.commit(headers, bodies)
        except LogLocked as error:
            self._failed = self._explain_takeover()
            raise LogLocked(self._failed) from error
        except CommitUnknown as error:
            self._unknown = str(error)
            raise
        except LogError:
            raise
        except BaseException:
            self._unknown = f"{self.location}: an append was interrupted"
            raise
        self._last, self._last_at = headers[-1], position
        self._last_size = len(memoryview(bodies[-1]))
        self._wait_until_visible()

    def _wait_until_visible(self) -> None:
        """The broker ends a transaction after it answered: a later read must see the append."""
        deadline = time.monotonic() + COMMIT_S
        reported = ""
        while time.monotonic() < deadline:
            try:
                if self._reads.range()[1] > self._last_at:
                    return
            except LogError as error:  # it is committed, whatever the broker does now
                if str(error) != reported:
                    reported = str(error)
                    logger.warning(
                        "%s: waiting for readers to see an append: %s", self.location, reported
                    )
                time.sleep(_RETRY_S)
            time.sleep(_VISIBLE_S)
        logger.warning("%s: committed, but readers do not see it yet", self.location)

    def _check_writable(self) -> None:
        if self._membership.lost:
            raise LogLocked(
                f"{self.location}: epoch {self._epoch} has left the group of writers; nothing was "
                "appended. It comes back with the broker, unless another writer took it"
            )
        if self._failed:
            raise LogError(self._failed)
        if self._unknown:
            self._resolve_unknown_commit()

    def _first_kept(self, kept: Callable[[RecordHeader], bool], low: int, high: int) -> int:
        """Records are dropped from the old end, so a binary search finds the first to keep."""
        while low < high:
            middle = (low + high) // 2
            records, _ = self._reads.fetch(middle, 1, REQUEST_S)
            if not records or records[0].position > high or kept(records[0].header):
                high = middle
            else:
                low = records[0].position + 1
        return low
