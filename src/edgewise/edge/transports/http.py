"""Parse HTTP requests and encode responses on the edge's port; serve assets. Parsing is llhttp's.

`HttpParser` collects one request at a time; a route is a function from request to response, so it
is tested without a socket. Bodies are bounded by the same limit as frames.
"""

from __future__ import annotations

import mimetypes
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

import httptools

ASSET_BYTES_MAX = 8 * 1024 * 1024
_TYPES = {".js": "text/javascript", ".css": "text/css", ".html": "text/html", ".ts": "text/plain"}
_SAFE = (
    b"x-content-type-options: nosniff\r\nreferrer-policy: no-referrer\r\n"
    b"cache-control: no-cache\r\ncontent-security-policy: "
)
_OUR_POLICY = (
    "default-src 'self'; connect-src 'self' ws: wss:; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; object-src 'none'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'self'"
)
# A page of the user has scripts, maps and fonts from where its author wants them.
_USER_POLICY = "frame-ancestors 'self'"


@dataclass(slots=True)
class HttpRequest:
    method: str = ""
    path: str = ""
    query: dict[str, str] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    keep_alive: bool = True


@dataclass(frozen=True, slots=True)
class HttpResponse:
    status: HTTPStatus
    body: bytes = b""
    content_type: str = "application/json"
    headers: tuple[tuple[str, str], ...] = ()
    policy: str = _OUR_POLICY  # what the browser lets a page load

    def encode(self, *, keep_alive: bool, head_only: bool = False) -> bytes:
        lines = [
            f"HTTP/1.1 {self.status.value} {self.status.phrase}",
            f"content-type: {self.content_type}",
            f"content-length: {len(self.body)}",
            f"connection: {'keep-alive' if keep_alive else 'close'}",
            *(f"{name}: {value}" for name, value in self.headers),
        ]
        safe = _SAFE + self.policy.encode() + b"\r\n"
        head = "\r\n".join(lines).encode() + b"\r\n" + safe + b"\r\n"
        return head if head_only else head + self.body


def problem_response(status: HTTPStatus, reason: str) -> HttpResponse:
    return HttpResponse(status, (reason + "\n").encode(), "text/plain; charset=utf-8")


class BadRequest(Exception):
    """Bytes that are no HTTP, or more of them than the limits allow."""

    def __init__(self, status: HTTPStatus, reason: str) -> None:
        self.response = problem_response(status, reason)
        super().__init__(reason)


class HttpParser:
    """Bytes to requests. `upgrade` is set when a WebSocket is asked for: the head of that request,
    and what came after it.
    """

    def __init__(self, head_bytes_max: int, body_bytes_max: int) -> None:
        self.upgrade: bytes | None = None
        self._limits = (head_bytes_max, body_bytes_max)
        self._parser = httptools.HttpRequestParser(self)
        self._request = HttpRequest()
        self._target = b""
        self._size = 0  # of the last request, as far as it came
        self._begun = 0  # requests in this read
        self._unfinished = False
        self._in_head = True
        self._done: list[HttpRequest] = []

    def receive(self, data: bytes) -> list[HttpRequest]:
        """Whole requests."""
        self._begun = 0
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as stop:
            self.upgrade = self._head() + data[stop.args[0] :]
        except httptools.HttpParserError as error:
            cause = error.__context__
            if isinstance(cause, BadRequest):
                raise cause from None
            raise BadRequest(HTTPStatus.BAD_REQUEST, f"not HTTP: {error}") from error
        # One that began behind others in this read counts from the next one on.
        self._size = 0 if self._begun > 1 else self._size + len(data)
        if self._unfinished:
            self._judge()
        done, self._done = self._done, []
        return done

    def _judge(self) -> None:
        """What is no body (a head, trailers, the sizes of chunks) has its limit too."""
        head_max, body_max = self._limits
        if self._in_head and self._size > head_max:
            raise BadRequest(
                HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
                f"the request head exceeds {head_max} bytes",
            )
        if self._size > head_max + 2 * body_max:
            raise BadRequest(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
                f"the request exceeds {head_max + 2 * body_max} bytes",
            )

    def _head(self) -> bytes:
        """As it came, but for the letters of names and headers that came twice."""
        lines = "".join(f"{name}: {value}\r\n" for name, value in self.headers.items())
        return b"GET %s HTTP/1.1\r\n%s\r\n" % (self._target, lines.encode("latin-1"))

    def release(self) -> None:
        """Nothing comes any more. We and the parser that calls us refer to each other."""
        del self._parser

    @property
    def unfinished(self) -> bool:
        """Whether a request has begun and is not complete."""
        return self._unfinished

    @property
    def headers(self) -> dict[str, str]:
        return self._request.headers

    def on_message_begin(self) -> None:
        self._request, self._target, self._size, self._in_head = HttpRequest(), b"", 0, True
        self._begun += 1
        self._unfinished = True

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
        self._unfinished = False
        if not self._parser.should_upgrade():
            self._done.append(self._request)


Route = Callable[[HttpRequest], HttpResponse | None]


def serve_assets(directories: tuple[tuple[str, Path], ...], *, user_page: bool = False) -> Route:
    """Files below the given directories and nothing else; `user_page`: those at / are a user's."""
    ordered = sorted(directories, key=lambda d: len(d[0]), reverse=True)
    roots = [(prefix.rstrip("/") + "/", directory.resolve()) for prefix, directory in ordered]

    def route(request: HttpRequest) -> HttpResponse | None:
        if request.method not in {"GET", "HEAD"}:
            return None
        for prefix, root in roots:
            if request.path.startswith(prefix):
                found = _file(root, request.path[len(prefix) :] or "index.html")
                if found is not None:
                    from_user = user_page and prefix == "/"
                    return replace(found, policy=_USER_POLICY) if from_user else found
        return None

    return route


def _file(root: Path, name: str) -> HttpResponse | None:
    if "\0" in name:
        return None
    path = (root / name).resolve()
    if not path.is_relative_to(root) or not path.is_file():
        return None
    if path.stat().st_size > ASSET_BYTES_MAX:
        return problem_response(
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"{name} is too large to serve"
        )
    kind = _TYPES.get(path.suffix) or mimetypes.guess_type(name)[0] or "application/octet-stream"
    if kind.startswith("text/"):
        kind += "; charset=utf-8"
    return HttpResponse(HTTPStatus.OK, path.read_bytes(), kind)
