"""Group commit: appends that wait for the disk at the same time share one fsync.

There is no committer thread. The first append to come leads: it takes all that wait, commits them
together and hands the lead to one that came meanwhile. So a lonely append pays no switch of
threads, and under load the groups grow by themselves.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from edgewise.errors import LogError
from edgewise.log.api import Part
from edgewise.log.frame import PRODUCER_BYTES_MAX


class Pending:
    """One append on its way. The commit sets `answer` or `error`."""

    __slots__ = ("_wake", "answer", "done", "error", "size")

    def __init__(self, size: int) -> None:
        self.size = size
        self.answer: object = None
        self.error: BaseException | None = None
        self.done = False
        self._wake: threading.Event | None = None

    def _sleep(self) -> None:
        assert self._wake is not None
        self._wake.wait()

    def _rouse(self) -> None:
        if self._wake:
            self._wake.set()


class Append(Pending):
    """Rows on their way. `answer` is an Appended once they are durable."""

    __slots__ = ("parts", "producer", "sequence")

    def __init__(self, parts: list[Part], producer: str, sequence: int) -> None:
        super().__init__(sum(part.body.size for part in parts))
        self.parts = parts
        self.producer = producer
        self.sequence = sequence

    @classmethod
    def of(cls, parts: list[Part], producer: str, sequence: int) -> Append | None:
        """None when there is nothing to write: no rows, and no sequence to remember."""
        if len(producer.encode()) > PRODUCER_BYTES_MAX:
            raise LogError(f"a producer's name has at most {PRODUCER_BYTES_MAX} bytes")
        if not any(part.rows for part in parts) and (not producer or sequence < 0):
            return None
        return cls(parts, producer, sequence)


P = TypeVar("P", bound=Pending)


class GroupCommit(Generic[P]):
    """`commit` gets all waiting entries in the order they came; only one runs at a time."""

    def __init__(self, commit: Callable[[list[P]], None], bytes_max: int) -> None:
        self._commit = commit
        self._bytes_max = bytes_max
        self._queue: list[P] = []
        self._bytes = 0
        self._leader: P | None = None
        self._closed = False
        self._changed = threading.Condition()

    def submit(self, entry: P) -> None:
        """Back when the entry was committed; raises what went wrong with it."""
        with self._changed:
            # An entry above the limit may go alone: it cannot become smaller by waiting.
            while self._bytes and self._bytes + entry.size > self._bytes_max:
                self._changed.wait()
            if self._closed:
                raise LogError("the log was closed; open a new writer to append")
            self._queue.append(entry)
            self._bytes += entry.size
            if self._leader is None:
                self._leader = entry
            else:
                entry._wake = threading.Event()  # noqa: SLF001  created here, under the lock
        try:
            if entry._wake:  # noqa: SLF001
                entry._sleep()  # noqa: SLF001
            if not entry.done:
                self._lead()
        except BaseException:
            self._forsake(entry)
            raise
        if entry.error:
            raise entry.error

    def close(self) -> None:
        """Refuse what comes, wait for what is under way."""
        with self._changed:
            self._closed = True
            while self._leader:
                self._changed.wait()

    def _lead(self) -> None:
        group: list[P] = []
        try:
            with self._changed:
                group, self._queue = self._queue, []
            self._commit(group)
        except BaseException as error:
            # Ctrl-C is for the thread that got it; the others are told what it means for them.
            known = isinstance(error, Exception)
            told = (
                error if known else LogError("the append was broken off; it may be there or not")
            )
            for entry in group:
                if entry.answer is None and entry.error is None:
                    entry.error = told
            raise
        finally:
            self._hand_over(group)

    def _hand_over(self, group: list[P]) -> None:
        for entry in group:
            entry.done = True
        with self._changed:
            self._bytes -= sum(entry.size for entry in group)
            self._pass_on()
        for entry in group:
            entry._rouse()  # noqa: SLF001

    def _pass_on(self) -> None:
        self._leader = self._queue[0] if self._queue else None
        if self._leader:
            self._leader._rouse()  # noqa: SLF001
        self._changed.notify_all()

    def _forsake(self, entry: P) -> None:
        """Its thread was interrupted (Ctrl-C): others must not wait for it to lead."""
        with self._changed:
            if entry in self._queue:
                self._queue.remove(entry)
                self._bytes -= entry.size
            if self._leader is entry:
                self._pass_on()
