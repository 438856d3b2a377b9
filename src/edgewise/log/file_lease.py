"""Keep a lease in a directory, on a local disk or on a file system that several machines mount.

    lease/00000000000000000007     epoch 7: holder, sign of life, checksum; one file for each win

A win is a hard link to a name that must not exist, so an epoch is won once, on every file system
with atomic links. The holder rewrites its file with each renewal; a contender that sees the same
bytes for longer than the holder's `ttl_ms` links the next epoch. The holder finds that file when
it renews, and has lost.

    holder      link 7 ... renew ... renew ... (stopped) ............ renew: 8 exists, lost
    contender          sees 7 change          sees no change, link 8

A holder that died is found sooner: it keeps its file locked (flock), and a contender on the same
kernel (same boot id) that gets the lock knows that the process is gone. A stopped process keeps
its lock and is waited for. Locks between machines are not relied on.
"""

from __future__ import annotations

import fcntl
import os
import socket
import time
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import msgspec

from edgewise.errors import LeaseError
from edgewise.log.files import make_directory, sync_directory
from edgewise.log.lease import EPOCH_NONE, RATE_MARGIN, TTL_MS, LeaseRecord

DIRECTORY = "lease"
RECORD_BYTES_MAX = 4096
_NAME_DIGITS = 20
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class FileRecord(msgspec.Struct, frozen=True):
    """What the file of an epoch holds; `beat` differs with each renewal."""

    epoch: int
    holder: str
    since_ms: int
    ttl_ms: int
    boot_id: str
    beat: int = 0
    released: bool = False


def monotonic_ms() -> int:
    return time.monotonic_ns() // 1_000_000


def wall_ms() -> int:
    return time.time_ns() // 1_000_000


def name_holder() -> str:
    """The name of this process in a lease."""
    return f"{socket.gethostname()}:{os.getpid()}"


def read_boot_id() -> str:
    """The id of the running kernel; '' where there is none, and then no lock is trusted."""
    try:
        return _BOOT_ID.read_text().strip()
    except OSError:
        return ""


