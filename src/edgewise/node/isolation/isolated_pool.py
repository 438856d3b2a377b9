"""Run the functions that an app defines in processes of their own, within limits.

A line of somebody's Python in an app would otherwise stop the engine, take its memory, or read the
operator's files. Here each function has a pool of processes (`isolated_worker`) without files and
network. A call that takes too long or too much memory, or gives too much back, is a fault of its
event; the process is replaced and the engine goes on. The price is a round trip for each call
(`bench/isolation.py`). Used by the engine with `--isolate`; it travels with the function to
Spark's workers, where each process has pools of its own.
"""

from __future__ import annotations

import logging
import os
import select
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import msgspec

from edgewise.errors import BadEvent, SetupError
from edgewise.node.isolation import isolated_worker
from edgewise.node.isolation.isolated_worker import LENGTH
from edgewise.plan.nodes import App
from edgewise.plan.rules.map_expressions import find_calls
from edgewise.plan.scripts import Script

logger = logging.getLogger(__name__)
START_S = 30.0
IDLE_MAX = 2  # processes of one function that wait for a call
READ_BYTES = 65536


@dataclass(frozen=True, slots=True)
class CallLimits:
    """Of one call of one function."""

    call_ms: int = 1_000
    memory_bytes: int = 256 * 1024 * 1024
    answer_bytes_max: int = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Isolation:
    """Compiles a script for `Script.compile_with`: its calls go to a pool of processes."""

    limits: CallLimits = CallLimits()

    def __call__(self, name: str, source: str) -> Callable[[list[Any]], Any]:
        return IsolatedPool(name, source, self.limits).call


def isolate_functions(app: App, limits: CallLimits) -> int:
    """From now on the functions that the app defines run isolated; returns how many.

    Functions of `--functions` are the operator's own and stay in the process.
    """
    scripts = {id(c.body): c.body for c in find_calls(app) if isinstance(c.body, Script)}
    for script in scripts.values():
        script.compile_with = Isolation(limits)
    return len({script.name for script in scripts.values()})


class IsolatedPool:
    """Calls from many threads; each has a process for as long as its call takes."""

    def __init__(self, name: str, source: str, limits: CallLimits) -> None:
        self.name = name
        self._source = source
        self._limits = limits
        self._idle: list[IsolatedProcess] = []
        self._lock = threading.Lock()
        self.calls = self.faults = self.started = 0
        weakref.finalize(self, _kill_all, self._idle)  # a function that no app uses any more

    def call(self, arguments: list[Any]) -> Any:
        """BadEvent where the call fails or breaks a limit."""
        return self.call_many([arguments])[0]

    def call_many(self, calls: list[list[Any]]) -> list[Any]:
        """One round trip. The time limit is that of one call, for each."""
        process = self._take()
        results = None
        try:
            results = process.call(calls)
        except _Broken as broken:
            reason = str(broken)
        finally:
            self._give_back(process, broken=results is None)
        with self._lock:
            self.calls += len(calls)
        if results is not None:
            failed = [reason for good, reason in results if not good]
            if not failed:
                return [value for _, value in results]
            reason = failed[0]
        with self._lock:
            self.faults += 1
        raise BadEvent(f"function '{self.name}': {reason}")

    def close(self) -> None:
        _kill_all(self._idle)

    def _take(self) -> IsolatedProcess:
        with self._lock:
            if self._idle:
                return self._idle.pop()
            self.started += 1
        start = partial(IsolatedProcess, self.name, self._source, self._limits)
        return _find_starter(os.getpid()).submit(start).result()

    def _give_back(self, process: IsolatedProcess, *, broken: bool) -> None:
        if not broken:
            with self._lock:
                if len(self._idle) < IDLE_MAX:
                    self._idle.append(process)
                    return
        process.kill()


def _kill_all(idle: list[IsolatedProcess]) -> None:
    while idle:
        idle.pop().kill()


@cache
def _find_starter(_pid: int) -> ThreadPoolExecutor:
    """A thread that lives as long as this process.

    The system kills a process when the thread that started it ends; a thread of an engine may end
    before its process does.
    """
    return ThreadPoolExecutor(1, "isolated-start")


class _Broken(Exception):
    """The process gave no answer that can be used, and is of no use any more."""


class IsolatedProcess:
    """One process with one function. For one call at a time."""

    def __init__(self, name: str, source: str, limits: CallLimits) -> None:
        self._limits = limits
        self._number = 0
        self._process = subprocess.Popen(  # noqa: S603  our own module
            # By its path: importing the package would take longer than starting Python.
            [sys.executable, "-I", str(Path(isolated_worker.__file__))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd="/",
            env={},
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._sink, self._source = self._process.stdin, self._process.stdout.fileno()
        limit = (limits.memory_bytes, limits.answer_bytes_max)
        try:
            self._send([name, source, *limit])
            ((_, self.filters_calls),) = self._receive(0, START_S)
        except _Broken as broken:
            self.kill()
            raise SetupError(f"function '{name}': no isolated process starts: {broken}") from None
        if not self.filters_calls:
            logger.warning("function '%s': this system filters no system calls", name)

    def call(self, calls: list[list[Any]]) -> list[tuple[bool, Any]]:
        self._number += 1
        try:
            self._send([self._number, calls])
        except (TypeError, ValueError, OverflowError) as error:
            return [(False, f"an argument is no plain value: {error}")]
        wait_s = self._limits.call_ms / 1000 * len(calls)
        results = self._receive(self._number, wait_s)
        if len(results) != len(calls):
            raise _Broken("it gave an answer of another length")
        return results

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            try:
                stream.close()
            except OSError:
                continue  # bytes for a process that is gone

    def _send(self, message: list[Any]) -> None:
        body = msgspec.msgpack.encode(message)
        try:
            self._sink.write(LENGTH.pack(len(body)) + body)
            self._sink.flush()
        except OSError as error:
            raise _Broken("its process ended") from error

    def _receive(self, number: int, wait_s: float) -> list[tuple[bool, Any]]:
        deadline = time.monotonic() + wait_s
        body = b""
        size = LENGTH.size
        while len(body) < size:
            left_s = deadline - time.monotonic()
            if left_s <= 0 or not select.select([self._source], [], [], left_s)[0]:
                raise _Broken(f"no answer within {wait_s:g} s")
            chunk = os.read(self._source, READ_BYTES)
            if not chunk:
                raise _Broken("its process ended")
            body += chunk
            if len(body) >= LENGTH.size:
                size = LENGTH.size + LENGTH.unpack_from(body)[0]
            if size > LENGTH.size + self._limits.answer_bytes_max + READ_BYTES:
                raise _Broken(f"more than {self._limits.answer_bytes_max} bytes of results")
        try:
            found, results = msgspec.msgpack.decode(
                body[LENGTH.size :], type=tuple[int, list[tuple[bool, Any]]]
            )
        except msgspec.MsgspecError as error:
            raise _Broken(f"its answer cannot be read: {error}") from error
        if found != number:
            raise _Broken("it answered another call")
        return results
