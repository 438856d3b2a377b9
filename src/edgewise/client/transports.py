"""Move frames between client and edge: WebSocket, server-sent events with POST, or long poll.

A transport is open when `open_transport` returns; `receive` gives frames, or None at the end. The
two that are emulated over HTTP use one request per connection: they are for networks that allow no
more. The async client tries them in order.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import quote, urlsplit

import msgspec
from websockets.asyncio.client import ClientConnection
from websockets.asyncio.client import connect as open_websocket
from websockets.exceptions import ConnectionClosed, WebSocketException

from edgewise.client.conversation import FRAME_BYTES_MAX
from edgewise.errors import ProtocolError
from edgewise.wire.codes import ProtocolCode

HEAD_BYTES_MAX = 64 * 1024
CONNECT_S = 10.0
CLOSE_S = 1.0  # a peer that is stopped never answers
POLL_S = 60.0
TRANSPORTS = ("websocket", "sse", "poll")

_unpack = msgspec.msgpack.Decoder(list[bytes]).decode


class Transport(Protocol):
    async def send(self, frames: list[bytes]) -> None: ...
    async def receive(self) -> list[bytes] | None: ...
    def set_session(self, session: str) -> None:
        """The name of the session, from WELCOME."""
        ...

    async def close(self) -> None: ...


class TransportLost(Exception):
    """The way is closed; another may be open."""


class WebSocketTransport:
    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket

    @classmethod
    async def open(cls, url: str, trust: ssl.SSLContext | None) -> Transport:
        try:
            socket = await open_websocket(
                url,
                ssl=trust if EdgeAddress.of(url).secure else None,
                compression=None,
                max_size=FRAME_BYTES_MAX,
                open_timeout=CONNECT_S,
                ping_interval=None,
                close_timeout=CLOSE_S,
            )
        except (OSError, TimeoutError, WebSocketException) as error:
            raise TransportLost(str(error) or type(error).__name__) from error
        return cls(socket)

    async def send(self, frames: list[bytes]) -> None:
        with contextlib.suppress(ConnectionClosed):
            for frame in frames:
                await self._socket.send(frame)

    async def receive(self) -> list[bytes] | None:
        try:
            message = await self._socket.recv()
        except ConnectionClosed:
            return None
        if isinstance(message, str):
            raise ProtocolError(ProtocolCode.BAD_FRAME, "the server sent text")
        return [message]

    def set_session(self, session: str) -> None:
        pass

    async def close(self) -> None:
        await self._socket.close()


@dataclass(frozen=True, slots=True)
class EdgeAddress:
    """An edge's HTTP side, from its WebSocket address."""

    host: str
    port: int
    secure: bool
    base: str
    trust: ssl.SSLContext | None = None

    @classmethod
    def of(cls, url: str, trust: ssl.SSLContext | None = None) -> EdgeAddress:
        parts = urlsplit(url)
        secure = parts.scheme in {"wss", "https"}
        base = parts.path.removesuffix("/").removesuffix("/ws")
        return cls(
            parts.hostname or "", parts.port or (443 if secure else 80), secure, base, trust
        )

    async def post(
        self, path: str, body: bytes
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter, dict[str, str]]:
        """Send one request and read the head of its answer."""
        context = (self.trust or ssl.create_default_context()) if self.secure else None
        try:
            async with asyncio.timeout(CONNECT_S):
                reader, writer = await asyncio.open_connection(
                    self.host, self.port, ssl=context, limit=2 * FRAME_BYTES_MAX
                )
        except (OSError, TimeoutError) as error:
            raise TransportLost(str(error) or "no connection in time") from error
        head = (
            f"POST {self.base}{path} HTTP/1.1\r\nhost: {self.host}:{self.port}\r\n"
            f"content-type: application/msgpack\r\ncontent-length: {len(body)}\r\n"
            "connection: close\r\n\r\n"
        )
        writer.write(head.encode() + body)
        try:
            async with asyncio.timeout(POLL_S):
                raw = await reader.readuntil(b"\r\n\r\n")
        except asyncio.CancelledError:
            writer.close()
            raise
        except (OSError, EOFError, TimeoutError, asyncio.LimitOverrunError) as error:
            writer.close()
            raise TransportLost(f"no answer to {path}: {error}") from error
        status, *lines = raw.decode("latin-1").split("\r\n")
        if status.split(" ")[1:2] not in (["200"], ["204"]):
            writer.close()
            raise TransportLost(f"{path}: {status}")
        pairs = (line.partition(":") for line in lines if line)
        return reader, writer, {k.lower(): v.strip() for k, _, v in pairs}

    async def exchange(self, path: str, frames: list[bytes]) -> list[bytes]:
        """POST frames, get frames."""
        reader, writer, headers = await self.post(path, msgspec.msgpack.encode(frames))
        try:
            size = int(headers.get("content-length", "0"))
            if size > FRAME_BYTES_MAX:
                raise TransportLost(f"{path}: an answer of {size} bytes")
            body = await reader.readexactly(size)
        except (OSError, EOFError) as error:
            raise TransportLost(f"{path}: {error}") from error
        finally:
            writer.close()
        return _unpack(body) if body else []


