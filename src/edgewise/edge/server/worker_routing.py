"""Route requests that reached the wrong worker of a shared port.

A session of server-sent events or long poll lives in one process, and its next request may reach
another: the kernel knows nothing of sessions. The id of a session begins with the number of its
process; the request is forwarded to that one's own socket, and the answer comes back the same way.
Nodes with several edge processes use it.
"""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from pathlib import Path
from urllib.parse import urlencode

from edgewise.edge.server.server import Edge
from edgewise.edge.transports.connection import Connection
from edgewise.edge.transports.http import HttpRequest, HttpResponse, problem_response

ANSWER_S = 60.0  # more than a long poll waits
ROUTED_MAX = 1_000  # requests on their way at once
HEAD_BYTES_MAX = 16 * 1024


class WorkerRouter:
    """`number` is this process; the sockets of all are in `directory`."""

    def __init__(self, edge: Edge, number: int, directory: Path) -> None:
        self._edge = edge
        self._number = number
        self._directory = directory
        self._server: asyncio.AbstractServer | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        loop = asyncio.get_running_loop()
        edge = self._edge
        self._server = await loop.create_unix_server(
            lambda: Connection(edge), self._socket(self._number)
        )
        edge.session_prefix = f"{self._number}-"
        edge.route_elsewhere = self._route_elsewhere

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _socket(self, number: int) -> str:
        return str(self._directory / f"edge-{number}.sock")

    def _route_elsewhere(self, connection: Connection, request: HttpRequest) -> bool:
        """Whether it is on its way to another process."""
        number, dash, _ = request.query.get("session", "").partition("-")
        if not dash or not number.isdigit() or int(number) == self._number:
            return False
        socket = self._socket(int(number))
        if len(self._tasks) >= ROUTED_MAX or not Path(socket).exists():
            return False
        connection.awaited = self
        task = asyncio.get_running_loop().create_task(self._forward(connection, request, socket))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return True

    async def _forward(self, connection: Connection, request: HttpRequest, socket: str) -> None:
        try:
            async with asyncio.timeout(ANSWER_S):
                response = await self._answer(request, socket)
        except (OSError, EOFError, ValueError, TimeoutError):
            response = problem_response(
                HTTPStatus.GONE, "the session's process is gone; begin with HELLO"
            )
        connection.respond(response)

    @staticmethod
    async def _answer(request: HttpRequest, socket: str) -> HttpResponse:
        reader, writer = await asyncio.open_unix_connection(socket, limit=HEAD_BYTES_MAX)
        try:
            kept = ("host", "origin", "content-type")
            lines = [f"{request.method} {request.path}?{urlencode(request.query)} HTTP/1.1"]
            lines += [f"{n}: {request.headers[n]}" for n in kept if n in request.headers]
            lines += [f"content-length: {len(request.body)}", "connection: close", "", ""]
            writer.write("\r\n".join(lines).encode("latin-1") + request.body)
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            headers = dict(line.split(": ", 1) for line in head[1:] if line)
            body = await reader.readexactly(int(headers["content-length"]))
        finally:
            writer.close()
        status = HTTPStatus(int(head[0].split(" ")[1]))
        crossing = tuple((n, v) for n, v in headers.items() if n.startswith("access-control-"))
        return HttpResponse(status, body, headers["content-type"], crossing)
