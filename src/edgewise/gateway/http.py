"""The HTTP door: `POST /streams/{stream}`, answered when the events are durable.

The ASGI application knows requests and answers only; `admit` decides what is taken, `Intake`
brings it into the log. The server is uvicorn, run inside the caller's event loop.

    POST /streams/{stream}   200 {"accepted": n, "first": offset, "end": offset}
    GET  /streams/{stream}/publish   a WebSocket, see `websocket`
    GET  /streams            the streams and their attributes
    GET  /openapi.json       this table for machines
    GET  /metrics            counters for Prometheus
    GET  /healthz            200 while the door is open
"""

from __future__ import annotations

import asyncio
import difflib
import socket
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import msgspec
import uvicorn

from edgewise.errors import LogError, LogFull, SetupError
from edgewise.event.arrow import from_arrow
from edgewise.event.clock import Clock
from edgewise.gateway.admit import Admission, Limits
from edgewise.gateway.body import Body, BodyLimits, Gone, Receive, linger
from edgewise.gateway.intake import Arrivals, Intake, answer_of
from edgewise.gateway.mappers import Mapper, mapper_of
from edgewise.gateway.openapi import openapi
from edgewise.gateway.producer import producer_of
from edgewise.gateway.refusal import Refused, refused_body
from edgewise.gateway.spec import MapSpec
from edgewise.gateway.stats import DoorStats, prometheus
from edgewise.gateway.tokens import Authority, token_of
from edgewise.gateway.websocket import PUBLISH, Lane, Publishing, may_connect
from edgewise.log.api import LogWriter

Send = Callable[[dict[str, Any]], Awaitable[None]]
STREAMS = "/streams/"
_JSON = b"application/json"
_TEXT = b"text/plain; version=0.0.4; charset=utf-8"
RETRY_FULL_S = 5
SETTLE_S = 0.5


@dataclass(frozen=True, slots=True)
class HttpConfig:
    """Limits of the door. `paths` gives streams further addresses, such as `/logins`, and `maps`
    says how their bodies are read where that is not JSON or Arrow. Streams in `keyed` are
    delivered effectively once: each request must have an idempotency key.
    """

    limits: Limits = Limits()
    in_flight_bytes_max: int = 64 * 1024 * 1024
    body_timeout_s: float = 30.0
    connections_max: int = 4096
    keep_alive_s: int = 30
    append_threads: int = 16
    paths: Mapping[str, str] = field(default_factory=dict)
    maps: Mapping[str, MapSpec] = field(default_factory=dict)
    keyed: frozenset[str] = frozenset()
    origins: frozenset[str] = frozenset()  # of pages on other hosts that may open WebSockets
    authority: Authority | None = None  # None: whoever reaches the door may send
    tls: tuple[Path, Path] | None = None  # certificate chain and key, PEM


