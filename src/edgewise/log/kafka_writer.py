"""The one writer of a log that lives in Kafka.

Who may write is settled twice. A lease (`kafka_lease`) refuses a second writer. And a fence: each
writer takes the topic's transactional id, so a writer that lost its lease cannot commit. A group
of appends is one transaction.
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
from edgewise.log.api import DEFAULTS, Appended, LogConfig, Part
from edgewise.log.commit import Append, GroupCommit
from edgewise.log.kafka_commit import COMMIT_S, RECORD_BYTES_MAX, Transactions, Unsure
from edgewise.log.kafka_lease import Lease
from edgewise.log.kafka_reader import REQUEST_S, Topic, client_config
from edgewise.log.kafka_record import (
    Checkpoint,
    Record,
    RecordHeader,
    empty_header,
    parse_checkpoint,
    schema_of,
)
from edgewise.log.producers import Producers
from edgewise.log.recovery import evolved
from edgewise.log.rows import parts_of

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
        self.place = f"kafka://{broker}/{topic}"
        self._broker = broker
        self._topic = topic
        self._config = config
        self._schema = to_arrow(schema)
        self._now_ms = now_ms
        self._admin = AdminClient(client_config(broker))
        self._failed = ""  # for good: another writer has the log
        self._unsure = ""  # whether the last commit happened; asked before the next one
        self._closed = False
        self._commits = threading.Lock()
        self._create_topic()
        self._lease = Lease(broker, topic, take_over=take_over)
        self._reads = Topic(broker, topic)
        try:
            self._client = Transactions(broker, topic)
            self._recover(defaults)
        except BaseException as error:
            self._lease.close()
            self._reads.close()
            if isinstance(error, KafkaException):
                raise LogError(f"{self.place}: {error.args[0].str()}") from error
            raise
        self._group: GroupCommit[Append] = GroupCommit(self._commit, config.pending_bytes_max)

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
        parts = parts_of(rows, self._schema, self.rows_max)
        return self.append_parts(parts, producer=producer, sequence=sequence)

    def append_parts(
        self, parts: list[Part], *, producer: str = "", sequence: int = -1
    ) -> Appended:
        entry = Append.of(parts, producer, sequence)
        if entry is None:
            return Appended(self._last.next, self._last.next)
        if max(p.body.size for p in entry.parts) > RECORD_BYTES_MAX // 2:
            raise LogError(
                f"{self.place}: a batch takes more than {RECORD_BYTES_MAX // 2} bytes; append "
                "fewer rows at once or lower batch_rows_max"
            )
        self._group.submit(entry)
        assert isinstance(entry.answer, Appended)
        return entry.answer

    def retain(self, now_ms: int) -> int:
        """Drop records that the config no longer keeps; answers how many."""
        config = self._config
        with self._commits:
            self._usable()
            total = self._last.bytes_before + self._last_size
            if not config.retain_bytes and not config.retain_ms:
                return 0

            def kept(record: RecordHeader) -> bool:
                large = config.retain_bytes and total - record.bytes_before > config.retain_bytes
                old = config.retain_ms and record.written_ms < now_ms - config.retain_ms
                return not large and not old

            low, _ = self._reads.range()
            target = self._first_kept(kept, low, self._last_at)
            # Only whole stretches between checkpoints: a record needs its checkpoint's schema.
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
            self._lease.close()
            self._reads.close()

    # --- opening

    def _make_sure(self) -> None:
        """After a commit without an answer: a new client ends it, then the topic tells."""
        newest = self._reads.last()
        if newest is not None and newest.header.epoch > self._epoch:
            self._failed = self._taken_over()
            raise LogLocked(self._failed)
        try:
            self._client = Transactions(self._broker, self._topic)
            self._recover({})
        except KafkaException as error:
            raise LogError(f"{self.place}: {error.args[0].str()}; nothing was appended") from error
        logger.warning("%s: the broker answers again, at offset %d", self.place, self._last.next)
        self._unsure = ""

    def _taken_over(self) -> str:
        return (
            f"{self.place}: another writer took over from epoch {self._epoch}; nothing was "
            "appended"
        )

    def _create_topic(self) -> None:
        topic = NewTopic(self._topic, num_partitions=1, config=_TOPIC)
        try:
            self._admin.create_topics([topic], operation_timeout=REQUEST_S)[self._topic].result()
        except KafkaException as error:
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise LogError(f"{self.place}: {error.args[0].str()}") from error

    def _recover(self, defaults: dict[str, Any]) -> None:
        newest = self._reads.last()
        self._producers = Producers(self._config.producers_max)
        if newest is None:
            self._last, self._last_at, self._last_size = empty_header(), -1, 0
        else:
            checkpoint = self._reads.record(newest.checkpoint_at)
            stored = schema_of(checkpoint)
            self._schema = evolved(self.place, stored, self._schema, defaults)
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
                raise LogError(f"{self.place}: record {at + 1} did not come in {REQUEST_S:.0f} s")
            for record in records:
                said = record.header
                self._producers.record(said.producer, said.sequence, said.first, said.next)
                at = record.position

    # --- appending; `_commits` is held

    def _commit(self, group: list[Append]) -> None:
        with self._commits:
            try:
                self._usable()
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
        """Often enough for a new writer to open soon, and for retention to cut there."""
        written = self._last.bytes_before + self._last_size - self._checkpoint_bytes
        many = self._last_at - self._checkpoint_at > CHECKPOINT_RECORDS
        return many or written > self._config.seal_bytes

    def _commit_some(self, waiting: list[Append]) -> list[Append]:
        known: dict[str, int] = {}
        headers: list[RecordHeader] = []
        bodies: list[Any] = []
        answers: dict[Append, Appended] = {}
        last, size = self._last, self._last_size
        taken = 0
        for entry in waiting:
            if 0 <= entry.sequence <= known.get(entry.producer, -1):
                break  # its first half is in this transaction: then it is a known duplicate
            taken += 1
            found = self._producers.find(entry.producer, entry.sequence, self._last.next)
            if found:
                entry.answer = found
                continue
            if entry.producer:
                known[entry.producer] = entry.sequence
            first = last.next
            for part in entry.parts:
                last = self._header(last, size, part, entry)
                size = part.body.size
                headers.append(last)
                bodies.append(part.body)
            answers[entry] = Appended(first, last.next)
        if headers:
            self._transact(headers, bodies)
        for entry, answer in answers.items():
            self._producers.record(entry.producer, entry.sequence, answer.first, answer.end)
            entry.answer = answer
        return waiting[taken:]

    def _header(self, last: RecordHeader, size: int, part: Part, entry: Append) -> RecordHeader:
        return RecordHeader(
            first=last.next, rows=part.rows, clock_before=last.clock_after, ts_max=part.ts_max,
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
        said = Checkpoint(self._schema.serialize().to_pybytes(), self._producers.snapshot())
        self._transact([header], [msgspec.msgpack.encode(said)])
        self._checkpoint_at, self._checkpoint_bytes = self._last_at, header.bytes_before

    def _transact(self, headers: list[RecordHeader], bodies: list[Any]) -> None:
        """Commit records or none of them, and remember what that means for the next append."""
        try:
            position = self._client.commit(headers, bodies)
        except LogLocked as error:
            self._failed = self._taken_over()
            raise LogLocked(self._failed) from error
        except Unsure as error:
            self._unsure = str(error)
            raise
        except LogError:
            raise
        except BaseException:
            self._unsure = f"{self.place}: an append was broken off"
            raise
        self._last, self._last_at = headers[-1], position
        self._last_size = len(memoryview(bodies[-1]))
        self._wait_until_visible()

    def _wait_until_visible(self) -> None:
        """The broker marks a transaction after it answered: who reads after us must see it."""
        deadline = time.monotonic() + COMMIT_S
        said = ""
        while time.monotonic() < deadline:
            try:
                if self._reads.range()[1] > self._last_at:
                    return
            except LogError as error:  # it is committed, whatever the broker does now
                if str(error) != said:
                    said = str(error)
                    logger.warning(
                        "%s: waiting for readers to see an append: %s", self.place, said
                    )
                time.sleep(_RETRY_S)
            time.sleep(_VISIBLE_S)
        logger.warning("%s: committed, but readers do not see it yet", self.place)

    def _usable(self) -> None:
        if self._lease.lost:
            raise LogLocked(
                f"{self.place}: the lease of epoch {self._epoch} is lost; nothing was appended. "
                "It comes back with the broker, unless another writer took it"
            )
        if self._failed:
            raise LogError(self._failed)
        if self._unsure:
            self._make_sure()

    def _first_kept(self, kept: Callable[[RecordHeader], bool], low: int, high: int) -> int:
        """Records are dropped from the old end, so this is a search by halves."""
        while low < high:
            middle = (low + high) // 2
            records, _ = self._reads.fetch(middle, 1, REQUEST_S)
            if not records or records[0].position > high or kept(records[0].header):
                high = middle
            else:
                low = records[0].position + 1
        return low
