"""The further edge processes of a node: started, kept, ended. `edgewise.node.edge` is what runs.

They share the node's edge port, and sockets in a directory that only we can enter. One that ends
is started again; its clients connect again by themselves, to whichever process the kernel picks.
"""

from __future__ import annotations

import asyncio
import shutil
import socket
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from edgewise.edge.passing import Passing
from edgewise.edge.server import Edge
from edgewise.edge.siblings import Head
from edgewise.errors import SetupError
from edgewise.node.children import STEADY_S, Child, backoff_s
from edgewise.node.terminal import Steps

PROCESSES_MAX = 64
HEAD_SOCKET = "head.sock"


def demand_free(host: str, port: int) -> None:
    """A port to share must be nobody's before: the kernel would let strangers share it too."""
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


class EdgeProcesses:
    """All but the first, which is the node's own `edge`."""

    def __init__(self, edge: Edge, count: int, steps: Steps) -> None:
        self._count = count
        self._steps = steps
        self._head = Head(edge)
        self._edge = edge
        self._passing: Passing | None = None
        self._directory: Path | None = None
        self._children: dict[int, Child] = {}
        self._closed = False

    async def start(self) -> None:
        """The sockets; `keep` then runs the processes."""
        if self._count < 2:
            return
        self._directory = Path(tempfile.mkdtemp(prefix="edgewise-edges-"))
        await self._head.start(self._directory / HEAD_SOCKET)
        self._passing = Passing(self._edge, 0, self._directory)
        await self._passing.start()

    def keep(self, arguments: list[str]) -> Iterator[Any]:
        """A coroutine for each process, which runs as long as the node."""
        for number in range(1, self._count):
            yield self._keep(number, arguments)

    async def stop(self) -> None:
        self._closed = True
        await asyncio.gather(*(child.stop() for child in self._children.values()))
        if self._passing is not None:
            await self._passing.stop()
        if self._directory is not None:
            await self._head.stop()
            shutil.rmtree(self._directory, ignore_errors=True)

    async def _keep(self, number: int, arguments: list[str]) -> None:
        failures = 0
        place = ["--directory", str(self._directory), "--number", str(number)]
        while not self._closed:
            began = time.monotonic()
            child = self._children[number] = Child("edgewise.node.edge", [*arguments, *place])
            await child.start()
            code = await child.messages(lambda message: self._hear(number, message))
            await child.stop()
            failures = 1 if time.monotonic() - began > STEADY_S else failures + 1
            wait = backoff_s(failures)
            self._steps.say(
                "edge", f"process {number} ended with code {code}; again in {wait:g} s"
            )
            await asyncio.sleep(wait)

    def _hear(self, number: int, message: dict[str, Any]) -> None:
        if "failed" in message:
            self._steps.say("edge", f"process {number} failed: {message['failed']}")
        if message.get("ready"):
            self._steps.say("edge", f"process {number} serves too")
