"""Run one function of an app in a process that can do nothing else: no files, no network.

Started by `isolated_pool` as a script, with only the standard library and msgspec. It imports what
a function may use, gives up its rights, and only then runs a line of the function:

    rlimits   memory (address space), no new file descriptors, no bytes in files, no cores
    seccomp   only the system calls below, all others fail with EPERM; on Linux with x86-64 or
              arm64, elsewhere the rlimits alone hold

Time is limited by the parent, which kills this process. Messages are MessagePack, each behind its
length: requests [number, [arguments, ...]], answers [number, [[ok, value or reason], ...]].
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import resource
import signal
import struct
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

# What a function may import; nothing can be loaded later.
PRELOADED = (
    "base64", "bisect", "calendar", "collections", "datetime", "decimal", "fractions", "functools",
    "hashlib", "heapq", "itertools", "json", "math", "operator", "random", "re", "statistics",
    "string", "textwrap", "time", "unicodedata", "urllib.parse", "zoneinfo",
)  # fmt: skip
REASON_CHARS_MAX = 500
LENGTH = struct.Struct("<I")

# Numbers of: read write close fstat lseek mmap mprotect munmap brk rt_sigaction rt_sigprocmask
# rt_sigreturn readv writev sched_yield mremap madvise nanosleep getpid exit gettimeofday
# sigaltstack gettid futex clock_gettime clock_getres clock_nanosleep exit_group getrandom rseq
# restart_syscall. The first number is the architecture as the kernel names it.
ALLOWED = {
    "x86_64": (
        0xC000003E,
        (0, 1, 3, 5, 8, 9, 10, 11, 12, 13, 14, 15, 19, 20, 24, 25, 28, 35, 39, 60, 96, 131, 186,
         202, 228, 229, 230, 231, 318, 334, 219),
    ),
    "aarch64": (
        0xC00000B7,
        (63, 64, 57, 80, 62, 222, 226, 215, 214, 134, 135, 139, 65, 66, 124, 216, 233, 101, 172,
         93, 169, 132, 178, 98, 113, 114, 115, 94, 278, 293, 128),
    ),
}  # fmt: skip
_LOAD, _EQUAL, _RETURN = 0x20, 0x15, 0x06  # instructions of the kernel's filter
_ALLOW, _FAIL, _KILL = 0x7FFF0000, 0x00050000, 0x80000000
_NUMBER_AT, _ARCHITECTURE_AT = 0, 4
_DEATH_SIGNAL, _NO_NEW_PRIVILEGES, _SET_SECCOMP, _FILTER_MODE = 1, 38, 22, 2


def build_filter(machine: str) -> bytes:
    """The filter of system calls for an architecture; b'' where there is none."""
    if machine not in ALLOWED:
        return b""
    architecture, numbers = ALLOWED[machine]
    program = [
        (_LOAD, 0, 0, _ARCHITECTURE_AT),
        (_EQUAL, 1, 0, architecture),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER_AT),
        *((_EQUAL, len(numbers) - at, 0, number) for at, number in enumerate(numbers)),
        (_RETURN, 0, 0, _FAIL | errno.EPERM),
        (_RETURN, 0, 0, _ALLOW),
    ]
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in program)


def filter_system_calls() -> bool:
    """Whether the kernel took the filter; it holds until the process ends."""
    program = build_filter(platform.machine())
    if sys.platform != "linux" or not program:
        return False

    class Program(ctypes.Structure):
        _fields_ = (("count", ctypes.c_ushort), ("at", ctypes.c_void_p))

    code = ctypes.create_string_buffer(program, len(program))
    given = Program(len(program) // 8, ctypes.addressof(code))
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    # An endless loop must not outlive an engine that was killed.
    if prctl(_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0) or prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0):
        return False
    return not prctl(_SET_SECCOMP, _FILTER_MODE, ctypes.byref(given), 0, 0)


def limit_resources(memory_bytes: int) -> None:
    """`memory_bytes` more than the process has now."""
    limits = {"CORE": 0, "FSIZE": 0, "NOFILE": 0, "NPROC": 0}
    size_file = Path("/proc/self/statm")
    if size_file.exists():
        pages = int(size_file.read_text(encoding="ascii").split()[0])
        limits["AS"] = pages * resource.getpagesize() + memory_bytes
    for name, limit in limits.items():
        if hasattr(resource, f"RLIMIT_{name}"):
            resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (limit, limit))


def load_function(name: str, source: str) -> Callable[[list[Any]], Any]:
    space: dict[str, Any] = {}
    exec(compile(source, f"<function {name}>", "exec"), space)  # noqa: S102
    function: Callable[[list[Any]], Any] = space["body"]
    return function


def call(function: Callable[[list[Any]], Any], arguments: list[Any]) -> tuple[bool, Any]:
    try:
        return True, function(arguments)
    except MemoryError:
        return False, "it needs more memory than it may have"
    except BaseException as error:  # noqa: BLE001  whatever a stranger's code raises
        return False, f"{type(error).__name__}: {error}"[:REASON_CHARS_MAX]


def encode_answer(number: int, results: list[tuple[bool, Any]], bytes_max: int) -> bytes:
    try:
        body = msgspec.msgpack.encode([number, results])
    except (TypeError, ValueError, OverflowError, RecursionError, MemoryError) as error:
        body = b""
        reason = f"its result is no plain value: {error}"[:REASON_CHARS_MAX]
    else:
        reason = f"its results take {len(body)} bytes; the limit is {bytes_max}"
    if not body or len(body) > bytes_max:
        body = msgspec.msgpack.encode([number, [(False, reason)] * len(results)])
    return LENGTH.pack(len(body)) + body


def read_message(source: BinaryIO) -> Any:
    """None at the end."""
    head = source.read(LENGTH.size)
    if len(head) < LENGTH.size:
        return None
    return msgspec.msgpack.decode(source.read(LENGTH.unpack(head)[0]))


def main() -> None:
    """The first message is [name, source, memory in bytes, bytes of an answer]."""
    source, sink = sys.stdin.buffer, sys.stdout.fileno()
    name, text, memory_bytes, bytes_max = read_message(source)
    for module in PRELOADED:
        __import__(module)
    limit_resources(memory_bytes)
    filtered = filter_system_calls()
    os.write(sink, encode_answer(0, [(True, filtered)], bytes_max))
    try:
        function = load_function(name, text)
    except BaseException as error:  # noqa: BLE001  told with the first call
        reason = f"{type(error).__name__}: {error}"

        def function(_arguments: list[Any]) -> Any:
            raise RuntimeError(reason)

    while (request := read_message(source)) is not None:
        number, calls = request
        answer = encode_answer(number, [call(function, given) for given in calls], bytes_max)
        at = 0
        while at < len(answer):
            at += os.write(sink, answer[at:])


if __name__ == "__main__":
    main()
