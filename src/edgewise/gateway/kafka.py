"""Connect to Kafka: topics as sources and sinks, each event once.

A source reads all partitions of a topic. How far it has read is the producer's sequence in our
log, written with the events; Kafka's own group offsets are not used. A sink writes rows and its
position in one Kafka transaction, so both are stored or neither; readers that skip open
transactions (`isolation.level=read_committed`) see each row once. Loaded by `connectors`.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from edgewise.errors import SetupError
from edgewise.event.clock import SystemClock
from edgewise.event.schema import Schema
from edgewise.gateway.renderers import build_renderer
from edgewise.gateway.sink_reader import Message, SinkCursor, SinkReader, Undelivered
from edgewise.gateway.source_writer import SourceWriter
from edgewise.gateway.spec import Guarantee, MapSpec, SinkSpec, SourceSpec
from edgewise.log.api import LogReader, LogWriter

logger = logging.getLogger(__name__)
BATCH_MAX = 1000  # messages of one append
POLL_S = 0.2
ANSWER_S = 10.0
DELIVER_ANSWERS = 4  # answers that one delivery waits for, at the most
PARTITIONS_MAX = 1024  # of one topic
TOPICS_MAX = 64  # of one source


def _name_producer(topic: str, partition: int) -> str:
    return f"kafka:{topic}:{partition}"


def _build_settings(options: Mapping[str, str], **more: Any) -> dict[str, Any]:
    # Connection errors are raised by calls; the client would also log each of them, many times.
    quiet = {"client.id": "edgewise", "log_level": 2, "reconnect.backoff.max.ms": 2000}
    return {"bootstrap.servers": options["servers"], **quiet, **build_security(options), **more}


def build_security(options: Mapping[str, str]) -> dict[str, str]:
    """TLS and SASL under the names of librdkafka; nothing for plain connections."""
    security = options.get("security", "plaintext")
    if security == "plaintext":
        return {}
    settings = {
        "security.protocol": security,
        "ssl.ca.location": options["ca"],
        "ssl.certificate.location": options["certificate"],
        "ssl.key.location": options["key.file"],
    }
    if security.startswith("sasl"):
        settings |= {
            "sasl.mechanisms": options["sasl.mechanism"],
            "sasl.username": options["username"],
            "sasl.password": options["password"],
        }
    return {name: value for name, value in settings.items() if value}


class KafkaSource:
    def __init__(
        self, spec: SourceSpec, schema: Schema, writer: LogWriter, clock: SystemClock
    ) -> None:
        self._options = spec.options
        self._topics = [t.strip() for t in spec.options["topic"].split(",")][:TOPICS_MAX]
        self._at_end = spec.options["from"] == "end"
        self._ingest = SourceWriter(spec, schema, writer, clock)
        self.stats = self._ingest.stats
        self._consumer: Any = None
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        await asyncio.to_thread(self._open)
        self._task = self._ingest.supervise(asyncio.create_task(self._run()))

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
            self._task = None
        await self._ingest.close()
        if self._consumer is not None:
            await asyncio.to_thread(self._consumer.close)
            self._consumer = None

    def _open(self) -> None:
        settings = _build_settings(
            self._options,
            **{
                "group.id": "edgewise",  # the client wants one; nothing is committed to it
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "isolation.level": "read_committed",
            },
        )
        self._consumer = Consumer(settings, logger=logger)
        try:
            assigned = [start for topic in self._topics for start in self._find_starts(topic)]
            self._consumer.assign(assigned)
        except KafkaException as error:
            self._consumer.close()
            self._consumer = None
            raise SetupError(f"no Kafka at {self._options['servers']}: {error}") from error
        if absent := [t for t in self._topics if t not in {p.topic for p in assigned}]:
            self._consumer.close()
            self._consumer = None
            raise SetupError(f"Kafka at {self._options['servers']} has no topic '{absent[0]}'")

    def _find_starts(self, topic: str) -> list[TopicPartition]:
        found = self._consumer.list_topics(topic, timeout=ANSWER_S).topics[topic]
        return [self._find_start(topic, n) for n in list(found.partitions)[:PARTITIONS_MAX]]

    def _find_start(self, topic: str, partition: int) -> TopicPartition:
        known = self._ingest.writer.last_sequence(_name_producer(topic, partition))
        if known >= 0:
            return TopicPartition(topic, partition, known + 1)
        low, high = self._consumer.get_watermark_offsets(
            TopicPartition(topic, partition), timeout=ANSWER_S
        )
        return TopicPartition(topic, partition, high if self._at_end else low)

    async def _run(self) -> None:
        while True:
            messages = await asyncio.to_thread(self._consumer.consume, BATCH_MAX, POLL_S)
            by_partition: dict[tuple[str, int], list[Any]] = {}
            for message in messages:
                if message.error() is not None:
                    logger.warning("source kafka: %s", message.error())
                elif message.value() is not None:
                    where = (message.topic(), message.partition())
                    by_partition.setdefault(where, []).append(message)
            for where, batch in by_partition.items():
                events = self._ingest.read_each(m.value() for m in batch)
                if events is not None:
                    await self._ingest.append(
                        events, producer=_name_producer(*where), sequence=batch[-1].offset()
                    )


class _CommittedCursor:
    """The cursor of a sink: the offset that Kafka committed with the rows."""

    def __init__(self, fallback: SinkCursor) -> None:
        self._fallback = fallback
        self.offset = -1

    def load(self) -> int:
        return self.offset if self.offset >= 0 else self._fallback.load()

    def save(self, offset: int) -> None:
        self._fallback.save(offset)


class KafkaSink:
    def __init__(
        self, spec: SinkSpec, schema: Schema, reader: LogReader, cursor: SinkCursor
    ) -> None:
        self._options = spec.options
        self._topic = spec.options["topic"]
        self._once = spec.options["delivery"] == Guarantee.EFFECTIVELY_ONCE.value
        part = "" if spec.share is None else f"-{spec.share.index}"
        self._name = f"edgewise-{spec.stream}-{self._topic}{part}"
        key = spec.options["key"]
        self._key = build_renderer(MapSpec("text", {"template": key}), schema) if key else None
        self._cursor = _CommittedCursor(cursor)
        self._reader = SinkReader(spec, schema, reader, self._cursor)
        self.stats = self._reader.stats
        self._producer: Any = None
        self._group: Any = None

    async def start(self) -> None:
        try:
            await asyncio.to_thread(self._open)
        except KafkaException as error:
            await asyncio.to_thread(self._close)
            raise SetupError(f"no Kafka at {self._options['servers']}: {error}") from error
        self._reader.start(self._deliver)

    async def stop(self) -> None:
        await self._reader.stop()
        await asyncio.to_thread(self._close)

    def _open(self) -> None:
        settings = _build_settings(self._options, **{"enable.idempotence": True, "linger.ms": 5})
        if self._once:
            settings["transactional.id"] = self._name
            self._group = Consumer(
                _build_settings(self._options, **{"group.id": self._name}), logger=logger
            )
        self._producer = Producer(settings, logger=logger)
        self._producer.list_topics(self._topic, timeout=ANSWER_S)
        if self._once:
            # Also aborts what an earlier sink of this name left open: only one may write.
            self._producer.init_transactions(ANSWER_S)
            position = self._group.committed([TopicPartition(self._topic, 0)], timeout=ANSWER_S)[0]
            self._cursor.offset = position.offset

    def _close(self) -> None:
        if self._group is not None:
            self._group.close()
            self._group = None
        self._producer = None

    async def _deliver(self, messages: list[Message]) -> None:
        try:
            await _call_with_timeout(self._send, messages)
        except (KafkaException, BufferError) as error:
            raise Undelivered(f"{self._options['servers']}: {error}") from error
        except TimeoutError:
            # The next producer with our name fences this one, which ends its waiting.
            self._producer = self._group = None
            raise Undelivered(f"{self._options['servers']}: no answer") from None

    def _send(self, messages: list[Message]) -> None:
        if self._producer is None:
            try:
                self._open()
            except KafkaException:
                self._close()
                raise
        if self._once:
            # A commit whose answer was lost may have happened: `_open` asked Kafka.
            messages = [m for m in messages if m.offset >= self._cursor.offset]
            if not messages:
                return
            self._producer.begin_transaction()
        producer, group = self._producer, self._group
        try:
            self._produce(producer, messages)
            if self._once:
                position = TopicPartition(self._topic, 0, messages[-1].offset + 1)
                members = group.consumer_group_metadata()
                producer.send_offsets_to_transaction([position], members, ANSWER_S)
                producer.commit_transaction(ANSWER_S)
                self._cursor.offset = position.offset
        except (KafkaException, BufferError):
            if producer is self._producer:
                self._abort()
            raise

    def _produce(self, producer: Any, messages: list[Message]) -> None:
        failed: list[KafkaError] = []

        def delivered(error: KafkaError | None, _message: Any) -> None:
            if error is not None:
                failed.append(error)

        for message in messages:
            key = self._key(0, message.row) if self._key else None
            producer.produce(self._topic, message.payload, key, on_delivery=delivered)
            producer.poll(0)
        left = producer.flush(ANSWER_S)
        if failed:
            raise KafkaException(failed[0])
        if left:
            raise KafkaException(KafkaError(KafkaError._MSG_TIMED_OUT))  # noqa: SLF001

    def _abort(self) -> None:
        """Abort. Whether a failed commit happened is unknown: the next `_open` asks Kafka."""
        if self._once:
            try:
                self._producer.abort_transaction(ANSWER_S)
            except KafkaException as error:
                logger.info("sink kafka: %s", error)
            self._close()


async def _call_with_timeout(call: Callable[..., None], *arguments: Any) -> None:
    """Call in a thread of its own, with a timeout that holds.

    librdkafka may wait for a broker beyond its own timeout (seen in `send_offsets_to_transaction`
    after a restart). After a TimeoutError the thread is left to end by itself.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[None] = loop.create_future()

    def settle(error: BaseException | None) -> None:
        if done.done():
            return
        if error is not None:
            done.set_exception(error)
        else:
            done.set_result(None)

    def work() -> None:
        failure: BaseException | None = None
        try:
            call(*arguments)
        except (KafkaException, BufferError) as error:
            failure = error
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(settle, failure)

    threading.Thread(target=work, name="edgewise-kafka", daemon=True).start()
    async with asyncio.timeout(DELIVER_ANSWERS * ANSWER_S):
        await done
