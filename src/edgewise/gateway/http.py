"""Serve the HTTP ingest endpoints: `POST /streams/{stream}`, answered when the events are durable.

    POST /streams/{stream}   200 {"accepted": n, "first": offset, "end": offset}
    GET  /streams/{stream}/publish   a WebSocket, see `websocket`
    POST /query              an on-demand query, see `query_endpoint`
    GET  /streams            the streams and their attributes
    GET  /openapi.json       this table for machines
    GET  /metrics            counters for Prometheus
    GET  /livez              200 while the server answers
    GET  /readyz, /healthz   200 while all parts of the node work, else 503, with the reasons

The ASGI application knows requests and answers only: `admit` decides what is accepted, and
`append_queue` appends it. The server is uvicorn, inside the caller's event loop. Used by
`node.serve`.
"""

from __future__ import annotations

import asyncio
import difflib
import socket
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any
from urllib.parse import unquote

import msgspec
import uvicorn

from edgewise.errors import LogError, LogFull, SetupError
from edgewise.event.arrow import from_arrow
from edgewise.event.clock import SystemClock
from edgewise.gateway.admit import Admission
from edgewise.gateway.append_queue import AppendQueue, CaptureClock, describe_append
from edgewise.gateway.caller_checks import CallerChecks
from edgewise.gateway.http_pages import ALIVE, HEALTH_PAGES, build_pages, choose_page
from edgewise.gateway.http_protocol import HeadLimits, build_server
from edgewise.gateway.http_responses import (
    JSON,
    Send,
    add_headers,
    list_headers,
    refuse_method,
    refuse_websocket,
    respond,
)
from edgewise.gateway.ingest_config import IngestConfig
from edgewise.gateway.mappers import Mapper, build_mapper
from edgewise.gateway.producer import parse_idempotency_key
from edgewise.gateway.query_endpoint import QUERY_PAGE, QUERY_RIGHT, QueryEndpoint
from edgewise.gateway.quotas import CallerUse, Publisher, Quotas
from edgewise.gateway.refusal import Refusal, refuse_request
from edgewise.gateway.request_body import (
    BodyLimits,
    Disconnected,
    Receive,
    RequestBody,
    drain_request,
)
from edgewise.gateway.stats import ConnectorStats, render_prometheus
from edgewise.gateway.websocket import PUBLISH, PublishSession, PublishTarget
from edgewise.log.api import LogWriter

STREAMS = "/streams/"
RETRY_FULL_S = 5
SETTLE_S = 0.5


