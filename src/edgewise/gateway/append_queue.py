"""Append admitted events to one log, in order of arrival, many requests per durable append.

While one append is on its way to the disk, requests that arrive wait and form the next one: the
busier a stream, the fewer writes per event. Events of a named producer keep an append of their
own, because its sequence number belongs to exactly those events; two appends of one producer never
run at the same time, or the later sequence would make the log drop the earlier one.

Used by `http` and `websocket`, and through `source_writer` by all other sources.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from itertools import accumulate

from edgewise.event.clock import SystemClock
from edgewise.gateway.admit import Admission, AdmittedEvents
from edgewise.gateway.dedup import PartlyAppended
from edgewise.log.api import Appended, LogWriter

GROUP_ROWS_MAX = 64 * 1024


class CaptureClock:
    """Capture times of one source: microseconds, strictly increasing."""

    def __init__(self, clock: SystemClock) -> None:
        self._clock = clock
        self._next_us = 0

    def now_us(self) -> int:
        return max(self._clock.now_us(), self._next_us)

    def advance(self, at_us: int, count: int) -> None:
        """Events were stamped with the times `at_us` up to `at_us + count - 1`."""
        self._next_us = at_us + count


@dataclass(slots=True, eq=False)
class _PendingAppend:
    events: AdmittedEvents
    producer: str
    sequence: int
    done: asyncio.Future[Appended]


class AppendQueue:
    """The queue in front of one log. Its source bounds it, by the bytes in flight."""

    def __init__(
        self,
        writer: LogWriter,
        admission: Admission,
        pool: Executor,
        observe_append: Callable[[float], None] = lambda _seconds: None,
    ) -> None:
        self._writer = writer
        self._admission = admission
        self._pool = pool
        self._appended = observe_append
        self._pending: deque[_PendingAppend] = deque()
        self._task: asyncio.Task[None] | None = None

    async def append(
        self, events: AdmittedEvents, *, producer: str = "", sequence: int = -1
    ) -> Appended:
        """Returns when the events are durable; raises what the log raised for them."""
        done: asyncio.Future[Appended] = asyncio.get_running_loop().create_future()
        self._pending.append(_PendingAppend(events, producer, sequence, done))
        if self._task is None:
            self._task = asyncio.create_task(self._run())
        return await done

    async def flush(self, timeout_s: float) -> None:
        """Wait until the queue is empty, at most so long."""
        if self._task is not None:
            await asyncio.wait([self._task], timeout=timeout_s)

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while self._pending:
            plain, by_producer = self._take_group()
            began = loop.time()
            appends = [self._append(loop, [pending]) for pending in by_producer]
            if plain:
                appends.append(self._append(loop, plain))
            await asyncio.gather(*appends)
            self._appended(loop.time() - began)
        self._task = None

    def _take_group(self) -> tuple[list[_PendingAppend], list[_PendingAppend]]:
        plain: list[_PendingAppend] = []
        by_producer: dict[str, _PendingAppend] = {}
        later: list[_PendingAppend] = []
        rows = 0
        while self._pending and rows < GROUP_ROWS_MAX:
            pending = self._pending.popleft()
            if not pending.producer:
                plain.append(pending)
            elif pending.producer not in by_producer:
                by_producer[pending.producer] = pending
            else:
                later.append(pending)
            rows += pending.events.count
        self._pending.extendleft(reversed(later))
        return plain, list(by_producer.values())

    async def _append(self, loop: asyncio.AbstractEventLoop, group: list[_PendingAppend]) -> None:
        try:
            appended = await loop.run_in_executor(self._pool, self._write, group)
        except Exception as error:  # noqa: BLE001  the pending requests raise it, each its own
            for pending in [*group, *self._withdraw(group[0].producer)]:
                if not pending.done.done():
                    pending.done.set_exception(error)
            return
        offset = appended.first
        for pending, count in zip(group, _count_appended(group, appended), strict=True):
            end = appended.end if len(group) == 1 else offset + count
            if not pending.done.done():
                pending.done.set_result(Appended(offset, end, appended.duplicate))
            offset = end

    def _withdraw(self, producer: str) -> list[_PendingAppend]:
        """Remove what waits behind a failed append of the same producer.

        Appended first, its higher sequence would make the log drop the failed one for ever.
        """
        if not producer:
            return []
        behind = [w for w in self._pending if w.producer == producer]
        self._pending = deque(w for w in self._pending if w.producer != producer)
        return behind

    def _write(self, group: list[_PendingAppend]) -> Appended:
        first = group[0]
        rows = self._admission.to_record_batch([w.events for w in group])
        return self._writer.append(rows, producer=first.producer, sequence=first.sequence)


def _count_appended(group: list[_PendingAppend], appended: Appended) -> list[int]:
    """How many events of each request were appended: all, unless ids were known (`dedup`)."""
    counts = [pending.events.count for pending in group]
    if not isinstance(appended, PartlyAppended):
        return counts
    ends = list(accumulate(counts))
    return [int(appended.kept[end - n : end].sum()) for n, end in zip(counts, ends, strict=True)]


def describe_append(count: int, known: int, appended: Appended) -> dict[str, int | bool]:
    """The answer to the sender of `count` events, of which the log already had `known`."""
    answer: dict[str, int | bool] = {
        "accepted": count,
        "first": appended.first,
        "end": appended.end,
    }
    if appended.duplicate:
        answer["duplicate"] = True
    elif known:
        answer["duplicates"] = known
    return answer