class SseTransport:
    """One event stream in, POSTs out, in order."""

    def __init__(self, site: EdgeAddress) -> None:
        self._site = site
        self._session = ""
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._kept: list[bytes] = []
        self._sending = asyncio.Lock()

    @classmethod
    async def open(cls, url: str, trust: ssl.SSLContext | None) -> Transport:
        return cls(EdgeAddress.of(url, trust))

    async def send(self, frames: list[bytes]) -> None:
        if self._reader is None:
            (hello, *rest) = frames
            self._kept += rest
            self._reader, self._writer, _ = await self._site.post("/sse", hello)
        elif not self._session:
            self._kept += frames
        else:
            async with self._sending:
                await self._site.exchange(f"/send?session={quote(self._session)}", frames)

    async def receive(self) -> list[bytes] | None:
        assert self._reader is not None
        while True:
            try:
                line = await self._reader.readline()
            except (OSError, ValueError):
                return None
            if not line:
                return None
            if line.startswith(b"data: "):
                return [base64.b64decode(line[6:].strip())]

    def set_session(self, session: str) -> None:
        self._session = session

    async def close(self) -> None:
        if self._writer is not None:
            self._writer.close()


class PollTransport:
    """Ask, get, ask again. What is sent while a poll waits goes with a second one."""

    def __init__(self, site: EdgeAddress) -> None:
        self._site = site
        self._session = ""
        self._got: asyncio.Queue[list[bytes] | None] = asyncio.Queue()
        self._tasks: set[asyncio.Task[None]] = set()
        self._newest = 0

    @classmethod
    async def open(cls, url: str, trust: ssl.SSLContext | None) -> Transport:
        return cls(EdgeAddress.of(url, trust))

    async def send(self, frames: list[bytes]) -> None:
        if not self._session:
            self._got.put_nowait(await self._site.exchange("/poll", frames))
        else:
            self._ask(frames)

    async def receive(self) -> list[bytes] | None:
        return await self._got.get()

    def set_session(self, session: str) -> None:
        self._session = session
        self._ask([])

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _ask(self, frames: list[bytes]) -> None:
        self._newest += 1
        task = asyncio.create_task(self._poll(frames, self._newest))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _poll(self, frames: list[bytes], turn: int) -> None:
        try:
            answer = await self._site.exchange(f"/poll?session={quote(self._session)}", frames)
        except TransportLost:
            self._got.put_nowait(None)
            return
        self._got.put_nowait(answer)
        if turn == self._newest:
            self._ask([])


_OPENERS: dict[str, Callable[[str, ssl.SSLContext | None], Awaitable[Transport]]] = {
    "websocket": WebSocketTransport.open,
    "sse": SseTransport.open,
    "poll": PollTransport.open,
}


async def open_transport(kind: str, url: str, trust: ssl.SSLContext | None = None) -> Transport:
    """`trust` says which certificates hold; the system's unless given."""
    return await _OPENERS[kind](url, trust)
