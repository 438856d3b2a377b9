"""Processes of ours: started in a group of their own, told to stop, and never left behind."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

STOP_S = 2.0  # between asking and killing
BACKOFF_S = (0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
STEADY_S = 60.0  # after so long a failure is a new one, not the same again
LINE_BYTES_MAX = 1024 * 1024


class Child:
    """One Python module as a process; it calls `end_with_parent` first of all."""

    def __init__(self, module: str, arguments: list[str], noise: Path | None = None) -> None:
        """What it writes to stderr goes to the file `noise`, emptied at each start."""
        self._command = [sys.executable, "-m", module, *arguments]
        self._noise = noise
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        with ExitStack() as stack:
            noise = stack.enter_context(self._noise.open("wb")) if self._noise else None
            self._process = await asyncio.create_subprocess_exec(
                *self._command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=noise,
                start_new_session=True,  # a Ctrl-C in the terminal is ours to pass on
                limit=LINE_BYTES_MAX,
            )

    async def messages(self, hear: Callable[[dict[str, Any]], None]) -> int:
        """Its JSON lines until it ends; answers its exit code."""
        process = self._running()
        assert process.stdout is not None
        async for line in process.stdout:
            with suppress(json.JSONDecodeError):
                hear(json.loads(line))
        return await process.wait()

    def ask_to_end(self) -> None:
        """Without waiting: whoever listens to its messages hears when it has ended."""
        if self._process is not None and self._process.returncode is None:
            with suppress(ProcessLookupError):
                self._process.terminate()

    async def stop(self) -> None:
        """Ask, wait a little, then kill the whole group: a JVM and its workers go with it."""
        if self._process is None:
            return
        if self._process.returncode is None:
            self.ask_to_end()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._process.wait(), STOP_S)
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        await self._process.wait()
        self._process = None

    def _running(self) -> asyncio.subprocess.Process:
        assert self._process is not None, "start() comes first"
        return self._process


def end_with_parent() -> None:
    """In a child: end when stdin does, which is when the parent is gone, however it went."""

    def wait() -> None:
        sys.stdin.read()
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


def backoff_s(failures: int) -> float:
    return BACKOFF_S[min(failures, len(BACKOFF_S)) - 1]
