"""Who may write a log that lives in Kafka: the one member of a consumer group.

A second writer finds the group taken and is refused; one that died is let go by the broker.
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

_LEASE_S = 6
_RETRY_S = 0.1
_NOT_YET = {
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.NOT_COORDINATOR,
}


class Lease:
    """Membership in the group of writers, kept alive by a thread."""

    def __init__(self, broker: str, topic: str, *, take_over: bool) -> None:
        self._group = f"edgewise-writer-{topic}"
        self._place = f"kafka://{broker}/{topic}"
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
                "session.timeout.ms": _LEASE_S * 1000,
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
        # Who takes over does not wait for the old member to go: the fence keeps it out.
        if not take_over and not self._held.wait(REQUEST_S):
            self.close()
            raise LogLocked(
                f"{self._place}: another process writes this log, and it has one writer"
            )

    def close(self) -> None:
        self._ending = True
        self._thread.join()

    def _refuse_if_taken(self, broker: str) -> None:
        members = self._members(AdminClient(client_config(broker)))
        if members:
            raise LogLocked(
                f"{self._place}: {members[0].client_id} at {members[0].host} writes this log, and "
                f"a log has one writer; a writer that died is let go after {_LEASE_S} s"
            )

    def _members(self, admin: AdminClient) -> list[Any]:
        deadline = time.monotonic() + REQUEST_S
        while True:
            described = admin.describe_consumer_groups([self._group], request_timeout=REQUEST_S)
            try:
                return list(described[self._group].result().members)
            except KafkaException as error:
                said = error.args[0]
                if said.code() == KafkaError.GROUP_ID_NOT_FOUND:
                    return []
                if said.code() not in _NOT_YET or time.monotonic() > deadline:
                    raise LogError(f"{self._place}: {said}") from error
                time.sleep(_RETRY_S)

    def _won(self, consumer: Any, partitions: list[TopicPartition]) -> None:
        if partitions:
            consumer.incremental_assign(partitions)
            consumer.pause(partitions)
            self._held.set()
            # Whoever wrote meanwhile has fenced us; if nobody did, all we know still holds.
            self.lost = False

    def _gone(self, consumer: Any, partitions: list[TopicPartition]) -> None:
        del consumer, partitions
        self.lost = True

    def _keep(self) -> None:
        while not self._ending:
            self._member.poll(0.1)
        self._member.close()
