"""Limit the request heads and connections of the ingest server.

uvicorn limits neither how long a request head may take nor its size: a few thousand callers that
send half a head would keep everyone else out. Here a head has a time limit and a size limit, and
one address has a limited number of connections. What comes after the head is limited by
`request_body` and `websocket`. Used by `http`.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Any, cast

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

REFUSED_LINGER_S = 0.5  # between an answer that refuses and the end of the connection


@dataclass(frozen=True, slots=True)
class HeadLimits:
    timeout_s: float
    bytes_max: int  # exceeded by one read at the most
    address_connections_max: int


def build_server(
    app: Any,
    limits: HeadLimits,
    *,
    frame_bytes_max: int,
    connections_max: int,
    keep_alive_s: int,
    tls: tuple[Path, Path] | None,
) -> uvicorn.Server:
    """A server for the caller's event loop. OSError where the certificate cannot be used."""
    protocol = partial(LimitedProtocol, limits=limits, connected=Counter())
    config = uvicorn.Config(
        app,
        interface="asgi3",
        http=cast("type[asyncio.Protocol]", protocol),
        ws="websockets-sansio",
        ws_max_size=frame_bytes_max,
        ws_per_message_deflate=False,
        lifespan="off",
        loop="none",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        limit_concurrency=connections_max,
        timeout_keep_alive=keep_alive_s,
        timeout_graceful_shutdown=1,
        ssl_certfile=tls[0] if tls else None,
        ssl_keyfile=tls[1] if tls else None,
    )
    config.load()
    server = uvicorn.Server(config)
    server.lifespan = config.lifespan_class(config)
    return server


class LimitedProtocol(HttpToolsProtocol):
    """`connected` counts connections by address, over all protocols of a server.

    connection_made -> timer -> on_headers_complete -> no timer -> on_message_complete
                        ^                                                |
                        +--------- data_received (the next head) --------+
    """

    def __init__(
        self, *args: Any, limits: HeadLimits, connected: Counter[str], **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self._limits = limits
        self._connected = connected
        self._address = ""
        self._in_head = True
        self._head_bytes = 0
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._address = self.client[0] if self.client else ""
        self._connected[self._address] += 1
        if self._connected[self._address] > self._limits.address_connections_max:
            limit = self._limits.address_connections_max
            reason = f"your address has {limit} connections already; close some"
            self._refuse(HTTPStatus.TOO_MANY_REQUESTS, reason)
        else:
            self._start_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._stop_timer()
        self._release_address()

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        if self._in_head:
            self._head_bytes += len(data)
            self._start_timer()
        super().data_received(data)
        if self._in_head and self._head_bytes > self._limits.bytes_max:
            reason = f"the request head is larger than {self._limits.bytes_max} bytes"
            self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, reason)

    def on_headers_complete(self) -> None:
        self._in_head = False
        self._stop_timer()
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._in_head, self._head_bytes = True, 0

    def handle_websocket_upgrade(self) -> None:
        """The WebSocket's protocol takes the connection over; the address stays counted."""
        super().handle_websocket_upgrade()
        protocol: Any = self.transport.get_protocol()
        lost = protocol.connection_lost

        def connection_lost(exc: Exception | None) -> None:
            self._release_address()
            lost(exc)

        protocol.connection_lost = connection_lost

    def _start_timer(self) -> None:
        if self._timer is None:
            self._timer = self.loop.call_later(self._limits.timeout_s, self._expire)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _expire(self) -> None:
        self._timer = None
        reason = f"the request head did not arrive within {self._limits.timeout_s:g} s"
        self._refuse(HTTPStatus.REQUEST_TIMEOUT, reason)

    def _release_address(self) -> None:
        self._connected[self._address] -= 1
        if self._connected[self._address] <= 0:
            del self._connected[self._address]

    def _refuse(self, status: HTTPStatus, reason: str) -> None:
        self._stop_timer()
        if self.transport.is_closing():
            return
        body = f"{reason}\n".encode()
        head = (
            f"HTTP/1.1 {status.value} {status.phrase}\r\ncontent-type: text/plain\r\n"
            f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
        )
        self.transport.write(head.encode() + body)
        self.transport.close()
        # Under TLS a closing transport still reads, until the peer closes as well.
        self.loop.call_later(REFUSED_LINGER_S, self.transport.abort)
