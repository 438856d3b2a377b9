"""Wait for a number in a shared page to change, across threads and processes.

On Linux this is a futex on the mapped head file, so a reader wakes in microseconds and an idle one
costs nothing. Elsewhere it polls, more slowly the longer nothing happens. A futex wait is cut into
slices: should a wake-up ever be lost, the reader checks again one slice later. The head file of a
log (`head`) has one such counter, which the writer increments after each append.
"""

from __future__ import annotations

import ctypes
import mmap
import platform
import sys
import time

import numpy as np

SLICE_S = 0.25
POLL_S_MIN, POLL_S_MAX = 0.0002, 0.005
_FUTEX_WAIT, _FUTEX_WAKE, _EVERYONE = 0, 1, 2**31 - 1
_SYSCALLS = {"x86_64": 202, "aarch64": 98, "riscv64": 98, "ppc64le": 221, "s390x": 238}


class _Timespec(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))


def _futex_number() -> int:
    return _SYSCALLS.get(platform.machine(), 0) if sys.platform == "linux" else 0


class SharedCounter:
    """A 32 bit counter at `position` of a mapped page; `increment` wakes all who wait on it."""

    def __init__(self, page: mmap.mmap, position: int, *, futex: bool = True) -> None:
        self._cell = memoryview(page)[position : position + 4].cast("I")
        self._address = ctypes.c_void_p(np.frombuffer(self._cell, np.uint32).ctypes.data)
        self._number = _futex_number() if futex else 0
        self._syscall = ctypes.CDLL(None, use_errno=True).syscall if self._number else None

    def count(self) -> int:
        return self._cell[0]

    def increment(self) -> None:
        self._cell[0] = (self._cell[0] + 1) & 0xFFFFFFFF
        if self._syscall:
            self._syscall(self._number, self._address, _FUTEX_WAKE, _EVERYONE, None, None, 0)

    def wait(self, seen: int, timeout_s: float) -> None:
        """Back when the counter is no longer `seen`, after the timeout, or for no reason."""
        if timeout_s <= 0:
            return
        if not self._syscall:
            self._poll(seen, timeout_s)
            return
        span = min(timeout_s, SLICE_S)
        slept = _Timespec(int(span), int(span % 1 * 1e9))
        self._syscall(self._number, self._address, _FUTEX_WAIT, seen, ctypes.byref(slept), None, 0)

    def _poll(self, seen: int, timeout_s: float) -> None:
        end = time.monotonic() + min(timeout_s, SLICE_S)
        pause = POLL_S_MIN
        while self.count() == seen and (left := end - time.monotonic()) > 0:
            time.sleep(min(pause, left))
            pause = min(pause * 1.2, POLL_S_MAX)
