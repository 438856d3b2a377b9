"""Records into the topic of a log, all of them or none: one transaction of Kafka's own client.

Whoever makes the next client of a topic ends what this one left open and fences it. What a commit
that failed means has three names: nothing was appended (LogError), another writer has the log
(LogLocked), nobody knows yet (Unsure).
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


class Unsure(LogError):
    """Whether the records are there is not known; only a new client and the topic can tell."""


class Transactions:
    """The one client that may write to a topic. KafkaException where there is no broker."""

    def __init__(self, broker: str, topic: str) -> None:
        self._place = f"kafka://{broker}/{topic}"
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
        """The position of the last record. Kafka's retries and fencing are inside these calls."""
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
            self._end()
        except (KafkaException, BufferError) as error:
            raise self._meaning(error) from error
        return max(positions)

    def _end(self) -> None:
        """A commit whose answer was lost may be asked again: the answer is the same."""
        deadline = time.monotonic() + COMMIT_S
        while True:
            try:
                self._client.commit_transaction(REQUEST_S)
            except KafkaException as error:
                if not error.args[0].retriable() or time.monotonic() > deadline:
                    raise
            else:
                return

    def _meaning(self, error: KafkaException | BufferError) -> LogError:
        said = error.args[0] if isinstance(error, KafkaException) else None
        if said is not None and said.txn_requires_abort():
            try:
                self._client.abort_transaction(REQUEST_S)
            except KafkaException as second:
                return Unsure(f"{self._place}: {said.str()}, then {second.args[0].str()}")
            return LogError(f"{self._place}: {said.str()}; nothing was appended")
        if said is not None and said.code() in _FENCED:
            return LogLocked(f"{self._place}: {said.str()}")
        return Unsure(
            f"{self._place}: {error}; whether the append is there is not known. Append again with "
            "the same producer and sequence"
        )
