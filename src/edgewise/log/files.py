"""Names, locks and syncs of a log's directory: the only place that knows where a log's files lie.

lock                          held by the writer (flock), its text is the writer's process id
head                          how far readers may read, see `head.py`
00000000000000004096.seg      a segment, named by its first offset, see `frame.py`
"""

from __future__ import annotations

import errno
import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from edgewise.errors import LogLocked

SUFFIX = ".seg"
LOCK = "lock"
_VECTORS_MAX = 512  # of 1024 that Linux takes in one call
# A reader that settles a log after a power loss holds the lock for an instant.
_LOCK_TRIES_MAX, _LOCK_PAUSE_S = 5, 0.02
FULL_ERRORS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


def segment_path(directory: Path, base: int) -> Path:
    return directory / f"{base:020d}{SUFFIX}"


def segment_bases(directory: Path) -> list[int]:
    """First offsets of all segments, oldest first."""
    names = (n for n in os.listdir(directory) if n.endswith(SUFFIX))  # noqa: PTH208  Path is slow
    return sorted(int(n[: -len(SUFFIX)]) for n in names)


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
    """The bytes of a file and its length; its times may be lost."""
    getattr(os, "fdatasync", os.fsync)(fd)


def write_all(fd: int, buffers: list[object], position: int) -> int:
    """Write every byte of `buffers` at `position`; answers how many."""
    views = [memoryview(b).cast("B") for b in buffers if len(memoryview(b)) > 0]  # type: ignore[arg-type]
    total = 0
    while views:
        done = os.pwritev(fd, views[:_VECTORS_MAX], position + total)
        total += done
        while views and done >= len(views[0]):
            done -= len(views.pop(0))
        if views and done:
            views[0] = views[0][done:]
    return total


def take_writer_lock(directory: Path) -> int:
    """The locked file; closing it gives the lock back, so does the death of the process."""
    path = directory / LOCK
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    for attempt in range(_LOCK_TRIES_MAX):
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if attempt + 1 < _LOCK_TRIES_MAX:
                time.sleep(_LOCK_PAUSE_S)
            continue
        os.ftruncate(fd, 0)
        os.pwrite(fd, f"{os.getpid()}\n".encode(), 0)
        return fd
    holder = os.pread(fd, 32, 0).decode("ascii", "replace").strip() or "unknown"
    os.close(fd)
    raise LogLocked(
        f"{directory}: process {holder} writes this log, and a log has one writer; "
        "stop that process or use another directory"
    )


@contextmanager
def no_writer(directory: Path) -> Iterator[bool]:
    """True while nobody writes: a shared lock that keeps writers out for an instant."""
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
