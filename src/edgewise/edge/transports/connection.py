"""Serve one TCP connection: HTTP until it becomes a WebSocket or an event stream.

Nothing is taken from the outbox unless the transport's buffer is empty, so what waits is still
conflated. `pause_writing` fires at the first unsent byte, `resume_writing` when the kernel took
all of it. The server makes one per client that connects.
"""

from __future__ import annotations

import asyncio
import fcntl
import socket
import struct
from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from typing import Protocol, cast

from edgewise.edge.config import EdgeConfig
from edgewise.edge.sessions.outbox import Outbox
from edgewise.edge.sessions.session import Session
from edgewise.edge.transports.emulated import EVENT_STREAM_HEAD, overloaded_frame, pack_events
from edgewise.edge.transports.http import (
    BadRequest,
    HttpParser,
    HttpRequest,
    HttpResponse,
    problem_response,
)
from edgewise.edge.transports.websocket import Packer, WebSocket
from edgewise.wire.codes import MEANING, ProtocolCode

_TCP_NOTSENT_LOWAT = getattr(socket, "TCP_NOTSENT_LOWAT", 25)
REFUSED_LINGER_US = 500_000  # between an answer that refuses and the end of the connection
_SIOCOUTQ = 0x5411  # bytes the peer has not acknowledged, Linux


class Host(Protocol):
    """What a connection asks of its edge."""

    config: EdgeConfig
    now_us: Callable[[], int]
    pack: Packer

    def add_connection(self, connection: Connection, address: str) -> str: ...
    def check_request(
        self, connection: Connection, peer: str, headers: Mapping[str, str]
    ) -> str: ...
    def left(self, connection: Connection) -> None: ...
    def admit(self, connection: Connection) -> None: ...
    def open_session(self, carrier: Connection) -> Session | None: ...
    def request(self, connection: Connection, request: HttpRequest) -> None: ...
    def upgrade_refused(self, headers: dict[str, str]) -> HttpResponse | None: ...
    def flush_soon(self) -> None: ...
    def flush_due(self, now_us: int) -> None: ...
    def flush_again(self, outbox: Outbox) -> None: ...
    def record_activity(self, who: object) -> None: ...


