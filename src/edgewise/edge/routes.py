"""What plain HTTP can ask of the edge: current values, health, metrics, assets.

GET /topics/fx/eur/usd     the current value as JSON, a blob as its bytes; position and age in
                           headers
GET /topics?select=fx/#    every selected value, by path
GET /healthz               one line for a load balancer
GET /metrics               counters for Prometheus
GET anything else          a file of the asset directories
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from http import HTTPStatus
from typing import Any

import msgspec

from edgewise.edge.config import EdgeConfig
from edgewise.edge.encode import shown
from edgewise.edge.gate import Gate, Principal
from edgewise.edge.session import Session
from edgewise.edge.telemetry import Telemetry, Watched, session_lines
from edgewise.edge.topics import TopicTree
from edgewise.edge.transports.http import Request, Response, assets, problem
from edgewise.errors import ProtocolError
from edgewise.wire.frames import TopicKind
from edgewise.wire.paths import parse_selector

LISTED_MAX = 10_000  # topics in one answer of GET /topics?select=
GAUGES = {"connections", "sessions", "topics", "pending"}


@dataclass(slots=True)
class Stats:
    """Counters since the start; those in GAUGES are as of now."""

    connections: int = 0
    sessions: int = 0
    topics: int = 0
    pending: int = 0
    published: int = 0
    updates_sent: int = 0
    bytes_sent: int = 0
    conflated: int = 0
    refused: int = 0
    unpublishable: int = 0


@dataclass(slots=True)
class Tally:
    """What can only be known by a look at each session."""

    bytes_sent: int = 0
    pending: int = 0

    def add(self, session: Session | None, bytes_sent: int) -> None:
        if session is not None:
            self.bytes_sent += bytes_sent
            self.pending += session.outbox.pending


class Routes:
    def __init__(
        self,
        config: EdgeConfig,
        tree: TopicTree,
        gate: Gate,
        telemetry: Telemetry,
        stats: Callable[[], Stats],
        *,
        sessions: Callable[[], Iterable[Watched]] = tuple,
    ) -> None:
        self._sessions = sessions
        self._tree = tree
        self._telemetry = telemetry
        self._gate = gate
        self._stats = stats
        self._assets = assets(config.assets)
        self._routes = {
            "/healthz": self._healthz,
            "/metrics": self._metrics,
            "/topics": self._topics,
        }

    def answer(self, request: Request) -> Response:
        if request.method == "OPTIONS":
            return Response(HTTPStatus.NO_CONTENT, headers=self._cross_origin(request))
        if request.method not in {"GET", "HEAD"}:
            return problem(HTTPStatus.METHOD_NOT_ALLOWED, "only GET and HEAD are answered here")
        for prefix, route in self._routes.items():
            if request.path == prefix or request.path.startswith(prefix + "/"):
                return route(request)
        return self._assets(request) or problem(
            HTTPStatus.NOT_FOUND, f"nothing is served at {request.path[:200]}"
        )

    def _healthz(self, _request: Request) -> Response:
        stats = self._stats()
        body = {"status": "ok", "sessions": stats.sessions, "topics": stats.topics}
        return Response(HTTPStatus.OK, msgspec.json.encode(body))

    def _metrics(self, _request: Request) -> Response:
        stats = self._stats()
        lines = []
        for name in (f.name for f in fields(stats)):
            kind, suffix = ("gauge", "") if name in GAUGES else ("counter", "_total")
            lines += [
                f"# TYPE edgewise_edge_{name}{suffix} {kind}",
                f"edgewise_edge_{name}{suffix} {getattr(stats, name)}",
            ]
        told = list(self._sessions())
        lines += self._telemetry.lines(self._tree, (session.outbox for session, _ in told))
        lines += session_lines(told)
        body = ("\n".join(lines) + "\n").encode()
        return Response(HTTPStatus.OK, body, "text/plain; version=0.0.4; charset=utf-8")

    def cross_origin_bytes(self, request: Request) -> bytes:
        return "".join(f"{k}: {v}\r\n" for k, v in self._cross_origin(request)).encode()

    def _cross_origin(self, request: Request) -> tuple[tuple[str, str], ...]:
        """What lets a listed page of another origin use the emulated transports."""
        origin = request.headers.get("origin", "")
        if not origin or not self._gate.admits_origin(origin, request.headers.get("host", "")):
            return ()
        return (
            ("access-control-allow-origin", origin),
            ("access-control-allow-methods", "GET, POST"),
            ("access-control-allow-headers", "content-type, authorization"),
            ("vary", "origin"),
        )

    def _topics(self, request: Request) -> Response:
        try:
            token = request.headers.get("authorization", "").removeprefix("Bearer ").strip()
            principal = self._gate.identify(token)
        except ProtocolError as error:
            return problem(HTTPStatus.UNAUTHORIZED, error.reason)
        path = request.path.removeprefix("/topics").strip("/")
        if not path:
            return self._select(request.query.get("select", "#"), principal)
        topic = self._tree.get(path)
        if topic is not None and not principal.may_read(topic.segments):
            topic = None  # what may not be read is not told to exist
        if topic is None or topic.head is None:
            return problem(HTTPStatus.NOT_FOUND, f"no topic '{path[:200]}'")
        head = topic.head
        headers = (
            ("x-edgewise-position", f"{head.epoch}:{head.to}"),
            ("x-edgewise-at-us", str(head.at_us)),
            ("x-edgewise-stale-since-us", str(topic.stale_us)),
        )
        if topic.policy.kind is TopicKind.BLOB:
            return Response(HTTPStatus.OK, head.value, "application/octet-stream", headers)
        return _json(shown(topic, head), headers)

    def _select(self, text: str, principal: Principal) -> Response:
        try:
            selector = parse_selector(text)
        except ProtocolError as error:
            return problem(HTTPStatus.BAD_REQUEST, error.reason)
        found: dict[str, Any] = {}
        for topic in self._tree.select(selector):
            if topic.head is not None and principal.may_read(topic.segments):
                found[topic.path] = shown(topic, topic.head)
            if len(found) >= LISTED_MAX:
                break
        return _json(found)


def _json(value: Any, headers: tuple[tuple[str, str], ...] = ()) -> Response:
    try:
        body = msgspec.json.encode(value)
    except (TypeError, ValueError, OverflowError) as error:
        return problem(HTTPStatus.NOT_ACCEPTABLE, f"this value has no JSON form: {error}")
    return Response(HTTPStatus.OK, body, headers=headers)
