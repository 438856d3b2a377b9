"""Read a log that lives in Kafka: only what was committed, so never half an append.

Two consumers: one reads batches, the other follows the head, so a long read does not delay those
who wait for new events. The price is a second connection to the broker.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
from confluent_kafka import (
    OFFSET_END,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    TopicPartition,
)

from edgewise.errors import LogCorrupt, LogError, OutOfRange
from edgewise.event.arrow import TS
from edgewise.event.position import Position
from edgewise.log.api import LogBatch
from edgewise.log.kafka_record import Record, parse_record, schema_of, search_key
from edgewise.log.rows import convert_to_schema, slice_batch

logger = logging.getLogger(__name__)

REQUEST_S = 20.0
FETCH_RECORDS_MAX = 64
_SLICE_S = 0.1
_SCHEMAS_MAX = 256
# The client names its own errors (not the broker's) with an underscore.
_END_OF_TOPIC = KafkaError._PARTITION_EOF  # noqa: SLF001
_NO_OFFSET = KafkaError._AUTO_OFFSET_RESET  # noqa: SLF001
NO_TOPIC = {
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError._UNKNOWN_TOPIC,  # noqa: SLF001
    KafkaError._UNKNOWN_PARTITION,  # noqa: SLF001
}


def client_config(broker: str) -> dict[str, Any]:
    return {
        "bootstrap.servers": broker,
        "logger": logger,
        "log_level": 2,
        "reconnect.backoff.max.ms": 500,  # by default 10 s, long after a broker is back
    }


class LogTopic:
    """The one partition of a topic, through one consumer. Not for several threads at once."""

    def __init__(self, broker: str, topic: str) -> None:
        self.name = topic
        self._broker = broker
        self._consumer = Consumer(
            {
                **client_config(broker),
                "group.id": f"edgewise-reader-{topic}",  # required, never joined
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                "enable.partition.eof": True,
                "auto.offset.reset": "error",
                "check.crcs": True,
                "fetch.wait.max.ms": 100,
                "fetch.queue.backoff.ms": 5,
            }
        )
        self._at = -1
        self.doubtful = -1  # the record that was parsed last

    def range(self) -> tuple[int, int]:
        """Record offsets: the first, and the one behind the last that is committed."""
        partition = TopicPartition(self.name, 0)
        low, high = self._query(
            lambda: self._consumer.get_watermark_offsets(partition, timeout=REQUEST_S)
        )
        return int(low), int(high)

    def find(self, offset: int) -> int:
        """The record that holds an event; the end of the topic when there is none."""
        wanted = TopicPartition(self.name, 0, search_key(offset))
        (found,) = self._query(
            lambda: self._consumer.offsets_for_times([wanted], timeout=REQUEST_S)
        )
        return int(found.offset) if found.offset != OFFSET_END else self.range()[1]

    def fetch(self, start: int, count: int, timeout_s: float) -> tuple[list[Record], bool]:
        """Up to `count` records from `start` on; True when the end was reached."""
        if self._at != start:
            self._consumer.assign([TopicPartition(self.name, 0, start)])
            self._at = start
        records: list[Record] = []
        end = False
        deadline = time.monotonic() + timeout_s
        while not records and not end:
            left = deadline - time.monotonic()
            message = self._consumer.poll(max(0.0, left))
            messages = [message] if message is not None else []
            if message is not None and count > 1:
                messages += self._consumer.consume(count - 1, 0)  # what was fetched already
            for each in messages:
                error = each.error()
                if error is None:
                    records.append(self._record(each))
                    self._at = records[-1].position + 1
                    end = False
                elif error.code() == _END_OF_TOPIC:
                    end = True  # records that arrived meanwhile may follow in the same answer
                elif not error.retriable():
                    self._at = -1
                    raise self._refused(error, start)
            if left <= 0:
                break
        return records, end

    def last(self, before: int | None = None) -> Record | None:
        """The newest committed record below `before`; behind it lie only transaction markers."""
        low, high = self.range()
        high = high if before is None else before
        back = 2
        while high > low:
            start = max(low, high - back)
            found: list[Record] = []
            end, at = False, start
            while not end and at < high:
                records, end = self.fetch(at, FETCH_RECORDS_MAX, REQUEST_S)
                if not records and not end:
                    raise LogError(f"{self._broker}: no answer for topic {self.name}")
                found += (r for r in records if r.position < high)
                at = self._at
            if found:
                return found[-1]
            if start == low:
                return None
            back *= 2
        return None

    def record(self, position: int) -> Record:
        records, _ = self.fetch(position, 1, REQUEST_S)
        if not records or records[0].position != position:
            raise LogCorrupt(f"topic {self.name}: record {position} is missing")
        return records[0]

    def close(self) -> None:
        self._consumer.close()

    def _query(self, query: Callable[[], Any]) -> Any:
        """A broker that just restarted may answer that it has no such topic, and the client
        caches that for minutes: so its metadata is refreshed.
        """
        try:
            try:
                return query()
            except KafkaException as error:
                if error.args[0].code() not in NO_TOPIC:
                    raise
                self._consumer.list_topics(self.name, timeout=REQUEST_S)
                return query()
        except KafkaException as error:
            raise self._unreachable(error) from error

    def _record(self, message: Message) -> Record:
        headers: Any = message.headers()
        value: Any = message.value()
        # If this record is not one of ours, the next fetch must seek.
        self._at, self.doubtful = -1, int(message.offset() or 0)
        return parse_record(self.name, self.doubtful, headers, value)

    def _refused(self, error: KafkaError, start: int) -> LogError:
        code = error.code()
        if code in {_NO_OFFSET, KafkaError.OFFSET_OUT_OF_RANGE}:
            return OutOfRange(f"topic {self.name}: record {start} was removed by retention")
        if code in NO_TOPIC:
            return LogError(f"{self._broker}: there is no topic {self.name}; a writer creates it")
        return LogError(f"{self._broker}: topic {self.name}: {error.str()}")

    def _unreachable(self, error: KafkaException) -> LogError:
        return self._refused(error.args[0], -1)


class KafkaReader:
    """Use `KafkaReader.open`. One consumer reads, another watches the head."""

    def __init__(self, broker: str, topic: str) -> None:
        self._location = f"kafka://{broker}/{topic}"
        self._bulk, self._tail = LogTopic(broker, topic), LogTopic(broker, topic)
        self._bulk_lock, self._tail_lock = threading.Lock(), threading.Lock()
        self._schemas: dict[int, Any] = {}
        self._low = (-1, 0)  # the first record, and the first event it holds
        self._closed = False
        try:
            self._newest = self._find_newest()
            self._bulk.range()  # without metadata the first fetch would wait 1 s
            self._schema = self._schema_at(self._newest.checkpoint_at)
        except BaseException:
            self._bulk.close()
            self._tail.close()
            raise

    @classmethod
    def open(cls, broker: str, topic: str) -> KafkaReader:
        return cls(broker, topic)

    def _find_newest(self) -> Record:
        newest = self._tail.last()
        if newest is None:
            raise LogError(f"{self._location}: there is no log here; a writer creates it")
        return newest

    @property
    def schema(self) -> Any:
        return self._schema

    def earliest(self) -> int:
        with self._tail_lock:
            low, _ = self._tail.range()
        newest = self._refresh() if low > self._newest.position else self._newest
        if low >= newest.position:
            return newest.header.first
        if low != self._low[0]:
            with self._bulk_lock:
                records, _ = self._bulk.fetch(low, 1, REQUEST_S)
            self._low = (low, records[0].header.first if records else newest.header.first)
        return self._low[1]

    def head(self) -> Position:
        newest = self._refresh().header
        return Position(newest.epoch, newest.next)

    def clock(self, offset: int) -> int:
        newest = self._check(offset, offset)
        if offset == newest.header.next:
            return newest.header.clock_after
        for batch in self._read(offset, offset + 1, [TS]):
            return batch.clock_before
        raise AssertionError(f"no batch for offset {offset}")

    def read(self, start: int, end: int, columns: list[str] | None = None) -> Iterator[LogBatch]:
        self._check(start, end)
        unknown = [c for c in columns or () if c not in self._schema.names]
        if unknown:
            raise LogError(f"{self._location}: the log has no attribute '{unknown[0]}'")
        return self._read(start, end, columns)

    def wait(self, offset: int, timeout_s: float) -> bool:
        deadline = time.monotonic() + timeout_s
        if self._newest.header.next > offset or self._refresh().header.next > offset:
            return True
        while not self._closed:
            left = deadline - time.monotonic()
            with self._tail_lock:
                if self._newest.header.next > offset:
                    return True
                if left <= 0 or self._closed:
                    return False
                self._poll(min(left, _SLICE_S))
        return False

    def close(self) -> None:
        self._closed = True
        with self._tail_lock, self._bulk_lock:
            self._tail.close()
            self._bulk.close()

    def _poll(self, timeout_s: float) -> None:
        records, _ = self._tail.fetch(self._newest.position + 1, FETCH_RECORDS_MAX, timeout_s)
        if records:
            self._newest = records[-1]

    def _refresh(self) -> Record:
        with self._tail_lock:
            if self._tail.range()[1] > self._newest.position + 2:
                self._newest = self._tail.last() or self._newest
            return self._newest

    def _check(self, start: int, end: int) -> Record:
        newest = self._newest
        if end > newest.header.next:
            newest = self._refresh()
        earliest = self.earliest()
        if not earliest <= start <= end <= newest.header.next:
            raise OutOfRange(
                f"{self._location}: offsets {start} to {end} were asked, {earliest} to "
                f"{newest.header.next} are there"
            )
        return newest

    def _read(self, start: int, end: int, columns: list[str] | None) -> Iterator[LogBatch]:
        at, position = start, -1
        while at < end:
            with self._bulk_lock:
                position = position if position >= 0 else self._bulk.find(at)
                records, _ = self._bulk.fetch(position, FETCH_RECORDS_MAX, REQUEST_S)
            if not records:
                raise LogError(f"{self._location}: offset {at} did not come in {REQUEST_S:.0f} s")
            for record in records:
                position = record.position + 1
                if record.header.next <= at or at >= end:
                    continue
                if record.header.first > at:
                    raise LogCorrupt(f"{self._location}: offset {at} is missing")
                batch = slice_batch(self._batch(record), at, end)
                at += batch.rows.num_rows
                rows = convert_to_schema(batch.rows, self._schema)
                rows = rows.select(columns) if columns else rows
                yield LogBatch(batch.first, batch.clock_before, rows)

    def _batch(self, record: Record) -> LogBatch:
        schema = self._schema_at(record.checkpoint_at)
        rows = pa.ipc.read_record_batch(pa.py_buffer(record.value), schema)
        return LogBatch(record.header.first, record.header.clock_before, rows)

    def _schema_at(self, checkpoint: int) -> Any:
        known = self._schemas.get(checkpoint)
        if known is None:
            with self._bulk_lock:
                known = schema_of(self._bulk.record(checkpoint))
            if len(self._schemas) >= _SCHEMAS_MAX:
                self._schemas.clear()
            self._schemas[checkpoint] = known
        return known
