"""Write the responses of the ingest server: refused paths and methods, and any body.

Apart from `http` so that the routes can be read without ASGI's messages. Used by `http`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from edgewise.gateway.refusal import Refusal, refuse_request

Send = Callable[[dict[str, Any]], Awaitable[None]]
JSON = b"application/json"
Headers = list[tuple[bytes, bytes]]
# Nothing here is a page: no browser may guess a type, frame it, run it or keep it.
SECURITY_HEADERS: Headers = [
    (b"x-content-type-options", b"nosniff"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
]


def add_headers(send: Send, headers: Headers) -> Send:
    """Send responses with further headers."""
    if not headers:
        return send

    async def send_more(message: dict[str, Any]) -> None:
        if message["type"] == "http.response.start":
            message = message | {"headers": [*message["headers"], *headers]}
        await send(message)

    return send_more


def refuse_path(path: str) -> Refusal:
    reason = f"nothing at '{path[:100]}'; events go to POST /streams/<stream>"
    return refuse_request(404, "not_found", reason, at="path")


def refuse_method(method: str, allowed: bytes) -> Refusal:
    reason = f"{method} is not possible here; use {allowed.decode()}"
    fault = refuse_request(405, "method", reason, at="method")
    return Refusal(405, "method", fault.message, fault.problems, headers=((b"allow", allowed),))


async def refuse_websocket(send: Send, why: Refusal) -> None:
    """Answer the handshake; before it is accepted it is a request like any other."""
    body = msgspec.json.encode(why.to_json())
    headers = [(b"content-type", JSON), (b"content-length", str(len(body)).encode())]
    headers += [*SECURITY_HEADERS, *list_headers(why)]
    await send({"type": "websocket.http.response.start", "status": why.status, "headers": headers})
    await send({"type": "websocket.http.response.body", "body": body})


def list_headers(why: Refusal) -> Headers:
    retry = [(b"retry-after", str(why.retry_after_s).encode())] if why.retry_after_s else []
    return [*why.headers, *retry]


async def respond(
    send: Send,
    status: int,
    body: bytes,
    kind: bytes,
    headers: Headers | None = None,
    *,
    head: bool = False,
    last: bool = True,
) -> None:
    length = str(len(body)).encode()
    all_headers = [(b"content-type", kind), (b"content-length", length), *SECURITY_HEADERS]
    all_headers += headers or []
    await send({"type": "http.response.start", "status": status, "headers": all_headers})
    await send(
        {"type": "http.response.body", "body": b"" if head else body, "more_body": not last}
    )
