"""The lease as two files in the data directory, and the loop that keeps a node in the race.

    lease.lock    who has it locked (flock) holds the lease; the kernel frees it when the process
                  ends, however it ends
    lease.epoch   how often the lease was won, by whom, with a checksum; replaced as a whole and
                  fsynced before a win counts, so it only grows, power cuts included

A stopped process (SIGSTOP, a debugger) keeps its lock: on one machine the kernel is the judge,
and a process that can still write must not be replaced. If the lock file is deleted or replaced
under its holder, the holder finds another file (or a higher epoch) there and is fenced. The lock
belongs to the process that took it and does not pass through exec; a bare fork would share it.
"""

from __future__ import annotations

import fcntl
import os
import queue
import socket
import threading
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from edgewise.errors import LeaseError
from edgewise.event.position import Position
from edgewise.ha.election import (
    EPOCH_NONE,
    Action,
    Drain,
    Election,
    ElectionConfig,
    LeaseGone,
    LeaseKept,
    LeaseSeen,
    LeaseWon,
    Message,
    NodeAction,
    Release,
    Renew,
    TryAcquire,
)
from edgewise.ha.fsm import Role

LOCK_FILE = "lease.lock"
EPOCH_FILE = "lease.epoch"
EPOCH_FILE_BYTES_MAX = 4096
ACQUIRE_POLL_S = 0.1
TICK_S = 0.1  # the loop looks at the lease and at the clock this often
INBOX_MAX = 64  # reports of the node that wait for the loop
DRAIN_TIMEOUT_S = 5.0


@dataclass(frozen=True, slots=True)
class LeaseRecord:
    """The last win: its epoch, and who won (`host:pid`)."""

    epoch: int
    holder: str


