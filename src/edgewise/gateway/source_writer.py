"""Map, check and append the messages of one source, and say when they are durable.

A source is a transport and a `SourceWriter`. It refuses what the stream does not take (counted,
and logged now and then), waits while the log accepts nothing, and reports when a message is
durable: only then the source acknowledges it to the other side. Used by all sources but HTTP,
whose senders wait for an answer.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from edgewise.errors import LogCorrupt, LogError
from edgewise.event.clock import SystemClock
from edgewise.event.schema import Schema
from edgewise.gateway.admit import Admission, AdmissionLimits, AdmittedEvents
from edgewise.gateway.append_queue import AppendQueue, CaptureClock
from edgewise.gateway.arrow_body import read_table
from edgewise.gateway.json_body import EventColumns
from edgewise.gateway.mappers import build_mapper
from edgewise.gateway.refusal import Refusal
from edgewise.gateway.spec import SourceSpec
from edgewise.gateway.stats import ConnectorStats
from edgewise.gateway.task_failures import report_failure
from edgewise.log.api import Appended, LogWriter

logger = logging.getLogger(__name__)
RETRY_S = 1.0
LOG_WAIT_EVERY = 60  # tries, one a second
SETTLE_S = 1.0
LOG_EVERY = 1000  # refusals of one kind between two lines in the program's log
APPEND_THREADS = 4
IN_FLIGHT_MAX = 1024  # messages read and not yet durable


class SourceWriter:
    """Writes the events of one source to one log."""

    def __init__(
        self, spec: SourceSpec, schema: Schema, writer: LogWriter, clock: SystemClock
    ) -> None:
        self.stats = ConnectorStats()
        self.writer = writer
        self._name = f"source {spec.type} of {spec.stream}"
        self._stream = spec.stream
        self._capture_clock = CaptureClock(clock)
        self._admission = Admission(schema, AdmissionLimits())
        self._admission.warm()
        self._mapper = build_mapper(spec.map, self._admission)
        self._pool = ThreadPoolExecutor(APPEND_THREADS, "edgewise-feed")
        self._waits = 0
        self._room = asyncio.Semaphore(IN_FLIGHT_MAX)
        self._tasks: set[asyncio.Task[None]] = set()
        self._append_queue = AppendQueue(
            writer, self._admission, self._pool, self.stats.observe_append
        )

    def supervise(self, task: asyncio.Task[None]) -> asyncio.Task[None]:
        return report_failure(task, self._name, self.stats)

    def read(self, payload: bytes) -> AdmittedEvents | None:
        """The events of one message; None, counted and logged, where they are refused."""
        result = self.try_read(payload)
        if isinstance(result, Refusal):
            self.refuse(result)
            return None
        return result

    def try_read(self, payload: bytes) -> AdmittedEvents | Refusal:
        """As `read`, but a refusal goes to the caller."""
        at_us = self._capture_clock.now_us()
        self.stats.bytes_in += len(payload)
        return self._advance_clock(self._mapper.read(payload, at_us), at_us)

    def read_each(self, payloads: Iterable[bytes]) -> AdmittedEvents | None:
        """The events of all valid payloads, joined; None where there are none."""
        parts = [part for payload in payloads if (part := self.read(payload)) is not None]
        return self._admission.merge(parts) if parts else None

    def read_table(self, table: Any) -> AdmittedEvents | None:
        """The rows of an Arrow table, all or none."""
        at_us = self._capture_clock.now_us()
        found = read_table(table, self._admission.schema)
        columns = found if isinstance(found, list) else EventColumns(*found)
        result = self._advance_clock(self._admission.stamp(columns, at_us), at_us)
        if isinstance(result, Refusal):
            self.refuse(result)
            return None
        return result

    def _advance_clock(
        self, result: AdmittedEvents | Refusal, at_us: int
    ) -> AdmittedEvents | Refusal:
        if isinstance(result, AdmittedEvents):
            self._capture_clock.advance(at_us, result.count)
        return result

    def refuse(self, why: Refusal) -> None:
        count = self.stats.refused[self._stream, why.code] = (
            self.stats.refused[self._stream, why.code] + 1
        )
        if count % LOG_EVERY == 1:
            logger.warning("%s refused a message (%d so far): %s", self._name, count, why.message)

    async def append(
        self, events: AdmittedEvents, *, producer: str = "", sequence: int = -1
    ) -> Appended:
        """Returns when the events are durable, however long the disk is full or a broker away.

        The other side keeps what is not acknowledged meanwhile.
        """
        while True:
            try:
                result = await self._append_queue.append(
                    events, producer=producer, sequence=sequence
                )
            except LogCorrupt:
                raise
            except LogError as error:
                if self._waits % LOG_WAIT_EVERY == 0:
                    logger.warning("%s waits for its log: %s", self._name, error)
                self._waits += 1
                self.stats.failed = f"waits for its log: {error}"
                await asyncio.sleep(RETRY_S)
                continue
            if self._waits:
                logger.warning("%s: the log accepts events again", self._name)
                self.stats.failed = ""
            self._waits = 0
            self.stats.count_appended(self._stream, events.count, result)
            return result

    async def accept(self, payload: bytes, *, producer: str = "", sequence: int = -1) -> bool:
        """Read and append one message; False where it was refused."""
        events = self.read(payload)
        if events is None:
            return False
        await self.append(events, producer=producer, sequence=sequence)
        return True

    async def offer(self, payload: bytes, durable: Callable[[], None] = lambda: None) -> None:
        """Accept a message without waiting for the disk; returns when there is room for the next.

        `durable` is called when its events are in the log, and also when they were refused: sent
        again they would be refused again.
        """
        await self._room.acquire()
        events = self.read(payload)
        if events is None:
            self._room.release()
            durable()
            return
        task = self.supervise(asyncio.create_task(self._finish(events, durable)))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _finish(self, events: AdmittedEvents, durable: Callable[[], None]) -> None:
        try:
            await self.append(events)
            durable()
        finally:
            self._room.release()

    async def close(self) -> None:
        """Wait a moment for appends on their way; what is left was never acknowledged."""
        if self._tasks:
            _, late = await asyncio.wait(set(self._tasks), timeout=SETTLE_S)
            for task in late:
                task.cancel()
        await self._append_queue.flush(SETTLE_S)
        self._pool.shutdown(wait=False)
