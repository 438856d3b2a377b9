"""Start the engine process, restart it when it fails, and follow its progress.

A failing engine is started again after a growing delay, unless its error is permanent, such as a
checkpoint of another engine: then the node stops. What it reports goes to the terminal, to
the topic `$sys/engine` and, through `upkeep.metrics`, to Prometheus. `EngineStatus` takes time as
an argument, so that it can be tested without a process. Used by `serve`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from edgewise.errors import EdgewiseError, SetupError
from edgewise.node.config import NodeConfig
from edgewise.node.processes.children import PERMANENT_ERROR, STEADY_S, Child, backoff_s
from edgewise.node.terminal import Terminal

ENGINE_MODULE = "edgewise.node.processes.engine"
SUMMARY_EVERY_S = 10.0  # a line in the terminal, when something was processed since the last
ERROR_CHARS_MAX = 400


@dataclass(slots=True)
class EngineStatus:
    """The last progress report; `restarts` and `failed` are of the process as a whole."""

    progress: dict[str, Any] = field(default_factory=dict)
    restarts: int = 0
    failed: str = ""
    running: bool = False  # the process is up and its queries are
    reported_s: float = 0.0  # when it last reported
    moved_s: float = 0.0  # when it last moved on, or had nothing to do
    _shown_s: float = 0.0
    _shown_rows: int = 0

    def to_topic(self) -> dict[str, Any]:
        """The value of `$sys/engine`."""
        return self.progress | {"restarts": self.restarts, "failed": self.failed}

    def record(self, progress: Mapping[str, Any], now_s: float) -> None:
        moved = progress.get("offsets") != self.progress.get("offsets")
        if moved or not progress.get("backlog_rows"):
            self.moved_s = now_s
        self.progress, self.reported_s = dict(progress), now_s

    def describe_problem(self, now_s: float, stall_s: float) -> str:
        """Why the engine does not do its work; '' while it does."""
        if not self.running:
            return f"not running: {self.failed}" if self.failed else "starting"
        if now_s - self.reported_s > stall_s:
            return (
                f"no report for {now_s - self.reported_s:.0f} s: it hangs, perhaps in a function "
                "of the app"
            )
        if now_s - self.moved_s > stall_s:
            waiting = self.progress.get("backlog_rows", 0)
            return f"no progress for {now_s - self.moved_s:.0f} s while {waiting:,} rows wait"
        return ""

    def summarize(self, now_s: float) -> str:
        """A line for the terminal; '' where nothing was processed since the last one."""
        rows = self.progress.get("rows_in", 0)
        if now_s - self._shown_s < SUMMARY_EVERY_S or rows == self._shown_rows:
            return ""
        since = max(now_s - self._shown_s, SUMMARY_EVERY_S)
        rate = max(0, rows - self._shown_rows) / since
        self._shown_s, self._shown_rows = now_s, rows
        return f"{rate:,.0f} events/s, {_describe(self.progress)}"


def _describe(progress: Mapping[str, Any]) -> str:
    phases = progress.get("batch_ms") or {}
    whole = phases.get("trigger") or sum(phases.values())
    named = ", ".join(f"{name} {ms:.0f}" for name, ms in phases.items() if name != "trigger")
    parts = [
        f"batch {whole:.0f} ms ({named})",
        f"backlog {progress.get('backlog_rows', 0):,}",
        f"event time {(progress.get('watermark_lag_ms') or 0) / 1000:,.1f} s behind the clock",
        f"state {progress.get('state_keys', 0):,} keys, {progress.get('state_bytes', 0):,} bytes",
    ]
    for what, names in (progress.get("counts") or {}).items():
        parts.append(f"{sum(names.values()):,} {what}")
    return ", ".join(parts)


async def prepare_engine(config: NodeConfig, log_file: Path) -> Child:
    """Start an engine that waits for `start`: a standby that takes over need not wait for its
    imports and, on Spark, for a JVM. The file of the log may be that of the active node.
    """
    child = Child(ENGINE_MODULE, config, log_file, append=True)
    await child.start()
    return child


class EngineSupervisor:
    """Runs one engine process at a time. Methods belong to the event loop.

    `publish` gets the value of `$sys/engine`; `ready` is set when the engine first runs; `stop`
    is called, and the engine not started again, where its error is permanent.
    """

    def __init__(
        self,
        config: NodeConfig,
        log_file: Path,
        terminal: Terminal,
        publish: Callable[[dict[str, Any]], None],
        stop: Callable[[EdgewiseError], None] = lambda _error: None,
        *,
        prepared: Child | None = None,
    ) -> None:
        """`prepared` is an engine that a standby has started (`prepare_engine`)."""
        self._config = config
        self._log_file = log_file
        self._terminal = terminal
        self._publish = publish
        self._stop_node = stop
        self._child: Child | None = prepared
        self._restart_asked = False
        self._closed = False
        self.status = EngineStatus()
        self.ready = asyncio.Event()

    async def run(self) -> None:
        """Until the task is cancelled."""
        failures = 0
        while not self._closed:
            started_s = time.monotonic()
            if self._child is None or self._child.ended:
                self._child = Child(ENGINE_MODULE, self._config, self._log_file)
                await self._child.start()
            await self._child.send_start()
            code = await self._child.receive(self._handle)
            self.status.running = False
            await self._child.stop()
            if code == PERMANENT_ERROR:
                self._stop_node(SetupError(f"the engine cannot start: {self.status.failed}"))
                return
            self.status.restarts += 1
            if self._restart_asked:
                self._restart_asked, failures = False, 0
                continue
            self.status.failed = self.status.failed or f"it ended with code {code}"
            failures = 1 if time.monotonic() - started_s > STEADY_S else failures + 1
            wait_s = backoff_s(failures)
            self._terminal.say(
                "engine",
                f"ended with code {code} (see {self._log_file}); starting again in {wait_s:g} s",
            )
            await asyncio.sleep(wait_s)

    def restart(self) -> None:
        """End the engine and start it again at once: its app changed."""
        self._restart_asked = True
        if self._child is not None:
            self._child.terminate()

    async def stop(self) -> None:
        """After the task of `run` was cancelled."""
        self._closed = True
        if self._child is not None:
            await self._child.stop()

    def _handle(self, message: dict[str, Any]) -> None:
        engine = self._config.engine
        if "step" in message:
            self._terminal.say(engine, message["step"])
        if "failed" in message:
            self.status.failed = str(message["failed"])[:ERROR_CHARS_MAX]
            self._terminal.say("engine", f"failed: {message['failed']}")
        if "progress" in message:
            self.status.record(message["progress"], time.monotonic())
            self._publish(self.status.to_topic())
            if line := self.status.summarize(time.monotonic()):
                self._terminal.say(engine, line)
        if message.get("ready"):
            now_s = time.monotonic()
            self.status.running, self.status.failed = True, ""
            self.status.reported_s = self.status.moved_s = now_s
            self.ready.set()
