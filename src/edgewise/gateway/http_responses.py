"""Write the responses of the ingest server: refused paths and methods, and any body.

Apart from `http` so that the routes can be read without ASGI's messages. Used by `http`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from edgewise.gateway.refusal import Refusal, refuse_request

Send = Callable[[dict[str, Any]], Awaitable[None]]


def refuse_path(path: str) -> Refusal:
    reason = f"nothing at '{path[:100]}'; events go to POST /streams/<stream>"
    return refuse_request(404, "not_found", reason, at="path")


def refuse_method(method: str, allowed: bytes) -> Refusal:
    reason = f"{method} is not possible here; use {allowed.decode()}"
    fault = refuse_request(405, "method", reason, at="method")
    return Refusal(405, "method", fault.message, fault.problems, headers=((b"allow", allowed),))


async def respond(
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
