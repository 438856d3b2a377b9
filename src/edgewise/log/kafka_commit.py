"""Commit records to the topic of a log, all of them or none, as one Kafka transaction.

Opening the next client of a topic ends what this one left open and fences it. A commit that failed
means one of three things: nothing was appended (LogError), another writer has the log (LogLocked),
or the outcome is not known (CommitUnknown). `kafka_writer` uses it.
"""

from __future__ import annotations

import time
from typing import Any

import msgspec
from confluent_kafka import KafkaError, KafkaException, Producer

from edgewise.errors import LogError, LogLocked
from edgewise.log.kafka_reader import REQUEST_S, client_config
from edgewise.log.kafka_record import HEADER, RecordHeader, timestamp_of

RECORD_BYTES_MAX = 32 * 1024 * 1024
COMMIT_S = 60.0
_FENCED = {
    KafkaError._FENCED,  # noqa: SLF001  the client's own errors have an underscore
    KafkaError.PRODUCER_FENCED,
    KafkaError.INVALID_PRODUCER_EPOCH,
}


class CommitUnknown(LogError):
    """Whether the records are there is not known; a new client reads it from the topic."""


class TopicTransactions:
    """The one client that may write to a topic. KafkaException if there is no broker."""

    def __init__(self, broker: str, topic: str) -> None:
        self._location = f"kafka://{broker}/{topic}"
        self._topic = topic
        self._client = Producer(
            {
                **client_config(broker),
                "transactional.id": f"edgewise-{topic}",
                "message.max.bytes": RECORD_BYTES_MAX,
                "linger.ms": 0,
            }
        )
        self._client.init_transactions(REQUEST_S)

    def commit(self, headers: list[RecordHeader], bodies: list[Any]) -> int:
        """Commit; return the position of the last record. Kafka retries and fences inside."""
        positions: list[int] = []

        def delivered(error: KafkaError | None, message: Any) -> None:
            if error is None:
                positions.append(message.offset())

        try:
            self._client.begin_transaction()
            for header, body in zip(headers, bodies, strict=True):
                self._client.produce(
                    self._topic, value=bytes(body), partition=0, timestamp=timestamp_of(header),
                    headers=[(HEADER, msgspec.msgpack.encode(header))], on_delivery=delivered,
                )  # fmt: skip
            self._commit_transaction()
        except (KafkaException, BufferError) as error:
            raise self._explain(error) from error
        return max(positions)

    def _commit_transaction(self) -> None:
        """A commit whose answer was lost may be repeated: the answer is the same."""
        deadline = time.monotonic() + COMMIT_S
        while True:
            try:
                self._client.commit_transaction(REQUEST_S)
            except KafkaException as error:
                if not error.args[0].retriable() or time.monotonic() > deadline:
                    raise
            else:
                return

    def _explain(self, error: KafkaException | BufferError) -> LogError:
        reported = error.args[0] if isinstance(error, KafkaException) else None
        if reported is not None and reported.txn_requires_abort():
            try:
                self._client.abort_transaction(REQUEST_S)
            except KafkaException as second:
                return CommitUnknown(
                    f"{self._location}: {reported.str()}, then {second.args[0].str()}"
                )
            return LogError(f"{self._location}: {reported.str()}; nothing was appended")
        if reported is not None and reported.code() in _FENCED:
            return LogLocked(f"{self._location}: {reported.str()}")
        return CommitUnknown(
            f"{self._location}: {error}; whether the append is there is not known. Append "
            "again with the same producer and sequence"
        )
