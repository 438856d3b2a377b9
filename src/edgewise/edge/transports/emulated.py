"""Carry sessions where WebSocket is blocked: server-sent events with POST, and long poll.

    POST /sse                 body HELLO; the answer is an event stream, a frame per event, base64
    POST /send?session=NAME   body a MessagePack array of frames; for sessions of /sse
    POST /poll[?session=NAME] body a MessagePack array of frames, the answer one too

For long poll, "the socket can take it" means: a request waits. What happens in between is
conflated as for any slow client.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from http import HTTPStatus
from typing import Protocol

import msgspec

from edgewise.edge.config import EdgeConfig
from edgewise.edge.sessions.session import Session
from edgewise.edge.transports.http import HttpRequest, HttpResponse, problem_response
from edgewise.wire import codec
from edgewise.wire.codes import MEANING, ProtocolCode
from edgewise.wire.frames import Close

FRAMES_MAX = 256  # in one POST
EVENT_STREAM_HEAD = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncache-control: no-store\r\n"
    b"x-accel-buffering: no\r\nx-content-type-options: nosniff\r\nconnection: close\r\n"
)
MSGPACK = "application/msgpack"

_frames = msgspec.msgpack.Decoder(list[bytes]).decode
_pack = msgspec.msgpack.Encoder().encode


def pack_events(frames: Iterable[bytes]) -> bytes:
    return b"".join(b"data: " + base64.b64encode(frame) + b"\n\n" for frame in frames)


def unpack_frames(body: bytes) -> list[bytes]:
    """The frames of a POST; ValueError says what is wrong."""
    if not body:
        return []
    try:
        frames = _frames(body)
    except msgspec.MsgspecError as error:
        raise ValueError(f"the body is no MessagePack array of binaries: {error}") from error
    if len(frames) > FRAMES_MAX:
        raise ValueError(f"more than {FRAMES_MAX} frames in one request")
    return frames


class Responder(Protocol):
    """A connection whose request waits for an answer."""

    def respond(self, response: HttpResponse) -> None: ...


class PollConnection:
    """A long-poll session. At most one request waits; a second one releases the first."""

    def __init__(self, config: EdgeConfig, now_us: int) -> None:
        self.session: Session | None = None
        self.bytes_sent = 0
        self.over = False
        self._config = config
        self._waiter: Responder | None = None
        self._since_us = now_us

    def poll(self, waiter: Responder, frames: list[bytes], now_us: int) -> None:
        assert self.session is not None
        if self._waiter is not None:
            self._answer([])
        for frame in frames:
            self.session.receive(frame, now_us)
        self.session.heard_us = now_us
        self._waiter, self._since_us = waiter, now_us
        self.flush(now_us)

    def flush(self, now_us: int) -> None:
        session = self.session
        if session is None or self._waiter is None:
            return
        if session.outbox.ready(now_us):
            self._answer(session.take(self._config.flush_bytes, now_us))
        if session.closed is not None and not session.outbox.control.bytes:
            self.over = True

    def tick(self, now_us: int) -> None:
        session, waited_ms = self.session, (now_us - self._since_us) // 1000
        assert session is not None
        if self._waiter is not None and waited_ms >= self._config.poll_ms:
            self._answer([])
            self._since_us = now_us
        elif self._waiter is None and waited_ms > self._config.poll_idle_ms:
            session.end(ProtocolCode.IDLE)
            self.over = True
        if session.closed is None:
            session.tick(now_us)
        self.flush(now_us)

    def unsent_bytes(self) -> int:
        return 0  # what was answered is with the client; what waits is in the outbox

    def abandoned(self, waiter: Responder) -> None:
        """The connection that waited is gone."""
        if self._waiter is waiter:
            self._waiter = None

    def shut_down(self, code: ProtocolCode) -> None:
        if self.session is not None:
            self.session.end(code)
            if self._waiter is not None:
                self._answer(self.session.take(self._config.flush_bytes, self._since_us))
        self.over = True

    def _answer(self, frames: Sequence[bytes]) -> None:
        waiter, self._waiter = self._waiter, None
        assert waiter is not None
        body = _pack(frames)
        self.bytes_sent += len(body)
        waiter.respond(HttpResponse(HTTPStatus.OK, body, MSGPACK))


def overloaded_frame() -> bytes:
    """The only frame for a client whose session was not opened."""
    return codec.encode(Close(ProtocolCode.OVERLOADED, MEANING[ProtocolCode.OVERLOADED]))


def overloaded_response() -> HttpResponse:
    return HttpResponse(HTTPStatus.OK, _pack([overloaded_frame()]), MSGPACK)


def unknown_session_response(request: HttpRequest) -> HttpResponse:
    name = request.query.get("session", "")[:40]
    return problem_response(HTTPStatus.GONE, f"no session '{name}'; start again with HELLO")
