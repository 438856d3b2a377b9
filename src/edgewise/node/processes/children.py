"""Start, supervise and stop the child processes of a node.

A child runs one Python module in a process group of its own, so that stopping it also stops what
it started, such as Spark's JVM. Its config is one frozen dataclass, written as a line of JSON to
its stdin: nothing is encoded as options and parsed again, and nothing shows in `ps`. stdin stays
open as long as the parent lives; its end tells the child to exit. A second line, `start`, is for
children that are started before they are needed: the engine of a warm standby.

Parent: `Child`. Child: `read_config`, then `exit_with_parent`, then `send_message`.
Used by `serve` (engine), `edge_pool` (edge workers) and `run` (demo data).
"""

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
from typing import Any, TypeVar

import msgspec

from edgewise.errors import SetupError

STOP_S = 2.0  # between asking and killing
BACKOFF_S = (0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
STEADY_S = 60.0  # after so long a failure is a new one, not the same again
LINE_BYTES_MAX = 1024 * 1024
PERMANENT_ERROR = 4  # exit code of a child that would fail again in the same way

Config = TypeVar("Config")


class Child:
    """A Python module as a process. `config` is a dataclass that `read_config` reads there."""

    def __init__(
        self, module: str, config: Any, stderr: Path | None = None, *, append: bool = False
    ) -> None:
        """`stderr` is a file, emptied at each start unless `append`, because another process may
        write to it; None: the terminal of the parent.
        """
        self._command = [sys.executable, "-m", module]
        self._config = encode_config(config)
        self._stderr = stderr
        self._mode = "ab" if append else "wb"
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        with ExitStack() as stack:
            stderr = stack.enter_context(self._stderr.open(self._mode)) if self._stderr else None
            self._process = await asyncio.create_subprocess_exec(
                *self._command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=stderr,
                start_new_session=True,  # a Ctrl-C in the terminal is ours to pass on
                limit=LINE_BYTES_MAX,
            )
        assert self._process.stdin is not None
        self._process.stdin.write(self._config)
        with suppress(ConnectionError):  # it ended already: its exit code says why
            await self._process.stdin.drain()

    @property
    def ended(self) -> bool:
        return self._process is None or self._process.returncode is not None

    async def send_start(self) -> None:
        """Tell it to begin; see `exit_with_parent`."""
        process = self._running()
        assert process.stdin is not None
        with suppress(ConnectionError):  # it ended already: its exit code says why
            process.stdin.write(b"start\n")
            await process.stdin.drain()

    async def receive(self, handle: Callable[[dict[str, Any]], None]) -> int:
        """Handle its messages until it ends; returns its exit code."""
        process = self._running()
        assert process.stdout is not None
        async for line in process.stdout:
            with suppress(json.JSONDecodeError):
                handle(json.loads(line))
        return await process.wait()

    def terminate(self) -> None:
        """Ask it to end, without waiting: `receive` returns when it has."""
        if self._process is not None and self._process.returncode is None:
            with suppress(ProcessLookupError):
                self._process.terminate()

    async def stop(self) -> None:
        """Ask it to end, wait, then kill its process group: a JVM and its workers too."""
        if self._process is None:
            return
        if self._process.returncode is None:
            self.terminate()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._process.wait(), STOP_S)
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        await self._process.wait()
        self._process = None

    def _running(self) -> asyncio.subprocess.Process:
        assert self._process is not None, "start() comes first"
        return self._process


def encode_config(config: Any) -> bytes:
    """One line of JSON."""
    return msgspec.json.encode(config, enc_hook=_encode_path) + b"\n"


def read_config(kind: type[Config]) -> Config:
    """In a child: the config that the parent sent. SetupError where it is none of `kind`."""
    # Unbuffered: the line after it is for `exit_with_parent`.
    stdin: Any = getattr(sys.stdin.buffer, "raw", sys.stdin.buffer)
    line = stdin.readline(LINE_BYTES_MAX)
    try:
        return msgspec.json.decode(line, type=kind, dec_hook=_decode_path)
    except msgspec.MsgspecError as error:
        raise SetupError(
            f"the first line of stdin must be a {kind.__name__} as JSON: {error}; "
            "this module is started by `edgewise run`, not by hand"
        ) from error


def _encode_path(value: Any) -> str:
    if isinstance(value, Path):
        return str(value)
    raise NotImplementedError(f"a config has no values of {type(value).__name__}")


def _decode_path(kind: type[Any], value: Any) -> Any:
    if kind is Path:
        return Path(value)
    raise NotImplementedError(f"a config has no values of {kind.__name__}")


def exit_with_parent() -> threading.Event:
    """In a child: exit when stdin ends, which it does however the parent ended. The event is set
    when the parent says `start`.
    """
    started = threading.Event()

    def wait() -> None:
        # Not through sys.stdin: a thread that waits there holds its lock, and Python aborts at
        # the end of a program that closes stdin.
        while os.read(stdin, LINE_BYTES_MAX):
            started.set()
        os._exit(1)

    stdin = sys.stdin.fileno()
    threading.Thread(target=wait, daemon=True).start()
    return started


def send_message(**message: Any) -> None:
    """In a child: one line of JSON for the parent."""
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def backoff_s(failures: int) -> float:
    """How long to wait before the next start, after so many failures in a row."""
    return BACKOFF_S[min(failures, len(BACKOFF_S)) - 1]
