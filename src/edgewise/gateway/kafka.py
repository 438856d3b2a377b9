"""Kafka topics as sources and sinks, each event once.

A source reads all partitions of a topic. How far it read is the producer's sequence in our log,
written with the events; Kafka's own group offsets are not asked. A sink writes rows and its
position in one Kafka transaction, so both are there or neither; readers that skip open
transactions (`isolation.level=read_committed`) see each row once.
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
from edgewise.event.clock import Clock
from edgewise.event.schema import Schema
from edgewise.gateway.drain import Cursor, Drain, Message, Undelivered
from edgewise.gateway.feed import Feed
from edgewise.gateway.renderers import renderer_of
from edgewise.gateway.spec import Guarantee, MapSpec, SinkSpec, SourceSpec
from edgewise.log.api import LogReader, LogWriter

logger = logging.getLogger(__name__)
BATCH_MAX = 1000  # messages of one append
POLL_S = 0.2
ANSWER_S = 10.0
DELIVER_ANSWERS = 4  # answers that one delivery waits for, at the most
PARTITIONS_MAX = 1024


def _settings(options: Mapping[str, str], **more: Any) -> dict[str, Any]:
    # Connection faults come as errors of calls; the client's own lines for each would drown them.
    quiet = {"client.id": "edgewise", "log_level": 2, "reconnect.backoff.max.ms": 2000}
    return {"bootstrap.servers": options["servers"], **quiet, **more}


class KafkaSource:
    def __init__(self, spec: SourceSpec, schema: Schema, writer: LogWriter, clock: Clock) -> None:
        self._options = spec.options
        self._topic = spec.options["topic"]
        self._at_end = spec.options["from"] == "end"
        self._feed = Feed(spec, schema, writer, clock)
        self.stats = self._feed.stats
        self._consumer: Any = None
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        await asyncio.to_thread(self._open)
        self._task = self._feed.watch(asyncio.create_task(self._run()))

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
            self._task = None
        await self._feed.close()
        if self._consumer is not None:
            await asyncio.to_thread(self._consumer.close)
            self._consumer = None

    def _open(self) -> None:
        settings = _settings(
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
            found = self._consumer.list_topics(self._topic, timeout=ANSWER_S).topics[self._topic]
            places = [self._place(number) for number in list(found.partitions)[:PARTITIONS_MAX]]
            self._consumer.assign(places)
        except KafkaException as bad:
            self._consumer.close()
            self._consumer = None
            raise SetupError(f"no Kafka at {self._options['servers']}: {bad}") from bad
        if not places:
            self._consumer.close()
            self._consumer = None
            raise SetupError(f"Kafka at {self._options['servers']} has no topic '{self._topic}'")

    def _place(self, partition: int) -> TopicPartition:
        known = self._feed.writer.last_sequence(self._producer(partition))
        if known >= 0:
            return TopicPartition(self._topic, partition, known + 1)
        low, high = self._consumer.get_watermark_offsets(
            TopicPartition(self._topic, partition), timeout=ANSWER_S
        )
        return TopicPartition(self._topic, partition, high if self._at_end else low)

    def _producer(self, partition: int) -> str:
        return f"kafka:{self._topic}:{partition}"

    async def _run(self) -> None:
        while True:
            messages = await asyncio.to_thread(self._consumer.consume, BATCH_MAX, POLL_S)
            by_partition: dict[int, list[Any]] = {}
            for message in messages:
                if message.error() is not None:
                    logger.warning("source kafka: %s", message.error())
                elif message.value() is not None:
                    by_partition.setdefault(message.partition(), []).append(message)
            for partition, batch in by_partition.items():
                events = self._feed.read_each(m.value() for m in batch)
                if events is not None:
                    await self._feed.append(
                        events, producer=self._producer(partition), sequence=batch[-1].offset()
                    )


class _Committed:
    """The cursor of a sink: the offset that Kafka committed with the rows."""

    def __init__(self, fallback: Cursor) -> None:
        self._fallback = fallback
        self.offset = -1

    def load(self) -> int:
        return self.offset if self.offset >= 0 else self._fallback.load()

    def save(self, offset: int) -> None:
        self._fallback.save(offset)


class KafkaSink:
    def __init__(self, spec: SinkSpec, schema: Schema, reader: LogReader, cursor: Cursor) -> None:
        self._options = spec.options
        self._topic = spec.options["topic"]
        self._once = spec.options["delivery"] == Guarantee.EFFECTIVELY_ONCE.value
        self._name = f"edgewise-{spec.stream}-{self._topic}"
        key = spec.options["key"]
        self._key = renderer_of(MapSpec("text", {"template": key}), schema) if key else None
        self._cursor = _Committed(cursor)
        self._drain = Drain(spec, schema, reader, self._cursor)
        self.stats = self._drain.stats
        self._producer: Any = None
        self._group: Any = None

    async def start(self) -> None:
        try:
            await asyncio.to_thread(self._open)
        except KafkaException as bad:
            await asyncio.to_thread(self._close)
            raise SetupError(f"no Kafka at {self._options['servers']}: {bad}") from bad
        self._drain.start(self._deliver)

    async def stop(self) -> None:
        await self._drain.stop()
        await asyncio.to_thread(self._close)

    def _open(self) -> None:
        settings = _settings(self._options, **{"enable.idempotence": True, "linger.ms": 5})
        if self._once:
            settings["transactional.id"] = self._name
            self._group = Consumer(
                _settings(self._options, **{"group.id": self._name}), logger=logger
            )
        self._producer = Producer(settings, logger=logger)
        self._producer.list_topics(self._topic, timeout=ANSWER_S)
        if self._once:
            # Also ends what an earlier sink of this name left open: only one may write.
            self._producer.init_transactions(ANSWER_S)
            place = self._group.committed([TopicPartition(self._topic, 0)], timeout=ANSWER_S)[0]
            self._cursor.offset = place.offset

    def _close(self) -> None:
        if self._group is not None:
            self._group.close()
            self._group = None
        self._producer = None

    async def _deliver(self, messages: list[Message]) -> None:
        try:
            await _bounded(self._send, messages)
        except (KafkaException, BufferError) as bad:
            raise Undelivered(f"{self._options['servers']}: {bad}") from bad
        except TimeoutError:
            # The next producer of our name fences this one, which ends what it waits for.
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
            # A commit whose answer was lost may have happened: Kafka told us when we came back.
            messages = [m for m in messages if m.offset >= self._cursor.offset]
            if not messages:
                return
            self._producer.begin_transaction()
        producer, group = self._producer, self._group
        try:
            self._produce(producer, messages)
            if self._once:
                place = TopicPartition(self._topic, 0, messages[-1].offset + 1)
                members = group.consumer_group_metadata()
                producer.send_offsets_to_transaction([place], members, ANSWER_S)
                producer.commit_transaction(ANSWER_S)
                self._cursor.offset = place.offset
        except (KafkaException, BufferError):
            if producer is self._producer:
                self._give_up()
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

    def _give_up(self) -> None:
        """Whether a failed commit happened is unknown: a new producer ends it and knows."""
        if self._once:
            try:
                self._producer.abort_transaction(ANSWER_S)
            except KafkaException as bad:
                logger.info("sink kafka: %s", bad)
            self._close()


async def _bounded(call: Callable[..., None], *arguments: Any) -> None:
    """In a thread of its own, because librdkafka may wait for a broker beyond its own timeout
    (seen in `send_offsets_to_transaction` after a restart). TimeoutError leaves the thread behind.
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
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(settle, failure)

    threading.Thread(target=work, name="edgewise-kafka", daemon=True).start()
    async with asyncio.timeout(DELIVER_ANSWERS * ANSWER_S):
        await done