class FileLease:
    """See `log.lease.Lease`. `ttl_ms` is how long others leave us the lease without a renewal."""

    def __init__(
        self,
        directory: Path,
        holder: str = "",
        *,
        ttl_ms: int = TTL_MS,
        now_ms: Callable[[], int] = monotonic_ms,
        boot_id: str | None = None,
    ) -> None:
        self.directory = Path(directory) / DIRECTORY
        self._holder = holder or name_holder()
        self._ttl_ms = ttl_ms
        self._now_ms = now_ms
        self._boot_id = read_boot_id() if boot_id is None else boot_id
        self._held: FileRecord | None = None
        self._fd = -1
        self._seen: tuple[int, bytes] = (EPOCH_NONE, b"")
        self._seen_ms = 0

    @property
    def fails_with_logs(self) -> bool:
        return False  # a log that is mapped may be written while its directory does not answer

    @property
    def epoch(self) -> int:
        return EPOCH_NONE if self._held is None else self._held.epoch

    def try_acquire(self) -> bool:
        assert self._held is None, "the lease is ours already"
        try:
            make_directory(self.directory)
            last = self._last_epoch()
            return self._is_free(last) and self._link(last + 1)
        except OSError as error:
            raise LeaseError(f"cannot write {self.directory}: {error.strerror}") from error

    def renew(self) -> bool:
        if self._held is None:
            return False
        held = msgspec.structs.replace(self._held, beat=self._held.beat + 1)
        try:
            if self._last_epoch() != held.epoch:
                return False
            # Opened by name each time: on a network file system closing makes others see it.
            _overwrite(self._path(held.epoch), _encode(held))
        except FileNotFoundError:
            return False
        except OSError as error:
            raise LeaseError(f"cannot write {self.directory}: {error.strerror}") from error
        self._held = held
        return True

    def read(self) -> LeaseRecord | None:
        try:
            epoch = self._last_epoch()
            raw = b"" if epoch == EPOCH_NONE else self._read(epoch)
        except FileNotFoundError:
            return None
        if epoch == EPOCH_NONE:
            return None
        record = _decode(raw)
        if record is None:  # torn by a crash: the name of the file still says the epoch
            return LeaseRecord(epoch, "unknown")
        return LeaseRecord(epoch, record.holder, record.since_ms, record.released)

    def release(self) -> None:
        held, self._held = self._held, None
        if held is None:
            return
        with suppress(FileNotFoundError):
            given_back = msgspec.structs.replace(held, beat=held.beat + 1, released=True)
            _overwrite(self._path(held.epoch), _encode(given_back))
        os.close(self._fd)
        self._fd = -1

    def _is_free(self, epoch: int) -> bool:
        if epoch == EPOCH_NONE:
            return True
        try:
            raw = self._read(epoch)
        except FileNotFoundError:  # replaced by a later epoch meanwhile
            return False
        record = _decode(raw)
        if record is not None and record.released:
            return True
        if (epoch, raw) != self._seen:
            self._seen, self._seen_ms = (epoch, raw), self._now_ms()
        if record is not None and record.boot_id == self._boot_id and self._holder_died(epoch):
            return True
        ttl_ms = self._ttl_ms if record is None else record.ttl_ms
        return self._now_ms() - self._seen_ms > ttl_ms * RATE_MARGIN

    def _holder_died(self, epoch: int) -> bool:
        if not self._boot_id:
            return False
        fd = os.open(self._path(epoch), os.O_RDONLY | os.O_CLOEXEC)
        try:
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return False
        else:
            return True
        finally:
            os.close(fd)

    def _link(self, epoch: int) -> bool:
        record = FileRecord(epoch, self._holder, wall_ms(), self._ttl_ms, self._boot_id)
        temporary = self.directory / f"{os.getpid()}.{id(self)}.tmp"
        fd = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
        try:
            os.write(fd, _encode(record))
            os.fsync(fd)
            with suppress(OSError):  # without locks a death is found by the missing renewals
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._path(epoch).hardlink_to(temporary)
            sync_directory(self.directory)
            # A name may be free again because later epochs were won and old files removed.
            if self._last_epoch() == epoch:
                self._held, self._fd, fd = record, fd, -1
                self._remove_before(epoch)
            else:
                self._path(epoch).unlink(missing_ok=True)
        except FileExistsError:
            return False
        finally:
            temporary.unlink(missing_ok=True)
            if fd >= 0:
                os.close(fd)
        return self._held is not None

    def _last_epoch(self) -> int:
        names = (path.name for path in self.directory.iterdir())
        return max((int(n) for n in names if n.isdigit()), default=EPOCH_NONE)

    def _remove_before(self, epoch: int) -> None:
        for path in self.directory.iterdir():
            if path.name.isdigit() and int(path.name) < epoch:
                path.unlink(missing_ok=True)

    def _path(self, epoch: int) -> Path:
        return self.directory / f"{epoch:0{_NAME_DIGITS}d}"

    def _read(self, epoch: int) -> bytes:
        with self._path(epoch).open("rb") as file:
            return file.read(RECORD_BYTES_MAX)


def _overwrite(path: Path, content: bytes) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.pwrite(fd, content, 0)
        os.ftruncate(fd, len(content))
    finally:
        os.close(fd)


def _encode(record: FileRecord) -> bytes:
    body = msgspec.json.encode(record)
    return body + b"\n%08x\n" % zlib.crc32(body)


def _decode(raw: bytes) -> FileRecord | None:
    """None for bytes that are no whole record: a reader may come between two writes."""
    body, _, check = raw.partition(b"\n")
    if check != b"%08x\n" % zlib.crc32(body):
        return None
    return msgspec.json.decode(body, type=FileRecord)
