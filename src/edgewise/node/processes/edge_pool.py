"""Start, watch and stop the edge workers of a node (`--edge-processes`).

Workers share the node's edge port, and talk to it over sockets in a directory that only we can
enter. A worker that ends is started again; its clients connect again by themselves, to whichever
process the kernel picks. Used by `serve`; `edge_worker` is what runs in each.
"""

from __future__ import annotations

import asyncio
import shutil
import socket
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from edgewise.edge.server.server import Edge
from edgewise.edge.server.worker_routing import WorkerRouter
from edgewise.edge.server.worker_sync import PrimarySync
from edgewise.errors import SetupError
from edgewise.node.config import NodeConfig
from edgewise.node.processes.children import STEADY_S, Child, backoff_s
from edgewise.node.terminal import Terminal

HEAD_SOCKET = "head.sock"


def require_free_port(host: str, port: int) -> None:
    """SetupError where the port is in use: the kernel would let us share it with strangers."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as bad:
            raise SetupError(
                f"the edge cannot listen on {host}:{port}: {bad.strerror}; "
                "choose another port or stop the program that has it"
            ) from bad


@dataclass(frozen=True, slots=True)
class EdgeWorkerConfig:
    """The node's config, the directory of the workers' sockets, and which worker this is."""

    node: NodeConfig
    directory: Path
    number: int


class EdgePool:
    """All edge processes but the first, which is the node's own `edge`."""

    def __init__(self, edge: Edge, count: int, terminal: Terminal) -> None:
        self._count = count
        self._terminal = terminal
        self._head = PrimarySync(edge)
        self._edge = edge
        self._router: WorkerRouter | None = None
        self._directory: Path | None = None
        self._children: dict[int, Child] = {}
        self._closed = False

    async def start(self) -> None:
        """Open the sockets; `keep` then runs the workers."""
        if self._count < 2:
            return
        self._directory = Path(tempfile.mkdtemp(prefix="edgewise-edges-"))
        await self._head.start(self._directory / HEAD_SOCKET)
        self._router = WorkerRouter(self._edge, 0, self._directory)
        await self._router.start()

    def keep(self, config: NodeConfig) -> Iterator[Any]:
        """A coroutine for each worker, which runs as long as the node."""
        for number in range(1, self._count):
            assert self._directory is not None, "start() comes first"
            yield self._keep(EdgeWorkerConfig(config, self._directory, number))

    async def stop(self) -> None:
        self._closed = True
        await asyncio.gather(*(child.stop() for child in self._children.values()))
        if self._router is not None:
            await self._router.stop()
        if self._directory is not None:
            await self._head.stop()
            shutil.rmtree(self._directory, ignore_errors=True)

    async def _keep(self, config: EdgeWorkerConfig) -> None:
        failures, number = 0, config.number
        while not self._closed:
            started_s = time.monotonic()
            child = self._children[number] = Child("edgewise.node.processes.edge_worker", config)
            await child.start()
            code = await child.receive(lambda message: self._handle(number, message))
            await child.stop()
            failures = 1 if time.monotonic() - started_s > STEADY_S else failures + 1
            wait = backoff_s(failures)
            self._terminal.say(
                "edge", f"process {number} ended with code {code}; starting again in {wait:g} s"
            )
            await asyncio.sleep(wait)

    def _handle(self, number: int, message: dict[str, Any]) -> None:
        if "failed" in message:
            self._terminal.say("edge", f"process {number} failed: {message['failed']}")
        if message.get("ready"):
            self._terminal.say("edge", f"process {number} serves too")
