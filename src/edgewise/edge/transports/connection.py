"""One TCP connection: HTTP until it asks to be a WebSocket.

The write side is the point: nothing is taken from the outbox unless the transport's buffer is
empty, so whatever waits is still conflated. `pause_writing` fires at the first unsent byte,
`resume_writing` when the kernel took all of it.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from http import HTTPStatus
from typing import Protocol, cast

from edgewise.edge.config import EdgeConfig
from edgewise.edge.session import Session
from edgewise.edge.transports.http import BadRequest, Parser, Request, Response, problem
from edgewise.edge.transports.websocket import WebSocket, pack
from edgewise.wire.codes import Code

_TCP_NOTSENT_LOWAT = getattr(socket, "TCP_NOTSENT_LOWAT", 25)


class Host(Protocol):
    """What a connection asks of its edge."""

    config: EdgeConfig
    now_us: Callable[[], int]

    def joined(self, connection: Connection) -> bool: ...
    def left(self, connection: Connection) -> None: ...
    def open_session(self, connection: Connection) -> Session | None: ...
    def answer(self, request: Request) -> Response: ...
    def flush_soon(self) -> None: ...


class Connection(asyncio.Protocol):
    def __init__(self, host: Host) -> None:
        self.session: Session | None = None
        self.bytes_sent = 0
        self._host = host
        self._config = host.config
        self._transport: asyncio.Transport | None = None
        self._parser: Parser | None = Parser(
            self._config.head_bytes_max, self._config.frame_bytes_max
        )
        self._websocket: WebSocket | None = None
        self._writable = True
        self._flushed_us = 0
        self._later: asyncio.TimerHandle | None = None
        self._since_us = host.now_us()

    # asyncio's side

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # Not an isinstance: the transports of uvloop have the methods, not the base class.
        transport = cast("asyncio.Transport", transport)
        self._transport = transport
        transport.set_write_buffer_limits(high=0)
        sock = transport.get_extra_info("socket")
        if sock is not None and sock.family in {socket.AF_INET, socket.AF_INET6}:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.setsockopt(socket.IPPROTO_TCP, _TCP_NOTSENT_LOWAT, self._config.notsent_lowat)
        if not self._host.joined(self):
            self._respond(problem(HTTPStatus.SERVICE_UNAVAILABLE, "too many connections"), None)

    def connection_lost(self, _exc: Exception | None) -> None:
        if self._later is not None:
            self._later.cancel()
        self._host.left(self)
        self._transport = None

    def pause_writing(self) -> None:
        self._writable = False

    def resume_writing(self) -> None:
        self._writable = True
        if self.session is not None and self.session.outbox:
            self.flush()

    def data_received(self, data: bytes) -> None:
        if self._transport is None or self._transport.is_closing():
            return
        if self._websocket is not None:
            self._messages(data)
        else:
            self._requests(data)

    # the edge's side

    def flush(self) -> None:
        """Write what the socket can take, one write per tick; the rest stays conflatable."""
        session, transport = self.session, self._transport
        if session is None or transport is None or transport.is_closing():
            return
        now = self._host.now_us()
        while self._writable and session.outbox and self._due(now):
            frames = session.take(self._config.flush_bytes)
            self._write(pack(frames))
            if not session.outbox:
                self._flushed_us = now
        if session.closed is not None and not session.outbox.control_bytes:
            self._finish()

    def tick(self, now_us: int) -> None:
        session, transport = self.session, self._transport
        if transport is None:
            return
        if session is None:
            if now_us - self._since_us > self._config.idle_ms * 1000:
                transport.abort()
            return
        if session.closed is not None and now_us - session.heard_us > self._config.idle_ms * 1000:
            transport.abort()  # said goodbye long ago and still does not read
            return
        session.tick(now_us)

    def goodbye(self, code: Code) -> None:
        """The edge stops: say so if the socket takes it, then close."""
        if self.session is not None:
            self.session.end(code)
            self._flushed_us = 0
            self.flush()
        if self._transport is not None:
            self._transport.close() if self._writable else self._transport.abort()

    def _due(self, now_us: int) -> bool:
        """Many updates within one tick share one write; after a quiet tick there is no wait."""
        session = self.session
        wait_us = self._flushed_us + self._config.tick_ms * 1000 - now_us
        if wait_us <= 0 or (session is not None and session.outbox.control_bytes):
            return True
        if self._later is None:
            loop = asyncio.get_running_loop()
            self._later = loop.call_later(wait_us / 1_000_000, self._tick_over)
        return False

    def _tick_over(self) -> None:
        self._later = None
        self._flushed_us = 0
        self.flush()

    def _requests(self, data: bytes) -> None:
        parser = self._parser
        assert parser is not None
        try:
            for request in parser.receive(data):
                self._respond(self._host.answer(request), request)
        except BadRequest as error:
            self._respond(error.response, None)
            return
        if parser.wants_websocket:
            self._upgrade(bytes(parser.head or b""))

    def _upgrade(self, head: bytes) -> None:
        session = self._host.open_session(self)
        if session is None:
            self._respond(problem(HTTPStatus.SERVICE_UNAVAILABLE, "too many sessions"), None)
            return
        self.session = session
        self._parser = None
        self._websocket = WebSocket(self._config.frame_bytes_max)
        self._messages(head)

    def _messages(self, data: bytes) -> None:
        websocket, session = self._websocket, self.session
        assert websocket is not None
        assert session is not None
        now = self._host.now_us()
        for message in websocket.receive(data):
            session.receive(message, now)
        if websocket.bad_text and session.closed is None:
            session.end(Code.BAD_FRAME, "a text message; frames are binary")
        self._send_protocol_bytes()
        if session.outbox:
            self._host.flush_soon()

    def _send_protocol_bytes(self) -> None:
        websocket, transport = self._websocket, self._transport
        assert websocket is not None
        for data in websocket.data_to_send():
            if transport is None or transport.is_closing():
                return
            if data:
                self._write(data)
            else:
                transport.close()
        # Pongs bypass the outbox: a client that pings and never reads must not grow us.
        if (
            transport is not None
            and transport.get_write_buffer_size() > self._config.control_bytes_max
        ):
            transport.abort()

    def _finish(self) -> None:
        session, websocket = self.session, self._websocket
        if session is None or session.closed is None or websocket is None:
            return
        websocket.close(session.closed.code, session.closed.reason)
        self._send_protocol_bytes()
        if self._transport is not None and not self._transport.is_closing():
            self._transport.close()

    def _respond(self, response: Response, request: Request | None) -> None:
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        keep = request is not None and request.keep_alive
        head_only = request is not None and request.method == "HEAD"
        self._write(response.encode(keep_alive=keep, head_only=head_only))
        self._since_us = self._host.now_us()
        if not keep:
            transport.close()

    def _write(self, data: bytes) -> None:
        assert self._transport is not None
        self.bytes_sent += len(data)
        self._transport.write(data)
