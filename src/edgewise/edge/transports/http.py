"""Plain HTTP on the edge's port: assets, current values, health. Parsing is llhttp's.

`Parser` collects one request at a time; `answer` is a function from request to response, so it is
tested without a socket. Bodies are bounded by the same limit as frames.
"""

from __future__ import annotations

import mimetypes
from collections.abc import Callable
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

import httptools

ASSET_BYTES_MAX = 8 * 1024 * 1024
_TYPES = {".js": "text/javascript", ".css": "text/css", ".html": "text/html", ".ts": "text/plain"}
_SAFE = (
    b"x-content-type-options: nosniff\r\nreferrer-policy: no-referrer\r\n"
    b"cache-control: no-cache\r\n"
)


@dataclass(slots=True)
class Request:
    method: str = ""
    path: str = ""
    query: dict[str, str] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    keep_alive: bool = True


@dataclass(frozen=True, slots=True)
class Response:
    status: HTTPStatus
    body: bytes = b""
    content_type: str = "application/json"
    headers: tuple[tuple[str, str], ...] = ()

    def encode(self, *, keep_alive: bool, head_only: bool = False) -> bytes:
        lines = [
            f"HTTP/1.1 {self.status.value} {self.status.phrase}",
            f"content-type: {self.content_type}",
            f"content-length: {len(self.body)}",
            f"connection: {'keep-alive' if keep_alive else 'close'}",
            *(f"{name}: {value}" for name, value in self.headers),
        ]
        head = "\r\n".join(lines).encode() + b"\r\n" + _SAFE + b"\r\n"
        return head if head_only else head + self.body


def problem(status: HTTPStatus, reason: str) -> Response:
    return Response(status, (reason + "\n").encode(), "text/plain; charset=utf-8")


class BadRequest(Exception):
    """Bytes that are no HTTP, or more of them than the limits allow."""

    def __init__(self, status: HTTPStatus, reason: str) -> None:
        self.response = problem(status, reason)
        super().__init__(reason)


class Parser:
    """Bytes to requests. `head` keeps the raw bytes of the first request for an upgrade."""

    def __init__(self, head_bytes_max: int, body_bytes_max: int) -> None:
        self.head: bytearray | None = bytearray()
        self.wants_websocket = False
        self._limits = (head_bytes_max, body_bytes_max)
        self._parser = httptools.HttpRequestParser(self)
        self._request = Request()
        self._target = b""
        self._size = 0
        self._in_head = True
        self._done: list[Request] = []

    def receive(self, data: bytes) -> list[Request]:
        """Whole requests. When `wants_websocket` is set, `head` holds everything so far."""
        if self.head is not None:
            self.head += data
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self.wants_websocket = True
        except httptools.HttpParserError as error:
            cause = error.__context__
            if isinstance(cause, BadRequest):
                raise cause from None
            raise BadRequest(HTTPStatus.BAD_REQUEST, f"not HTTP: {error}") from error
        self._size = self._size + len(data) if self._in_head else 0
        if self._size > self._limits[0]:
            raise BadRequest(
                HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
                f"the request head exceeds {self._limits[0]} bytes",
            )
        if not self._in_head and not self.wants_websocket:
            self.head = None
        done, self._done = self._done, []
        return done

    def release(self) -> None:
        """Nothing comes any more. We and the parser that calls us refer to each other."""
        del self._parser

    @property
    def headers(self) -> dict[str, str]:
        return self._request.headers

    def on_message_begin(self) -> None:
        self._request, self._target, self._size, self._in_head = Request(), b"", 0, True

    def on_url(self, url: bytes) -> None:
        self._target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._in_head:
            return  # after the body: nothing that was decided by the head may change
        headers, key, text = (
            self._request.headers,
            name.decode("latin-1").lower(),
            value.decode("latin-1"),
        )
        headers[key] = f"{headers[key]}, {text}" if key in headers else text

    def on_headers_complete(self) -> None:
        request = self._request
        request.method = self._parser.get_method().decode("latin-1")
        request.keep_alive = self._parser.should_keep_alive()
        target = urlsplit(self._target.decode("latin-1"))
        request.path = unquote(target.path, errors="replace")
        request.query = dict(parse_qsl(target.query, max_num_fields=32))
        self._in_head = False

    def on_body(self, body: bytes) -> None:
        if len(self._request.body) + len(body) > self._limits[1]:
            raise BadRequest(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"the body exceeds {self._limits[1]} bytes"
            )
        self._request.body += body

    def on_message_complete(self) -> None:
        if not self._parser.should_upgrade():
            self._done.append(self._request)


Route = Callable[[Request], Response | None]


def assets(directories: tuple[tuple[str, Path], ...]) -> Route:
    """Files below the given directories and nothing else."""
    ordered = sorted(directories, key=lambda d: len(d[0]), reverse=True)
    roots = [(prefix.rstrip("/") + "/", directory.resolve()) for prefix, directory in ordered]

    def route(request: Request) -> Response | None:
        if request.method not in {"GET", "HEAD"}:
            return None
        for prefix, root in roots:
            if request.path.startswith(prefix):
                found = _file(root, request.path[len(prefix) :] or "index.html")
                if found is not None:
                    return found
        return None

    return route


def _file(root: Path, name: str) -> Response | None:
    if "\0" in name:
        return None
    path = (root / name).resolve()
    if not path.is_relative_to(root) or not path.is_file():
        return None
    if path.stat().st_size > ASSET_BYTES_MAX:
        return problem(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"{name} is too large to serve")
    kind = _TYPES.get(path.suffix) or mimetypes.guess_type(name)[0] or "application/octet-stream"
    if kind.startswith("text/"):
        kind += "; charset=utf-8"
    return Response(HTTPStatus.OK, path.read_bytes(), kind)