class Connection(asyncio.Protocol):
    def __init__(self, host: Host) -> None:
        self.session: Session | None = None
        self.bytes_sent = 0
        self.awaited: object = None  # the long-poll session whose answer is due here
        self._host = host
        self._config = host.config
        self._room = host.config.flush_bytes  # of the next write
        self._transport: asyncio.Transport | None = None
        self._parser: HttpParser | None = HttpParser(
            self._config.head_bytes_max, self._config.frame_bytes_max
        )
        self._websocket: WebSocket | None = None
        self._pack: Callable[[Sequence[bytes]], bytes] = host.pack
        self._asked: HttpRequest | None = None  # whose answer is due
        self._writable = True
        self._later: asyncio.TimerHandle | None = None
        self._later_us = 0
        self._since_us = host.now_us()
        self._begun_us: int | None = self._since_us  # of a request that is not complete
        self._peer = ""
        self._refused_us = 0

    # asyncio's side

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # Not an isinstance: the transports of uvloop have the methods, not the base class.
        transport = cast("asyncio.Transport", transport)
        self._transport = transport
        # Under TLS the limit is reached when the buffer is as full as that, not fuller.
        secure = transport.get_extra_info("sslcontext") is not None
        transport.set_write_buffer_limits(high=1 if secure else 0)
        sock = transport.get_extra_info("socket")
        if sock is not None and sock.family in {socket.AF_INET, socket.AF_INET6}:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.setsockopt(socket.IPPROTO_TCP, _TCP_NOTSENT_LOWAT, self._config.notsent_lowat)
        address, *_ = transport.get_extra_info("peername") or ("",)
        self._peer = str(address)
        refused = self._host.add_connection(self, self._peer)
        if refused:
            self._refuse(problem_response(HTTPStatus.SERVICE_UNAVAILABLE, refused))
        else:
            self._host.admit(self)

    def connection_lost(self, _exc: Exception | None) -> None:
        if self._later is not None:
            self._later.cancel()
        self._host.left(self)
        self._transport = None
        self._let_parser_go()
        if self._websocket is not None:
            self._websocket.release()

    def pause_writing(self) -> None:
        self._writable = False
        self._room = self._config.flush_bytes

    def resume_writing(self) -> None:
        self._writable = True
        if self.session is not None:
            self.flush(self._host.now_us())

    def data_received(self, data: bytes) -> None:
        transport, websocket, session = self._transport, self._websocket, self.session
        if transport is None or transport.is_closing():
            return
        if websocket is None or session is None:
            if self._parser is not None:
                self._requests(data)
            return
        now = self._host.now_us()
        for message in websocket.receive(data):
            session.receive(message, now)
        if websocket.judged or websocket.too_large:
            self._judged(websocket, session)
        self._host.flush_due(now)
        self._host.record_activity(self)

    # the edge's side

    def flush(self, now_us: int) -> None:
        """One write, if the socket can take it; then others have their turn. What waits on stays
        conflatable.
        """
        session, transport = self.session, self._transport
        if session is None or transport is None or not self._writable:
            return
        outbox = session.outbox
        frames = outbox.take(self._room, now_us)
        if frames:
            if transport.is_closing():
                return
            data = self._pack(frames)
            self.bytes_sent += len(data)
            transport.write(data)
        if not outbox.idle:
            self._wait(outbox, now_us)
        if session.closed is not None and not outbox.control.bytes:
            self._finish()

    def listen(self, *, on: bool) -> None:
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        if on:
            transport.resume_reading()
        else:
            transport.pause_reading()

    def tick(self, now_us: int) -> None:
        session, transport = self.session, self._transport
        if transport is None:
            return
        if self._refused_us and now_us - self._refused_us > REFUSED_LINGER_US:
            transport.abort()  # under TLS a closing transport still reads, until the peer closes
            return
        if session is None:
            silent = now_us - self._since_us > self._config.idle_ms * 1000
            begun_us = self._begun_us
            if begun_us is not None and now_us - begun_us > self._config.handshake_ms * 1000:
                reason = f"no complete request within {self._config.handshake_ms} ms"
                self._refuse(problem_response(HTTPStatus.REQUEST_TIMEOUT, reason))
            elif silent and self.awaited is None:
                transport.abort()
            return
        if session.closed is not None and now_us - session.heard_us > self._config.idle_ms * 1000:
            transport.abort()  # was closed long ago and still does not read
            return
        if not session.outbox.idle or session.link.bytes_per_s:
            session.learn(self.unsent_bytes(), now_us)
        session.tick(now_us)

    def shut_down(self, code: ProtocolCode) -> None:
        """The edge stops: say so if the socket takes it, then close."""
        if self.session is not None:
            self.session.end(code)
            self.flush(self._host.now_us())
        if self._transport is not None:
            if self._writable:
                self._transport.close()
            else:
                self._transport.abort()

    def unsent_bytes(self) -> int:
        """Bytes below us: in the transport's buffer and in the kernel, not yet acknowledged."""
        if self._transport is None:
            return 0
        sock = self._transport.get_extra_info("socket")
        try:
            raw = fcntl.ioctl(sock.fileno(), _SIOCOUTQ, b"\0\0\0\0")
        except (OSError, AttributeError):
            return self._transport.get_write_buffer_size()
        return int(struct.unpack("i", raw)[0]) + self._transport.get_write_buffer_size()

    def deliver(self, frames: list[bytes], now_us: int) -> None:
        """Frames that came another way than this connection."""
        assert self.session is not None
        for frame in frames:
            self.session.receive(frame, now_us)

    def respond(self, response: HttpResponse) -> None:
        """Answer the request that waits."""
        self.awaited = None
        request, self._asked = self._asked, None
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        keep = request is not None and request.keep_alive
        head_only = request is not None and request.method == "HEAD"
        self._write(response.encode(keep_alive=keep, head_only=head_only))
        self._since_us = self._host.now_us()
        if not keep:
            transport.close()

    def stream(self, hello: bytes, headers: bytes) -> None:
        """Become an event stream: the request's body was HELLO."""
        session = self._host.open_session(self)
        if session is None:
            self._write(EVENT_STREAM_HEAD + headers + b"\r\n" + pack_events([overloaded_frame()]))
            self._close_after_writing()
            return
        self._let_parser_go()
        self.session, self._pack = session, pack_events
        self._asked = None
        self._write(EVENT_STREAM_HEAD + headers + b"\r\n")
        session.receive(hello, self._host.now_us())
        self._host.flush_soon()

    def _wait(self, outbox: Outbox, now_us: int) -> None:
        """For the socket, for the next round, or for time alone: a rate or a budget."""
        if not self._writable:
            return
        if outbox.ready(now_us):
            # The kernel took all of it, so a longer write would not have grown older there.
            self._room = min(2 * self._room, self._config.flush_bytes_max)
            self._host.flush_again(outbox)
        elif (at_us := outbox.wake_us()) and (self._later is None or at_us < self._later_us):
            if self._later is not None:
                self._later.cancel()
            wait_s, self._later_us = max(0, at_us - now_us) / 1_000_000, at_us
            self._later = asyncio.get_running_loop().call_later(wait_s, self._tick_over)

    def _tick_over(self) -> None:
        self._later = None
        self.flush(self._host.now_us())

    def _requests(self, data: bytes) -> None:
        parser = self._parser
        assert parser is not None
        try:
            requests = parser.receive(data)
            for request in requests:
                if not self._may_ask(request.headers):
                    return
                self._asked = request
                self._host.request(self, request)
                if self._parser is None:
                    return  # it became an event stream
        except BadRequest as error:
            self._refuse(error.response)
            return
        if requests:
            self._begun_us = None
        if parser.unfinished and self._begun_us is None:
            self._begun_us = self._host.now_us()
        if parser.upgrade is not None and self._may_ask(parser.headers):
            self._upgrade(parser.upgrade, parser.headers)

    def _let_parser_go(self) -> None:
        if self._parser is not None:
            self._parser.release()
            self._parser = None

    def _may_ask(self, headers: Mapping[str, str]) -> bool:
        assert self._transport is not None
        unread = self._transport.get_write_buffer_size()
        if self._asked is not None or unread > self._config.control_bytes_max:
            # Answers come in order, and a client that does not read them must not grow us.
            self._refuse(problem_response(HTTPStatus.TOO_MANY_REQUESTS, "one request at a time"))
            return False
        refused = self._host.check_request(self, self._peer, headers)
        if refused:
            self._refuse(problem_response(HTTPStatus.SERVICE_UNAVAILABLE, refused))
        return not refused

    def _upgrade(self, head: bytes, headers: dict[str, str]) -> None:
        refused = self._host.upgrade_refused(headers)
        if refused is not None:
            self._refuse(refused)
            return
        session = self._host.open_session(self)
        self._let_parser_go()
        self._websocket = WebSocket(self._config.frame_bytes_max)
        if session is None:
            self._turn_away(self._websocket, head)
            return
        self.session = session
        self.data_received(head)

    def _turn_away(self, websocket: WebSocket, head: bytes) -> None:
        """A page cannot see why a handshake failed: it is accepted, then closed with a reason."""
        websocket.receive(head)
        self._send_protocol_bytes()
        if websocket.accepted:
            self._write(self._host.pack([overloaded_frame()]))
            websocket.close(ProtocolCode.OVERLOADED, MEANING[ProtocolCode.OVERLOADED])
            self._send_protocol_bytes()
        self._close_after_writing()

    def _close_after_writing(self) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.close()

    def _judged(self, websocket: WebSocket, session: Session) -> None:
        """Something else than a plain message came."""
        if websocket.bad_text and session.closed is None:
            session.end(ProtocolCode.BAD_FRAME, "a text message; frames are binary")
        elif websocket.too_large and session.closed is None:
            limit = self._config.frame_bytes_max
            reason = f"a frame of {websocket.too_large} bytes; the limit is {limit}"
            session.end(ProtocolCode.FRAME_TOO_LARGE, reason)
        self._send_protocol_bytes()

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
        session, websocket, transport = self.session, self._websocket, self._transport
        if session is None or session.closed is None or transport is None:
            return
        if websocket is not None:
            websocket.close(session.closed.code, session.closed.reason)
            self._send_protocol_bytes()
        if not transport.is_closing():
            transport.close()

    def _refuse(self, response: HttpResponse) -> None:
        """Answer and close: what follows on this connection cannot be understood."""
        self._asked = None
        self.respond(response)
        self._refused_us = self._host.now_us()

    def _write(self, data: bytes) -> None:
        assert self._transport is not None
        self.bytes_sent += len(data)
        self._transport.write(data)