class HttpDoor:
    """Serves the streams of `writers`; `stats` may be read at any time."""

    def __init__(
        self, writers: Mapping[str, LogWriter], clock: Clock, config: HttpConfig | None = None
    ) -> None:
        self._config = config or HttpConfig()
        self.stats = DoorStats()
        self.more_metrics: Callable[[], str] = str  # of who opened the door, in the same format
        self.others: dict[str, DoorStats] = {}  # doors that have no page of their own
        self._body_limits = BodyLimits(
            self._config.limits.body_bytes_max,
            self._config.in_flight_bytes_max,
            self._config.body_timeout_s,
        )
        self._arrivals = Arrivals(clock)
        self._pool = ThreadPoolExecutor(self._config.append_threads, "edgewise-append")
        self._admissions = {
            name: Admission(from_arrow(writer.schema), self._config.limits)
            for name, writer in writers.items()
        }
        for admission in self._admissions.values():
            admission.warm()
        self._mappers = {
            path: mapper_of(spec, self._admissions[self._config.paths[path]])
            for path, spec in self._config.maps.items()
        }
        self._intakes = {
            name: Intake(writer, self._admissions[name], self._pool, self.stats.appended)
            for name, writer in writers.items()
        }
        self._lanes = {
            name: Lane(
                name,
                writer,
                self._admissions[name],
                self._intakes[name],
                self._arrivals,
                self.stats,
                self._config.in_flight_bytes_max,
                name in self._config.keyed,
            )
            for name, writer in writers.items()
        }
        self._server: uvicorn.Server | None = None
        self._ticking: asyncio.Task[None] | None = None
        self._sockets: list[socket.socket] = []

    async def start(self, host: str = "127.0.0.1", port: int = 0) -> int:
        """Bind and serve; answers the port, which the system chose where `port` is 0."""
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        try:
            listening = socket.create_server((host, port), family=family, backlog=2048)
        except OSError as bad:
            raise SetupError(
                f"the HTTP door cannot listen on {host}:{port}: {bad.strerror}; "
                "choose another port or stop the program that has it"
            ) from bad
        config = uvicorn.Config(
            self,
            interface="asgi3",
            http="httptools",
            ws="websockets-sansio",
            ws_max_size=self._config.limits.body_bytes_max,
            ws_per_message_deflate=False,
            lifespan="off",
            loop="none",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            limit_concurrency=self._config.connections_max,
            timeout_keep_alive=self._config.keep_alive_s,
            timeout_graceful_shutdown=1,
            ssl_certfile=self._config.tls[0] if self._config.tls else None,
            ssl_keyfile=self._config.tls[1] if self._config.tls else None,
        )
        try:
            config.load()
        except OSError as bad:
            listening.close()
            raise SetupError(f"the HTTP door cannot speak TLS: {bad}") from bad
        self._server = uvicorn.Server(config)
        self._server.lifespan = config.lifespan_class(config)
        self._sockets = [listening]
        # Not `serve()`: that would take the signals of the process, which belong to the node.
        await self._server.startup(sockets=self._sockets)
        self._ticking = asyncio.create_task(self._server.main_loop())
        bound: int = listening.getsockname()[1]
        return bound

    async def stop(self) -> None:
        """Close the door: no new requests, those in flight get a second, then all is closed."""
        if self._server is not None and self._ticking is not None:
            self._server.should_exit = True
            await self._ticking
            await self._server.shutdown(sockets=self._sockets)
            for connection in list(self._server.server_state.connections):
                connection.transport.abort()
            self._server = None
        await asyncio.gather(*(intake.settle(SETTLE_S) for intake in self._intakes.values()))
        self._pool.shutdown(wait=False)

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        path = unquote(scope["path"])
        if scope["type"] == "websocket":
            await self._publish(path, scope, receive, send)
            return
        method = scope["method"]
        stream = self._config.paths.get(path) or (
            path.removeprefix(STREAMS) if path.startswith(STREAMS) else ""
        )
        denied = self._denied(scope, stream) if stream or path != "/healthz" else None
        if denied is not None:
            await self._refuse("", denied, receive, send)
            return
        if stream:
            await self._post(stream, self._mappers.get(path), scope, receive, send)
            return
        page = _PAGES.get(path)
        if page is None:
            await self._refuse("", _not_found(path), receive, send)
        elif method not in {"GET", "HEAD"}:
            await self._refuse("", _not_allowed(method, b"GET, HEAD"), receive, send)
        else:
            kind, make = page
            await _respond(send, 200, make(self), kind, head=method == "HEAD")

    def _denied(self, scope: dict[str, Any], stream: str) -> Refused | None:
        authority = self._config.authority
        return None if authority is None else authority(token_of(scope), stream)

    async def _publish(
        self, path: str, scope: dict[str, Any], receive: Receive, send: Send
    ) -> None:
        lane = self._lanes.get(path.removeprefix(STREAMS).removesuffix(PUBLISH))
        known = path.startswith(STREAMS) and path.endswith(PUBLISH)
        if (
            lane is None
            or not known
            or not may_connect(dict(scope["headers"]), self._config.origins)
            or self._denied(scope, lane.stream) is not None
        ):
            await receive()
            await send({"type": "websocket.close"})  # before it is accepted: answered with 403
            self.stats.refused["", "forbidden"] += 1
            return
        still_may = partial(self._denied, scope, lane.stream)
        await Publishing(lane, scope, receive, send, still_may).run()

    async def _post(
        self,
        stream: str,
        mapper: Mapper | None,
        scope: dict[str, Any],
        receive: Receive,
        send: Send,
    ) -> None:
        if stream not in self._admissions:
            # The name comes from outside: counting by it would let anyone fill the memory.
            await self._refuse("", self._unknown(stream), receive, send)
            return
        if scope["method"] != "POST":
            await self._refuse(stream, _not_allowed(scope["method"], b"POST"), receive, send)
            return
        body = Body(self._body_limits, self.stats, receive)
        try:
            answer = await self._take(stream, mapper, dict(scope["headers"]), body)
        except Gone:
            self.stats.refused[stream, "gone"] += 1
            return
        finally:
            body.release()
        if isinstance(answer, Refused):
            await self._refuse(stream, answer, receive, send)
        else:
            await _respond(send, 200, answer, _JSON)

    async def _take(
        self, stream: str, mapper: Mapper | None, headers: dict[bytes, bytes], body: Body
    ) -> bytes | Refused:
        # A mapped path takes any content type, so a browser asks nobody before it posts there.
        if mapper is not None and not may_connect(headers, self._config.origins):
            return refused_body(403, "forbidden", "pages of other sites may not post", at="Origin")
        raw = await body.read(headers)
        if isinstance(raw, Refused):
            return raw
        try:
            producer = producer_of(headers.get(b"idempotency-key", b"").decode("latin-1"))
        except ValueError as bad:
            return refused_body(400, "idempotency_key", str(bad), at="Idempotency-Key")
        if not producer.name and stream in self._config.keyed:
            reason = "missing; this stream takes events effectively once, send producer/sequence"
            return refused_body(400, "idempotency_key", reason, at="Idempotency-Key")
        at_us = self._arrivals.now_us()
        if mapper is not None:
            events = mapper.read(raw, at_us)
        else:
            content_type = headers.get(b"content-type", b"").decode("latin-1")
            events = self._admissions[stream].read(raw, content_type, at_us)
        if isinstance(events, Refused):
            return events
        self._arrivals.took(at_us, events.count)
        try:
            got = await self._intakes[stream].append(
                events, producer=producer.name, sequence=producer.sequence
            )
        except LogFull as full:
            return Refused(503, "full", f"no room in the log: {full}", retry_after_s=RETRY_FULL_S)
        except LogError as bad:
            return Refused(503, "log", f"the log takes nothing: {bad}", retry_after_s=RETRY_FULL_S)
        known = self.stats.took(stream, events.count, got)
        return msgspec.json.encode(answer_of(events.count, known, got))

    def _unknown(self, stream: str) -> Refused:
        near = difflib.get_close_matches(stream[:100], self._admissions, n=1)
        hint = f"; did you mean '{near[0]}'?" if near else "; GET /streams lists them"
        return refused_body(
            404, "unknown_stream", f"no stream '{stream[:100]}'{hint}", at="stream"
        )

    async def _refuse(self, stream: str, why: Refused, receive: Receive, send: Send) -> None:
        self.stats.refused[stream, why.code] += 1
        headers = list(why.headers)
        if why.retry_after_s:
            headers.append((b"retry-after", str(why.retry_after_s).encode()))
        body = msgspec.json.encode(why.answer())
        if why.status == 408:
            headers.append((b"connection", b"close"))
        if why.status not in {401, 403, 413, 429}:
            await _respond(send, why.status, body, _JSON, headers)
            return
        # The body was not read to its end: answer now, close a little later.
        headers.append((b"connection", b"close"))
        await _respond(send, why.status, body, _JSON, headers, last=False)
        await linger(receive)
        await send({"type": "http.response.body", "body": b""})