class IngestServer:
    """Serves the streams of `writers`. `stats` may be read at any time."""

    def __init__(
        self,
        writers: Mapping[str, LogWriter],
        clock: SystemClock,
        config: IngestConfig | None = None,
    ) -> None:
        self._config = config or IngestConfig()
        self.stats = ConnectorStats()
        self.queries = QueryEndpoint()
        self.extra_metrics: Callable[[], str] = str  # of the node, in the same format
        # Whether the node is ready, and the body that says so; the argument: with reasons.
        self.health: Callable[[bool], tuple[bool, bytes]] = lambda _detailed: (True, ALIVE)
        # Why nothing more fits on the disk, and how long a request waits before it is read.
        self.check_disk: Callable[[], tuple[str, float]] = lambda: ("", 0.0)
        self.connectors: dict[str, ConnectorStats] = {}  # all other sources and sinks, by name
        self._body_limits = BodyLimits(
            self._config.limits.body_bytes_max,
            self._config.in_flight_bytes_max,
            self._config.body_timeout_s,
        )
        self._capture_clock = CaptureClock(clock)
        self._checks = CallerChecks(
            self._config.origins,
            self._config.admits_host,
            self._config.authorizer,
            self._config.find_address,
        )
        self._quotas = Quotas(
            self._config.quotas,
            self._config.in_flight_bytes_max,
            self._config.limits.body_bytes_max,
        )
        self._pool = ThreadPoolExecutor(self._config.append_threads, "edgewise-append")
        self._admissions = {
            name: Admission(from_arrow(writer.schema), self._config.limits)
            for name, writer in writers.items()
        }
        for admission in self._admissions.values():
            admission.warm()
        self._mappers = {
            path: build_mapper(spec, self._admissions[self._config.paths[path]])
            for path, spec in self._config.maps.items()
        }
        self._append_queues = {
            name: AppendQueue(
                writer, self._admissions[name], self._pool, self.stats.observe_append
            )
            for name, writer in writers.items()
        }
        self._targets = {
            name: PublishTarget(
                name,
                writer,
                self._admissions[name],
                self._append_queues[name],
                self._capture_clock,
                self.stats,
                self._config.in_flight_bytes_max,
                name in self._config.keyed,
            )
            for name, writer in writers.items()
        }
        self._pages = build_pages(
            {name: a.schema for name, a in self._admissions.items()}, self._config, self._metrics
        )
        self._server: uvicorn.Server | None = None
        self._main_loop: asyncio.Task[None] | None = None
        self._sockets: list[socket.socket] = []

    async def start(self, host: str = "127.0.0.1", port: int = 0) -> int:
        """Bind and serve; returns the port, which the system chose where `port` is 0."""
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        try:
            listening = socket.create_server((host, port), family=family, backlog=2048)
        except OSError as error:
            raise SetupError(
                f"the ingest server cannot listen on {host}:{port}: {error.strerror}; "
                "choose another port or stop the program that has it"
            ) from error
        settings = self._config
        limits = HeadLimits(
            settings.head_timeout_s, settings.head_bytes_max, settings.address_connections_max
        )
        try:
            self._server = build_server(
                self,
                limits,
                frame_bytes_max=settings.limits.body_bytes_max,
                connections_max=settings.connections_max,
                keep_alive_s=settings.keep_alive_s,
                tls=settings.tls,
            )
        except OSError as error:
            listening.close()
            raise SetupError(f"the ingest server cannot use TLS: {error}") from error
        self._sockets = [listening]
        # Not `serve()`: that would take the signals of the process, which belong to the node.
        await self._server.startup(sockets=self._sockets)
        self._main_loop = asyncio.create_task(self._server.main_loop())
        bound: int = listening.getsockname()[1]
        return bound

    async def stop(self) -> None:
        """Accept no new requests, give those in flight a second, then close all connections."""
        if self._server is not None and self._main_loop is not None:
            self._server.should_exit = True
            await self._main_loop
            await self._server.shutdown(sockets=self._sockets)
            for connection in list(self._server.server_state.connections):
                connection.transport.abort()
            self._server = None
        await asyncio.gather(
            *(append_queue.flush(SETTLE_S) for append_queue in self._append_queues.values())
        )
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
        headers = dict(scope["headers"])
        cors_headers = self._checks.list_cors_headers(headers)
        send = add_headers(send, cors_headers)
        if (refusal := self._checks.refuse_host(headers)) is not None:
            await self._refuse("", refusal, receive, send)
            return
        if method == "OPTIONS" and cors_headers:  # a browser asks whether its page may
            await respond(send, 204, b"", JSON)
            return
        if path == QUERY_PAGE:
            await self._answer_query(scope, receive, send)
            return
        caller = self._checks.identify(scope, stream)
        if isinstance(caller, Refusal) and path not in HEALTH_PAGES:
            await self._refuse("", caller, receive, send)
            return
        if stream:
            assert isinstance(caller, Publisher)
            await self._post_within_quota(scope, receive, send, caller=caller, stream=stream)
            return
        known = isinstance(caller, Publisher)
        page = choose_page(path, method, self._pages, partial(self.health, known))
        if isinstance(page, Refusal):
            await self._refuse("", page, receive, send)
        else:
            await respond(send, page.status, page.body, page.kind, head=method == "HEAD")

    async def _answer_query(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        caller = self._checks.identify(scope, QUERY_RIGHT)
        why = await self.queries.respond(scope, receive, send, caller)
        if why is not None:
            await self._refuse("", why, receive, send)

    async def _publish(
        self, path: str, scope: dict[str, Any], receive: Receive, send: Send
    ) -> None:
        known = path.startswith(STREAMS) and path.endswith(PUBLISH)
        stream = path.removeprefix(STREAMS).removesuffix(PUBLISH) if known else ""
        target, use = self._targets.get(stream), self._admit_websocket(stream, scope)
        if isinstance(use, Refusal):
            self.stats.refused["" if target is None else stream, use.code] += 1
            await receive()
            await refuse_websocket(send, use)
            return
        assert target is not None

        def check_caller() -> Refusal | None:
            found = self._checks.identify(scope, stream)
            return found if isinstance(found, Refusal) else None

        try:
            await PublishSession(
                target, scope, receive, send, use=use, check_caller=check_caller
            ).run()
        finally:
            self._quotas.end(use)

    def _admit_websocket(self, stream: str, scope: dict[str, Any]) -> CallerUse | Refusal:
        headers = dict(scope["headers"])
        refusal = self._checks.refuse_host(headers) or self._checks.refuse_page(headers)
        if refusal is not None:
            return refusal
        caller = self._checks.identify(scope, stream)
        if isinstance(caller, Refusal):
            return caller
        if stream not in self._targets:
            return self._refuse_unknown(stream)
        return self._quotas.begin(caller, self._now_s())

    async def _post_within_quota(
        self,
        scope: dict[str, Any],
        receive: Receive,
        send: Send,
        *,
        caller: Publisher,
        stream: str,
    ) -> None:
        use = self._quotas.begin(caller, self._now_s())
        if isinstance(use, Refusal):
            # A name that is no stream comes from the caller: it is not counted by.
            known = stream if stream in self._admissions else ""
            await self._refuse(known, use, receive, send)
            return
        try:
            await self._post(scope, receive, send, stream=stream, use=use)
        finally:
            self._quotas.end(use)

    async def _post(
        self, scope: dict[str, Any], receive: Receive, send: Send, *, stream: str, use: CallerUse
    ) -> None:
        if stream not in self._admissions:
            # The name comes from the caller: counting by it would let anyone fill the memory.
            await self._refuse("", self._refuse_unknown(stream), receive, send)
            return
        if scope["method"] != "POST":
            await self._refuse(stream, refuse_method(scope["method"], b"POST"), receive, send)
            return
        full, pause_s = self.check_disk()
        if full:
            refusal = Refusal(503, "full", f"the disk: {full}", retry_after_s=RETRY_FULL_S)
            await self._refuse(stream, refusal, receive, send)
            return
        if pause_s:
            await asyncio.sleep(pause_s)
        mapper = self._mappers.get(unquote(scope["path"]))
        body = RequestBody(self._body_limits, self.stats, use, receive)
        try:
            answer = await self._accept(stream, mapper, dict(scope["headers"]), body, use)
        except Disconnected:
            self.stats.refused[stream, "gone"] += 1
            return
        finally:
            body.release()
        if isinstance(answer, Refusal):
            await self._refuse(stream, answer, receive, send)
        else:
            await respond(send, 200, answer, JSON)

    async def _accept(
        self,
        stream: str,
        mapper: Mapper | None,
        headers: dict[bytes, bytes],
        body: RequestBody,
        use: CallerUse,
    ) -> bytes | Refusal:
        # A mapped path takes any content type, so a browser sends no preflight before it posts.
        refusal = None if mapper is None else self._checks.refuse_page(headers)
        if refusal is not None:
            return refusal
        raw = await body.read(headers)
        if isinstance(raw, Refusal):
            return raw
        try:
            key = parse_idempotency_key(headers.get(b"idempotency-key", b"").decode("latin-1"))
        except ValueError as error:
            return refuse_request(400, "idempotency_key", str(error), at="Idempotency-Key")
        if not key.producer and stream in self._config.keyed:
            reason = (
                "missing; this stream is delivered effectively once, so send producer/sequence"
            )
            return refuse_request(400, "idempotency_key", reason, at="Idempotency-Key")
        at_us = self._capture_clock.now_us()
        if mapper is not None:
            events = mapper.read(raw, at_us)
        else:
            content_type = headers.get(b"content-type", b"").decode("latin-1")
            events = self._admissions[stream].read(raw, content_type, at_us)
        if isinstance(events, Refusal):
            return events
        self._capture_clock.advance(at_us, events.count)
        use.charge(events.count, len(raw))
        try:
            got = await self._append_queues[stream].append(
                events, producer=key.producer, sequence=key.sequence
            )
        except LogFull as full:
            return Refusal(503, "full", f"no room in the log: {full}", retry_after_s=RETRY_FULL_S)
        except LogError as error:
            return Refusal(
                503, "log", f"the log takes nothing: {error}", retry_after_s=RETRY_FULL_S
            )
        known = self.stats.count_appended(stream, events.count, got)
        return msgspec.json.encode(describe_append(events.count, known, got))

    @staticmethod
    def _now_s() -> float:
        return asyncio.get_running_loop().time()

    def _metrics(self) -> str:
        connectors = {"http": self.stats, **self.connectors}
        return render_prometheus(connectors) + self.extra_metrics()

    def _refuse_unknown(self, stream: str) -> Refusal:
        near = difflib.get_close_matches(stream[:100], self._admissions, n=1)
        hint = f"; did you mean '{near[0]}'?" if near else "; GET /streams lists them"
        return refuse_request(
            404, "unknown_stream", f"no stream '{stream[:100]}'{hint}", at="stream"
        )

    async def _refuse(self, stream: str, why: Refusal, receive: Receive, send: Send) -> None:
        self.stats.refused[stream, why.code] += 1
        headers = list_headers(why)
        body = msgspec.json.encode(why.to_json())
        if why.status == 408:
            headers.append((b"connection", b"close"))
        if why.status not in {401, 403, 413, 429, 503}:
            await respond(send, why.status, body, JSON, headers)
            return
        # The body was not read to its end: answer now, close after a moment.
        headers.append((b"connection", b"close"))
        await respond(send, why.status, body, JSON, headers, last=False)
        await drain_request(receive)
        await send({"type": "http.response.body", "body": b""})
