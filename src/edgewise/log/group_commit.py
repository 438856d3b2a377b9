"""Commit appends in groups: those that wait for the disk at the same time share one fsync.

There is no committer thread. The first append to arrive is the leader: it takes all that wait,
commits them together and passes the lead to one that arrived meanwhile. So a single append pays no
thread switch, and under load the groups grow by themselves. Writers of segment files and of Kafka
logs use it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from edgewise.errors import LogError
from edgewise.log.api import EncodedBatch
from edgewise.log.frame import PRODUCER_BYTES_MAX


class PendingCommit:
    """An entry that waits for its commit, which sets `answer` or `error`."""

    __slots__ = ("_ready", "answer", "done", "error", "size")

    def __init__(self, size: int) -> None:
        self.size = size
        self.answer: object = None
        self.error: BaseException | None = None
        self.done = False
        self._ready: threading.Event | None = None

    def _wait(self) -> None:
        assert self._ready is not None
        self._ready.wait()

    def _notify(self) -> None:
        if self._ready:
            self._ready.set()


class PendingAppend(PendingCommit):
    """Encoded rows that wait. `answer` is an Appended once they are durable."""

    __slots__ = ("batches", "producer", "sequence")

    def __init__(self, batches: list[EncodedBatch], producer: str, sequence: int) -> None:
        super().__init__(sum(batch.body.size for batch in batches))
        self.batches = batches
        self.producer = producer
        self.sequence = sequence

    @classmethod
    def prepare(
        cls, batches: list[EncodedBatch], producer: str, sequence: int
    ) -> PendingAppend | None:
        """None if there is nothing to write: no rows, and no sequence to remember."""
        if len(producer.encode()) > PRODUCER_BYTES_MAX:
            raise LogError(f"a producer's name has at most {PRODUCER_BYTES_MAX} bytes")
        if not any(batch.rows for batch in batches) and (not producer or sequence < 0):
            return None
        return cls(batches, producer, sequence)


P = TypeVar("P", bound=PendingCommit)


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
        """Return when the entry was committed; raise the error of its commit."""
        with self._changed:
            # An entry above the limit may go alone: waiting does not make it smaller.
            while self._bytes and self._bytes + entry.size > self._bytes_max:
                self._changed.wait()
            if self._closed:
                raise LogError("the log was closed; open a new writer to append")
            self._queue.append(entry)
            self._bytes += entry.size
            if self._leader is None:
                self._leader = entry
            else:
                entry._ready = threading.Event()  # noqa: SLF001  created here, under the lock
        try:
            if entry._ready:  # noqa: SLF001
                entry._wait()  # noqa: SLF001
            if not entry.done:
                self._lead()
        except BaseException:
            self._withdraw(entry)
            raise
        if entry.error:
            raise entry.error

    def close(self) -> None:
        """Refuse new entries and wait for those under way."""
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
            # Ctrl-C belongs to the thread that got it; the others get an error of their own.
            interrupted = LogError("the append was interrupted; it may be there or not")
            shared = error if isinstance(error, Exception) else interrupted
            for entry in group:
                if entry.answer is None and entry.error is None:
                    entry.error = shared
            raise
        finally:
            self._finish(group)

    def _finish(self, group: list[P]) -> None:
        for entry in group:
            entry.done = True
        with self._changed:
            self._bytes -= sum(entry.size for entry in group)
            self._choose_leader()
        for entry in group:
            entry._notify()  # noqa: SLF001

    def _choose_leader(self) -> None:
        self._leader = self._queue[0] if self._queue else None
        if self._leader:
            self._leader._notify()  # noqa: SLF001
        self._changed.notify_all()

    def _withdraw(self, entry: P) -> None:
        """Its thread was interrupted (Ctrl-C): nobody may wait for it to lead."""
        with self._changed:
            if entry in self._queue:
                self._queue.remove(entry)
                self._bytes -= entry.size
            if self._leader is entry:
                self._choose_leader()