class Lease:
    """The right to write in a data directory. Not thread-safe: one owner, one thread."""

    def __init__(self, directory: Path, holder: str = "") -> None:
        self._directory = directory
        self._lock_path = directory / LOCK_FILE
        self._epoch_path = directory / EPOCH_FILE
        self._holder = holder or f"{socket.gethostname()}:{os.getpid()}"
        self._fd = -1
        self._epoch = EPOCH_NONE

    @property
    def epoch(self) -> int:
        """The epoch we won, EPOCH_NONE while we hold nothing."""
        return self._epoch

    def acquire(self, wait_s: float) -> bool:
        """True when the lease is ours, False when it was not free within `wait_s`."""
        deadline_s = time.monotonic() + wait_s
        while not self.try_acquire():
            left_s = deadline_s - time.monotonic()
            if left_s <= 0:
                return False
            time.sleep(min(ACQUIRE_POLL_S, left_s))
        return True

    def try_acquire(self) -> bool:
        """Take the lease if it is free, and open a new epoch."""
        assert self._fd < 0, "the lease is ours already"
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
            fd = os.open(self._lock_path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise LeaseError(f"cannot open {self._lock_path}: {error.strerror}") from error
        try:
            if self._lock(fd):
                self._epoch = self._open_epoch()
                self._fd = fd
        finally:
            if self._fd < 0:
                os.close(fd)
        return self._fd >= 0

    def kept(self) -> bool:
        """Is the lease still ours? Looks at the files, so a holder that was replaced learns it."""
        if self._fd < 0:
            return False
        record = self.seen()
        return self._is_current(self._fd) and record is not None and record.epoch == self._epoch

    def seen(self) -> LeaseRecord | None:
        """The last win by anybody; None in a directory that never had one."""
        try:
            with self._epoch_path.open("rb") as file:
                raw = file.read(EPOCH_FILE_BYTES_MAX)
        except FileNotFoundError:
            return None
        return _decode(raw, self._epoch_path)

    def release(self) -> None:
        """Give the lease up; closing the file frees the lock. Twice is fine."""
        if self._fd >= 0:
            os.close(self._fd)
        self._fd = -1
        self._epoch = EPOCH_NONE

    def _lock(self, fd: int) -> bool:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        # Between open and flock the path may have got another file; ours then guards nothing.
        return self._is_current(fd)

    def _is_current(self, fd: int) -> bool:
        try:
            return os.path.samestat(os.fstat(fd), self._lock_path.stat())
        except FileNotFoundError:
            return False

    def _open_epoch(self) -> int:
        last = self.seen()
        epoch = (last.epoch if last else EPOCH_NONE) + 1
        fresh = self._epoch_path.with_suffix(".epoch-new")
        try:
            with fresh.open("wb") as file:
                file.write(_encode(LeaseRecord(epoch, self._holder)))
                file.flush()
                os.fsync(file.fileno())
            fresh.replace(self._epoch_path)
            directory = os.open(self._directory, os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fsync(directory)
            finally:
                os.close(directory)
        except OSError as error:
            raise LeaseError(f"cannot write {self._epoch_path}: {error.strerror}") from error
        return epoch


def _encode(record: LeaseRecord) -> bytes:
    body = f"epoch {record.epoch}\nholder {record.holder}\n".encode()
    return body + f"crc32 {zlib.crc32(body):08x}\n".encode()


def _decode(raw: bytes, path: Path) -> LeaseRecord:
    body, mark, check = raw.rpartition(b"crc32 ")
    if not mark or check != f"{zlib.crc32(body):08x}\n".encode():
        raise LeaseError(
            f"{path} fails its checksum, so it is not known which epoch comes next; restore it "
            "from a copy of this data directory, or remove it if no other node uses the directory"
        )
    epoch, holder = body.decode().splitlines()
    return LeaseRecord(int(epoch.removeprefix("epoch ")), holder.removeprefix("holder "))


def monotonic_ms() -> int:
    return time.monotonic_ns() // 1_000_000


class StandbyLoop:
    """Feeds time and what the lease says to the election, and hands orders to the node.

    `obey(action)` is called on the loop's thread, one action at a time, in order. It returns soon:
    a replay is started there, and `report(CaughtUp(epoch))` says that it ended. StepDown is the
    exception: it is done when `obey` returns, because the lease is given back right after it.
    `checkpoint()` tells where the node's state was last saved; it is asked after each win.

    If `obey` raises, the loop ends and keeps the lease: a node that cannot obey must end its
    process, and then the kernel gives the lease to the next.
    """

    def __init__(
        self,
        lease: Lease,
        checkpoint: Callable[[], Position],
        obey: Callable[[NodeAction], None],
        config: ElectionConfig | None = None,
        now_ms: Callable[[], int] = monotonic_ms,
    ) -> None:
        self._lease = lease
        self._checkpoint = checkpoint
        self._obey = obey
        self._now_ms = now_ms
        self._election = Election(config or ElectionConfig())
        self._inbox: queue.Queue[Message] = queue.Queue(INBOX_MAX)
        self._thread = threading.Thread(target=self._run_and_keep_failure, daemon=True)
        self.ended = threading.Event()
        self.failure: BaseException | None = None

    @property
    def role(self) -> Role:
        return self._election.role

    @property
    def epoch(self) -> int:
        return self._election.epoch

    def start(self) -> None:
        self._thread.start()

    def report(self, message: Message) -> None:
        """From any thread: CaughtUp, WritesRefused or Drain."""
        self._inbox.put_nowait(message)

    def drain(self, timeout_s: float = DRAIN_TIMEOUT_S) -> bool:
        """Hand over and end. False when the node did not step down in time; raises its failure."""
        if not self.ended.is_set():
            self.report(Drain())
        ended = self.ended.wait(timeout_s)
        if self.failure is not None:
            raise self.failure
        return ended

    def run(self) -> None:
        """Until drained, on this thread."""
        while not self._election.finished:
            self.turn()
            try:
                message = self._inbox.get(timeout=TICK_S)
            except queue.Empty:
                continue
            self._carry_out(self._election.step(message))

    def turn(self) -> None:
        """One look at the lease and at the clock."""
        # Looking comes first: a process that slept asks the lease before it judges by the clock.
        if self._lease.epoch != EPOCH_NONE:
            self._look(self._now_ms())
        self._carry_out(self._election.tick(self._now_ms()))

    def _run_and_keep_failure(self) -> None:
        try:
            self.run()
        except BaseException as error:  # noqa: BLE001 - handed to whoever waits, by drain()
            self.failure = error
        finally:
            self.ended.set()

    def _carry_out(self, actions: tuple[Action, ...]) -> None:
        for action in actions:
            match action:
                case TryAcquire(asked_ms):
                    self._try(asked_ms)
                case Renew(_, asked_ms):
                    self._look(asked_ms)
                case Release():
                    self._lease.release()
                case _:
                    self._obey(action)

    def _try(self, asked_ms: int) -> None:
        if self._lease.try_acquire():
            won = LeaseWon(self._lease.epoch, asked_ms, self._checkpoint())
            self._carry_out(self._election.step(won))
        else:
            record = self._lease.seen()
            epoch = record.epoch if record else EPOCH_NONE
            self._carry_out(self._election.step(LeaseSeen(epoch)))

    def _look(self, asked_ms: int) -> None:
        epoch = self._lease.epoch
        kept = self._lease.kept()
        message = LeaseKept(epoch, asked_ms) if kept else LeaseGone(epoch)
        self._carry_out(self._election.step(message))
