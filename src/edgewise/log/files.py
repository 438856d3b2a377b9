"""Name, lock and sync the files of a log's directory.

- `lock`: held by the writer (flock); its text is the writer's process id
- `head`: how far readers may read, see `head.py`
- `00000000000000004096.seg`: a segment, named by its first offset, see `frame.py`
- `00000000000000000000.parquet`: a ledger that was moved to Parquet, see `parquet.py`

No other module joins these paths. Everything that opens a log of segment files uses it.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from edgewise.errors import LogLocked

SUFFIX = ".seg"
PARQUET = ".parquet"
_KINDS = (SUFFIX[1:], PARQUET[1:])
LOCK = "lock"
_VECTORS_MAX = 512  # of 1024 that Linux takes in one call
_LOCK_PAUSE_S = 0.02
_WRITER_WAIT_S = 0.1
# After a crash a reader holds the lock while it checks the last segment.
_READER_WAIT_S = 15.0
_LARGE_WRITE_BYTES = 2 * 1024 * 1024
_PIECE_BYTES = 1024 * 1024
_SYNC_FILE_RANGE_WRITE = 2  # starts writing without waiting; it promises no durability
_start_writing = getattr(ctypes.CDLL(None), "sync_file_range", None)
if _start_writing:
    _start_writing.argtypes = (ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint)
_DSYNC = getattr(os, "RWF_DSYNC", 0)
_UNKNOWN_FLAG = frozenset({errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS})
FULL_ERRORS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


def segment_path(directory: Path, base: int) -> Path:
    return directory / f"{base:020d}{SUFFIX}"


def parquet_path(directory: Path, base: int) -> Path:
    return directory / f"{base:020d}{PARQUET}"


def ledger_path(directory: Path, base: int) -> Path:
    """The file that holds a ledger now; the segment file if there is neither."""
    moved = parquet_path(directory, base)
    segment = segment_path(directory, base)
    return moved if moved.exists() and not segment.exists() else segment


def measure_ledger(directory: Path, base: int) -> int:
    """Its bytes, also while another process moves it to Parquet: one of the files is there."""
    for path in (ledger_path(directory, base), parquet_path(directory, base)):
        with suppress(FileNotFoundError):
            return path.stat().st_size
    return 0


def segment_bases(directory: Path) -> list[int]:
    """First offsets of all segments and ledgers, oldest first."""
    names = (n.partition(".") for n in os.listdir(directory))  # noqa: PTH208  Path is slow
    return sorted({int(stem) for stem, _, kind in names if kind in _KINDS})


def sync_directory(directory: Path) -> None:
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def make_directory(directory: Path) -> None:
    """Create it with its parents, so that it is still there after a power loss."""
    missing = [p for p in (directory, *directory.parents) if not p.exists()]
    directory.mkdir(parents=True, exist_ok=True)
    for created in missing:
        sync_directory(created.parent)


def sync_data(fd: int) -> None:
    """Sync the bytes and the length of a file, not its times."""
    getattr(os, "fdatasync", os.fsync)(fd)


def write_durably(fd: int, buffers: list[Any], position: int) -> None:
    """`write_all` and `sync_data`, in one system call where the system can do both."""
    size = sum([memoryview(b).nbytes for b in buffers])
    if size >= _LARGE_WRITE_BYTES:
        _write_large(fd, buffers, position)
        sync_data(fd)
        return
    try:
        done = os.pwritev(fd, buffers[:_VECTORS_MAX], position, _DSYNC) if _DSYNC else 0
    except OSError as error:
        if error.errno not in _UNKNOWN_FLAG:
            raise
        done = 0
    if done < size:
        write_all(fd, buffers, position)
        sync_data(fd)


def _write_large(fd: int, buffers: list[Any], position: int) -> None:
    """Write in pieces, so that the disk writes one piece while the next is copied."""
    for view in (memoryview(b).cast("B") for b in buffers):
        rest = view
        while rest:
            piece = rest[: _PIECE_BYTES - position % _PIECE_BYTES]  # whole pages, once each
            write_all(fd, [piece], position)
            if _start_writing and len(rest) > len(piece):
                _start_writing(fd, position, len(piece), _SYNC_FILE_RANGE_WRITE)
            position += len(piece)
            rest = rest[len(piece) :]


def write_all(fd: int, buffers: list[Any], position: int) -> int:
    """Write every byte of `buffers` at `position`; return how many."""
    views = [memoryview(b).cast("B") for b in buffers if len(memoryview(b)) > 0]
    total = 0
    while views:
        done = os.pwritev(fd, views[:_VECTORS_MAX], position + total)
        total += done
        while views and done >= len(views[0]):
            done -= len(views.pop(0))
        if views and done:
            views[0] = views[0][done:]
    return total


def replace_writer_lock(directory: Path) -> int:
    """Put a new lock file in place of the one that another writer may still hold."""
    temporary = directory / f"{LOCK}.tmp"
    fd = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.pwrite(fd, f"{os.getpid()}\n".encode(), 0)
    temporary.rename(directory / LOCK)
    return fd


def take_writer_lock(directory: Path) -> int:
    """Lock the log for writing. The lock is free when the file is closed or the process ends."""
    path = directory / LOCK
    start = time.monotonic()
    while True:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        holder = ""
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # A takeover puts a new file in place: a lock on the old one means nothing.
            if os.path.samestat(os.fstat(fd), path.stat()):
                os.ftruncate(fd, 0)
                os.pwrite(fd, f"{os.getpid()}\n".encode(), 0)
                return fd
        except BlockingIOError:
            holder = os.pread(fd, 32, 0).decode("ascii", "replace").strip()
        os.close(fd)
        wait_s = _WRITER_WAIT_S if _is_alive(holder) else _READER_WAIT_S
        if time.monotonic() - start > wait_s:
            raise LogLocked(
                f"{directory}: process {holder or 'unknown'} writes this log, and a log has one "
                "writer; stop that process or use another directory"
            )
        time.sleep(_LOCK_PAUSE_S)


def release_writer_lock(fd: int) -> None:
    os.ftruncate(fd, 0)
    os.close(fd)


def _is_alive(holder: str) -> bool:
    """Is the process whose id is in the lock still running?"""
    try:
        os.kill(int(holder), 0)
    except (ValueError, ProcessLookupError):
        return False
    except PermissionError:
        return True
    return True


@contextmanager
def exclude_writers(directory: Path) -> Iterator[bool]:
    """True if no writer has the log; then a shared lock keeps writers out inside the block."""
    try:
        fd = os.open(directory / LOCK, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        yield False
        return
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
    finally:
        os.close(fd)
