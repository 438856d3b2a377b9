"""Read the token of a request, and refuse callers that may not send. Pure.

    Authorization: Bearer <token>              every request
    GET ...?access_token=<token>               WebSockets too: a browser can set no header there

The ingest server has no keys: it asks the `Authorizer` it was given, for every request and every
frame of a WebSocket, so that an expired token stops a connection that is already open. An
authorizer must be fast. Used by `http` and by `node.ingest_auth`, which is the authorizer of a
node with tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import parse_qs

from edgewise.gateway.quotas import Publisher
from edgewise.gateway.refusal import Refusal, refuse_request

# Arguments: the token, and the stream ('' for pages about all streams).
Authorizer = Callable[[str, str], Refusal | Publisher]
_BEARER = "bearer "
CHALLENGE = ((b"www-authenticate", b"Bearer"),)


def read_token(scope: Mapping[str, Any]) -> str:
    """'' where the request has none."""
    for name, value in scope["headers"]:
        if name == b"authorization":
            header: str = value.decode("latin-1")
            return header[len(_BEARER) :].strip() if header.lower().startswith(_BEARER) else ""
    if scope["type"] == "websocket":
        query = parse_qs(scope.get("query_string", b"").decode("latin-1"))
        return str(query.get("access_token", [""])[0])
    return ""


def refuse_caller(reason: str) -> Refusal:
    refusal = refuse_request(401, "unauthenticated", reason, at="Authorization")
    return Refusal(401, "unauthenticated", refusal.message, refusal.problems, headers=CHALLENGE)


def refuse_stream(reason: str) -> Refusal:
    return refuse_request(403, "forbidden", reason, at="Authorization")
