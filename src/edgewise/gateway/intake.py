"""Admitted rows into one log: in order of arrival, many requests to one durable append.

While one append is on its way to the disk, those that arrive wait and form the next one. Rows of
a named producer keep an append of their own, since its sequence number belongs to exactly those
rows; two of the same producer never run at the same time, or the later would hide the earlier.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from itertools import accumulate

from edgewise.event.clock import Clock
from edgewise.gateway.admit import Admission, Admitted
from edgewise.gateway.dedup import Thinned
from edgewise.log.api import Appended, LogWriter

GROUP_ROWS_MAX = 64 * 1024


class Arrivals:
    """Capture times of one door: microseconds, strictly increasing."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._next_us = 0

    def now_us(self) -> int:
        return max(self._clock.now_us(), self._next_us)

    def took(self, at_us: int, count: int) -> None:
        """Events got the times `at_us` up to `at_us + count - 1`."""
        self._next_us = at_us + count


@dataclass(slots=True, eq=False)
class _Waiting:
    events: Admitted
    producer: str
    sequence: int
    done: asyncio.Future[Appended]


class Intake:
    """The queue in front of one log. What bounds it is its door's limit on bytes in flight."""

    def __init__(
        self,
        writer: LogWriter,
        admission: Admission,
        pool: Executor,
        appended: Callable[[float], None] = lambda _seconds: None,
    ) -> None:
        self._writer = writer
        self._admission = admission
        self._pool = pool
        self._appended = appended
        self._waiting: deque[_Waiting] = deque()
        self._drain: asyncio.Task[None] | None = None

    async def append(
        self, events: Admitted, *, producer: str = "", sequence: int = -1
    ) -> Appended:
        """Returns when the events are durable; raises what the log raised for them."""
        done: asyncio.Future[Appended] = asyncio.get_running_loop().create_future()
        self._waiting.append(_Waiting(events, producer, sequence, done))
        if self._drain is None:
            self._drain = asyncio.create_task(self._run())
        return await done

    async def settle(self, timeout_s: float) -> None:
        """Wait until nothing waits, at most so long."""
        if self._drain is not None:
            await asyncio.wait([self._drain], timeout=timeout_s)

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while self._waiting:
            plain, named = self._next_group()
            began = loop.time()
            jobs = [self._append(loop, [waiting]) for waiting in named]
            if plain:
                jobs.append(self._append(loop, plain))
            await asyncio.gather(*jobs)
            self._appended(loop.time() - began)
        self._drain = None

    def _next_group(self) -> tuple[list[_Waiting], list[_Waiting]]:
        plain: list[_Waiting] = []
        named: dict[str, _Waiting] = {}
        later: list[_Waiting] = []
        rows = 0
        while self._waiting and rows < GROUP_ROWS_MAX:
            waiting = self._waiting.popleft()
            if not waiting.producer:
                plain.append(waiting)
            elif waiting.producer not in named:
                named[waiting.producer] = waiting
            else:
                later.append(waiting)
            rows += waiting.events.count
        self._waiting.extendleft(reversed(later))
        return plain, list(named.values())

    async def _append(self, loop: asyncio.AbstractEventLoop, group: list[_Waiting]) -> None:
        try:
            got = await loop.run_in_executor(self._pool, self._write, group)
        except Exception as bad:  # noqa: BLE001  the waiting requests raise it, each its own
            for waiting in [*group, *self._withdraw(group[0].producer)]:
                if not waiting.done.done():
                    waiting.done.set_exception(bad)
            return
        offset = got.first
        for waiting, count in zip(group, _counts(group, got), strict=True):
            end = got.end if len(group) == 1 else offset + count
            if not waiting.done.done():
                waiting.done.set_result(Appended(offset, end, got.duplicate))
            offset = end

    def _withdraw(self, producer: str) -> list[_Waiting]:
        """What waits behind a failed append of its producer: appended first, it would hide it."""
        if not producer:
            return []
        behind = [w for w in self._waiting if w.producer == producer]
        self._waiting = deque(w for w in self._waiting if w.producer != producer)
        return behind

    def _write(self, group: list[_Waiting]) -> Appended:
        first = group[0]
        rows = self._admission.rows([w.events for w in group])
        return self._writer.append(rows, producer=first.producer, sequence=first.sequence)


def _counts(group: list[_Waiting], got: Appended) -> list[int]:
    """How many events of each the log took: all, unless it knew some of them."""
    counts = [waiting.events.count for waiting in group]
    if not isinstance(got, Thinned):
        return counts
    ends = list(accumulate(counts))
    return [int(got.kept[end - n : end].sum()) for n, end in zip(counts, ends, strict=True)]


def answer_of(count: int, known: int, got: Appended) -> dict[str, int | bool]:
    """What the sender of `count` events is told; `known` of them the log had already."""
    answer: dict[str, int | bool] = {"accepted": count, "first": got.first, "end": got.end}
    if got.duplicate:
        answer["duplicate"] = True
    elif known:
        answer["duplicates"] = known
    return answer
