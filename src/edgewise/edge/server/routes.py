"""Answer plain HTTP requests: current values, health, metrics, assets.

GET /topics/fx/eur/usd     the current value as JSON, a blob as its bytes; position and age in
                           headers
GET /topics?select=fx/#    every selected value, by path
GET /livez                 200 while the edge answers
GET /readyz, /healthz      200 while all parts of the node work (`$sys/health`), else 503
GET /metrics               counters for Prometheus
GET anything else          a file of the asset directories
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import fields, replace
from http import HTTPStatus
from typing import Any

import msgspec

from edgewise.edge.access.auth import AccessControl, Principal
from edgewise.edge.config import EdgeConfig
from edgewise.edge.metrics.telemetry import GAUGES, EdgeStats, ReportedSession, Telemetry
from edgewise.edge.sessions.encode import show_value
from edgewise.edge.topics.tree import TopicTree
from edgewise.edge.transports.http import (
    HttpRequest,
    HttpResponse,
    Route,
    problem_response,
    serve_assets,
)
from edgewise.errors import ProtocolError
from edgewise.wire.frames import TopicKind
from edgewise.wire.paths import parse_selector

LISTED_MAX = 10_000  # topics in one answer of GET /topics?select=
HEALTH_TOPIC = ("$sys", "health")  # published by the node
METRICS_TOPIC = ("$sys", "metrics")  # what a token must read to see /metrics


class HttpRoutes:
    def __init__(
        self,
        config: EdgeConfig,
        tree: TopicTree,
        access: AccessControl,
        telemetry: Telemetry,
        stats: Callable[[], EdgeStats],
        *,
        sessions: Callable[[], Iterable[ReportedSession]] = tuple,
    ) -> None:
        self._sessions = sessions
        self._tree = tree
        self._telemetry = telemetry
        self._access = access
        self._stats = stats
        self._assets = serve_assets(config.assets, user_page=config.user_page)
        self._routes: dict[str, Route] = {
            "/livez": self._livez,
            "/readyz": self._readyz,
            "/healthz": self._readyz,
            "/metrics": self._metrics,
            "/topics": self._topics,
        }

    def answer(self, request: HttpRequest) -> HttpResponse:
        host = request.headers.get("host", "")
        if reason := self._access.refuse_page("", host):
            return problem_response(HTTPStatus.FORBIDDEN, reason)
        if request.method == "OPTIONS":
            return HttpResponse(HTTPStatus.NO_CONTENT, headers=self._cross_origin(request))
        if request.method not in {"GET", "HEAD"}:
            return problem_response(
                HTTPStatus.METHOD_NOT_ALLOWED, "only GET and HEAD are answered here"
            )
        response = self._find_route(request)(request) or problem_response(
            HTTPStatus.NOT_FOUND, f"nothing is served at {request.path[:200]}"
        )
        allowed = self._cross_origin(request)
        return replace(response, headers=response.headers + allowed) if allowed else response

    def _find_route(self, request: HttpRequest) -> Route:
        for prefix, route in self._routes.items():
            if request.path == prefix or request.path.startswith(prefix + "/"):
                return route
        return self._assets

    def _livez(self, _request: HttpRequest) -> HttpResponse:
        return HttpResponse(HTTPStatus.OK, b'{"status":"ok"}')

    def _readyz(self, request: HttpRequest) -> HttpResponse:
        """What the node says of itself; reasons only for those that may read its topic."""
        stats, topic = self._stats(), self._tree.get("/".join(HEALTH_TOPIC))
        body = {"status": "ok", "sessions": stats.sessions, "topics": stats.topics}
        if topic is not None and topic.head is not None:
            health = show_value(topic, topic.head)
            body["status"] = health["status"]
            if self._may_read(request, HEALTH_TOPIC):
                body["parts"] = health["parts"]
        ready = body["status"] == "ok"
        status = HTTPStatus.OK if ready else HTTPStatus.SERVICE_UNAVAILABLE
        return HttpResponse(status, msgspec.json.encode(body))

    def _may_read(self, request: HttpRequest, path: tuple[str, ...]) -> bool:
        try:
            return self._identify(request).may_read(path)
        except ProtocolError:
            return False

    def _metrics(self, request: HttpRequest) -> HttpResponse:
        """Where there are tokens, for those that may read METRICS_TOPIC: it names clients."""
        try:
            principal = self._identify(request)
        except ProtocolError as error:
            return problem_response(HTTPStatus.UNAUTHORIZED, error.reason)
        if not principal.may_read(METRICS_TOPIC):
            reason = f"'{principal.name}' may not read {'/'.join(METRICS_TOPIC)}"
            return problem_response(HTTPStatus.FORBIDDEN, reason)
        stats = self._stats()
        lines = []
        for name in (f.name for f in fields(stats)):
            kind, suffix = ("gauge", "") if name in GAUGES else ("counter", "_total")
            lines += [
                f"# TYPE edgewise_edge_{name}{suffix} {kind}",
                f"edgewise_edge_{name}{suffix} {getattr(stats, name)}",
            ]
        reported = list(self._sessions())
        lines += self._telemetry.lines(self._tree, (session.outbox for session, _ in reported))
        lines += self._telemetry.format_session_lines(reported)
        body = ("\n".join(lines) + "\n").encode()
        return HttpResponse(HTTPStatus.OK, body, "text/plain; version=0.0.4; charset=utf-8")

    def _identify(self, request: HttpRequest) -> Principal:
        token = request.headers.get("authorization", "").removeprefix("Bearer ").strip()
        return self._access.identify(token)

    def cross_origin_bytes(self, request: HttpRequest) -> bytes:
        return "".join(f"{k}: {v}\r\n" for k, v in self._cross_origin(request)).encode()

    def _cross_origin(self, request: HttpRequest) -> tuple[tuple[str, str], ...]:
        """What lets a listed page of another origin load the client, read values and use the
        emulated transports.
        """
        origin = request.headers.get("origin", "")
        if not origin or not self._access.admits_origin(origin, request.headers.get("host", "")):
            return ()
        return (
            ("access-control-allow-origin", origin),
            ("access-control-allow-methods", "GET, POST"),
            ("access-control-allow-headers", "content-type, authorization"),
            ("vary", "origin"),
        )

    def _topics(self, request: HttpRequest) -> HttpResponse:
        try:
            principal = self._identify(request)
        except ProtocolError as error:
            return problem_response(HTTPStatus.UNAUTHORIZED, error.reason)
        path = request.path.removeprefix("/topics").strip("/")
        if not path:
            return self._select(request.query.get("select", "#"), principal)
        topic = self._tree.get(path)
        if topic is not None and not principal.may_read(topic.segments):
            topic = None  # a principal that may not read it does not learn that it exists
        if topic is None or topic.head is None:
            return problem_response(HTTPStatus.NOT_FOUND, f"no topic '{path[:200]}'")
        head = topic.head
        headers = (
            ("x-edgewise-position", f"{head.epoch}:{head.to}"),
            ("x-edgewise-at-us", str(head.at_us)),
            ("x-edgewise-stale-since-us", str(topic.stale_us)),
        )
        if topic.policy.kind is TopicKind.BLOB:
            return HttpResponse(HTTPStatus.OK, head.value, "application/octet-stream", headers)
        return _json(show_value(topic, head), headers)

    def _select(self, text: str, principal: Principal) -> HttpResponse:
        try:
            selector = parse_selector(text)
        except ProtocolError as error:
            return problem_response(HTTPStatus.BAD_REQUEST, error.reason)
        found: dict[str, Any] = {}
        for topic in self._tree.select(selector):
            if topic.head is not None and principal.may_read(topic.segments):
                found[topic.path] = show_value(topic, topic.head)
            if len(found) >= LISTED_MAX:
                break
        return _json(found)


def _json(value: Any, headers: tuple[tuple[str, str], ...] = ()) -> HttpResponse:
    try:
        body = msgspec.json.encode(value)
    except (TypeError, ValueError, OverflowError) as error:
        return problem_response(HTTPStatus.NOT_ACCEPTABLE, f"this value has no JSON form: {error}")
    return HttpResponse(HTTPStatus.OK, body, headers=headers)