def _streams(door: HttpDoor) -> bytes:
    listed = [
        {
            "stream": name,
            "attributes": [
                {"name": a.name, "type": a.type.value} for a in admission.schema.attributes
            ],
        }
        for name, admission in sorted(door._admissions.items())  # noqa: SLF001
    ]
    return msgspec.json.encode({"streams": listed})


def _openapi(door: HttpDoor) -> bytes:
    schemas = {name: a.schema for name, a in door._admissions.items()}  # noqa: SLF001
    config = door._config  # noqa: SLF001
    return msgspec.json.encode(openapi(schemas, config.limits, config.paths, config.maps))


_PAGES: dict[str, tuple[bytes, Callable[[HttpDoor], bytes]]] = {
    "/streams": (_JSON, _streams),
    "/openapi.json": (_JSON, _openapi),
    "/metrics": (
        _TEXT,
        lambda door: (
            prometheus({"http": door.stats, **door.others}) + door.more_metrics()
        ).encode(),
    ),
    "/healthz": (_JSON, lambda _door: b'{"status":"ok"}'),
}


def _not_found(path: str) -> Refused:
    reason = f"nothing at '{path[:100]}'; events go to POST /streams/<stream>"
    return refused_body(404, "not_found", reason, at="path")


def _not_allowed(method: str, allowed: bytes) -> Refused:
    reason = f"{method} is not possible here; use {allowed.decode()}"
    fault = refused_body(405, "method", reason, at="method")
    return Refused(405, "method", fault.message, fault.problems, headers=((b"allow", allowed),))


async def _respond(
    send: Send,
    status: int,
    body: bytes,
    kind: bytes,
    headers: list[tuple[bytes, bytes]] | None = None,
    *,
    head: bool = False,
    last: bool = True,
) -> None:
    length = str(len(body)).encode()
    all_headers = [(b"content-type", kind), (b"content-length", length), *(headers or [])]
    await send({"type": "http.response.start", "status": status, "headers": all_headers})
    await send(
        {"type": "http.response.body", "body": b"" if head else body, "more_body": not last}
    )
