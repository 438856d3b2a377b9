"""The way of a message that nobody waits to be answered: mapped, checked, appended, counted.

A source is a transport and a feed. The feed refuses what the stream does not take (counted, and
said in the program's log, not for every one), waits while the log takes nothing, and says when a
message is durable: only then the source acknowledges it to the other side.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from edgewise.errors import LogCorrupt, LogError
from edgewise.event.clock import Clock
from edgewise.event.schema import Schema
from edgewise.gateway.admit import Admission, Admitted, Limits
from edgewise.gateway.arrow_body import columns_of
from edgewise.gateway.examine import Columns
from edgewise.gateway.intake import Arrivals, Intake
from edgewise.gateway.mappers import mapper_of
from edgewise.gateway.refusal import Refused
from edgewise.gateway.spec import SourceSpec
from edgewise.gateway.stats import DoorStats
from edgewise.gateway.watch import watch
from edgewise.log.api import Appended, LogWriter

logger = logging.getLogger(__name__)
RETRY_S = 1.0
SAY_WAIT_EVERY = 60  # tries, one a second
SETTLE_S = 1.0
SAY_EVERY = 1000  # refusals of one kind between two lines in the program's log
APPEND_THREADS = 4
IN_FLIGHT_MAX = 1024  # messages read and not yet durable


class Feed:
    """The events of one source into one log."""

    def __init__(self, spec: SourceSpec, schema: Schema, writer: LogWriter, clock: Clock) -> None:
        self.stats = DoorStats()
        self.writer = writer
        self._name = f"source {spec.type} of {spec.stream}"
        self._stream = spec.stream
        self._arrivals = Arrivals(clock)
        self._admission = Admission(schema, Limits())
        self._admission.warm()
        self._mapper = mapper_of(spec.map, self._admission)
        self._pool = ThreadPoolExecutor(APPEND_THREADS, "edgewise-feed")
        self._waits = 0
        self._room = asyncio.Semaphore(IN_FLIGHT_MAX)
        self._tasks: set[asyncio.Task[None]] = set()
        self._intake = Intake(writer, self._admission, self._pool, self.stats.appended)

    def watch(self, task: asyncio.Task[None]) -> asyncio.Task[None]:
        return watch(task, self._name, self.stats)

    def read(self, payload: bytes) -> Admitted | None:
        """The events of one message; None, counted and said, where they are refused."""
        got = self.attempt(payload)
        if isinstance(got, Refused):
            self.refuse(got)
            return None
        return got

    def attempt(self, payload: bytes) -> Admitted | Refused:
        """As `read`, and the caller decides what a refusal means."""
        at_us = self._arrivals.now_us()
        self.stats.bytes_in += len(payload)
        return self._stamped(self._mapper.read(payload, at_us), at_us)

    def read_each(self, payloads: Iterable[bytes]) -> Admitted | None:
        """The events of those payloads that are in order, as one; None where there are none."""
        parts = [part for payload in payloads if (part := self.read(payload)) is not None]
        return self._admission.merged(parts) if parts else None

    def read_table(self, table: Any) -> Admitted | None:
        """The rows of an Arrow table, all or none."""
        at_us = self._arrivals.now_us()
        found = columns_of(table, self._admission.schema)
        columns = found if isinstance(found, list) else Columns(*found)
        got = self._stamped(self._admission.admitted(columns, at_us), at_us)
        if isinstance(got, Refused):
            self.refuse(got)
            return None
        return got

    def _stamped(self, got: Admitted | Refused, at_us: int) -> Admitted | Refused:
        if isinstance(got, Admitted):
            self._arrivals.took(at_us, got.count)
        return got

    def refuse(self, why: Refused) -> None:
        count = self.stats.refused[self._stream, why.code] = (
            self.stats.refused[self._stream, why.code] + 1
        )
        if count % SAY_EVERY == 1:
            logger.warning("%s refused a message (%d so far): %s", self._name, count, why.message)

    async def append(
        self, events: Admitted, *, producer: str = "", sequence: int = -1
    ) -> Appended:
        """Returns when the events are durable; a full disk and a broker that is away are waited
        out. What was not acknowledged meanwhile the other side keeps.
        """
        while True:
            try:
                got = await self._intake.append(events, producer=producer, sequence=sequence)
            except LogCorrupt:
                raise
            except LogError as error:
                if self._waits % SAY_WAIT_EVERY == 0:
                    logger.warning("%s waits for its log: %s", self._name, error)
                self._waits += 1
                self.stats.failed = f"waits for its log: {error}"
                await asyncio.sleep(RETRY_S)
                continue
            if self._waits:
                logger.warning("%s goes on: the log takes events again", self._name)
                self.stats.failed = ""
            self._waits = 0
            self.stats.took(self._stream, events.count, got)
            return got

    async def take(self, payload: bytes, *, producer: str = "", sequence: int = -1) -> bool:
        """Read and append one message; False where it was refused."""
        events = self.read(payload)
        if events is None:
            return False
        await self.append(events, producer=producer, sequence=sequence)
        return True

    async def offer(self, payload: bytes, durable: Callable[[], None] = lambda: None) -> None:
        """Take a message without waiting for the disk; returns when there is room for the next.

        `durable` is called when its events are in the log, or when they were refused: sent again
        they would be refused again.
        """
        await self._room.acquire()
        events = self.read(payload)
        if events is None:
            self._room.release()
            durable()
            return
        task = self.watch(asyncio.create_task(self._finish(events, durable)))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _finish(self, events: Admitted, durable: Callable[[], None]) -> None:
        try:
            await self.append(events)
            durable()
        finally:
            self._room.release()

    async def close(self) -> None:
        """What waits for the disk gets a moment, the rest was never acknowledged."""
        if self._tasks:
            _, late = await asyncio.wait(set(self._tasks), timeout=SETTLE_S)
            for task in late:
                task.cancel()
        await self._intake.settle(SETTLE_S)
        self._pool.shutdown(wait=False)
