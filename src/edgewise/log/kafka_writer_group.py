"""Refuse a second writer of a log that lives in Kafka: a consumer group with one member.

A second writer finds the group taken and is refused; one that died is removed by the broker after
_SESSION_S. `kafka_writer` uses it. It tells writers apart, also without a node; which node may
write is decided by the lease of the node.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from edgewise.errors import LogError, LogLocked
from edgewise.log.kafka_reader import REQUEST_S, client_config

_SESSION_S = 6
_RETRY_S = 0.1
_NOT_YET = {
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.NOT_COORDINATOR,
}


class WriterGroup:
    """Membership in the group, kept alive by a thread."""

    def __init__(self, broker: str, topic: str, *, take_over: bool) -> None:
        self._group = f"edgewise-writer-{topic}"
        self._location = f"kafka://{broker}/{topic}"
        self.lost = False
        self._held = threading.Event()
        self._ending = False
        if not take_over:
            self._refuse_if_taken(broker)
        self._member = Consumer(
            {
                **client_config(broker),
                "group.id": self._group,
                "client.id": f"{socket.gethostname()}-{os.getpid()}",
                "session.timeout.ms": _SESSION_S * 1000,
                "heartbeat.interval.ms": 500,
                "enable.auto.commit": False,
                "partition.assignment.strategy": "cooperative-sticky",
                "auto.offset.reset": "latest",
            }
        )
        self._member.subscribe(
            [topic], on_assign=self._won, on_revoke=self._gone, on_lost=self._gone
        )
        self._thread = threading.Thread(target=self._keep, name=self._group, daemon=True)
        self._thread.start()
        # A takeover does not wait for the old member to leave: the fence keeps it out.
        if not take_over and not self._held.wait(REQUEST_S):
            self.close()
            raise LogLocked(
                f"{self._location}: another process writes this log, and it has one writer"
            )

    def close(self) -> None:
        self._ending = True
        self._thread.join()

    def _refuse_if_taken(self, broker: str) -> None:
        members = self._members(AdminClient(client_config(broker)))
        if members:
            raise LogLocked(
                f"{self._location}: {members[0].client_id} at {members[0].host} writes this "
                f"log, and a log has one writer; a writer that died is let go after {_SESSION_S} s"
            )

    def _members(self, admin: AdminClient) -> list[Any]:
        deadline = time.monotonic() + REQUEST_S
        while True:
            described = admin.describe_consumer_groups([self._group], request_timeout=REQUEST_S)
            try:
                return list(described[self._group].result().members)
            except KafkaException as error:
                reported = error.args[0]
                if reported.code() == KafkaError.GROUP_ID_NOT_FOUND:
                    return []
                if reported.code() not in _NOT_YET or time.monotonic() > deadline:
                    raise LogError(f"{self._location}: {reported}") from error
                time.sleep(_RETRY_S)

    def _won(self, consumer: Any, partitions: list[TopicPartition]) -> None:
        if partitions:
            consumer.incremental_assign(partitions)
            consumer.pause(partitions)
            self._held.set()
            # A writer that came meanwhile has fenced us; if none came, nothing has changed.
            self.lost = False

    def _gone(self, consumer: Any, partitions: list[TopicPartition]) -> None:
        del consumer, partitions
        self.lost = True

    def _keep(self) -> None:
        while not self._ending:
            self._member.poll(0.1)
        self._member.close()
