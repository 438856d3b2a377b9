"""Who may send events: the token that a request brings, and what an authority says to it. Pure.

    Authorization: Bearer <token>              every request
    GET ...?access_token=<token>               WebSockets too: a browser can set no header there

The door knows no keys: it asks the `Authority` it was given, for every request and every frame of
a WebSocket, so that a token that expires ends what it allowed. An authority must be quick.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import parse_qs

from edgewise.gateway.refusal import Refused, refused_body

# Token, and the stream that is asked for ('' for pages about all of them). None: it may.
Authority = Callable[[str, str], Refused | None]
_BEARER = "bearer "
CHALLENGE = ((b"www-authenticate", b"Bearer"),)


def token_of(scope: Mapping[str, Any]) -> str:
    """'' where there is none."""
    for name, value in scope["headers"]:
        if name == b"authorization":
            said: str = value.decode("latin-1")
            return said[len(_BEARER) :].strip() if said.lower().startswith(_BEARER) else ""
    if scope["type"] == "websocket":
        query = parse_qs(scope.get("query_string", b"").decode("latin-1"))
        return str(query.get("access_token", [""])[0])
    return ""


def unknown_caller(reason: str) -> Refused:
    fault = refused_body(401, "unauthenticated", reason, at="Authorization")
    return Refused(401, "unauthenticated", fault.message, fault.problems, headers=CHALLENGE)


def not_permitted(reason: str) -> Refused:
    return refused_body(403, "forbidden", reason, at="Authorization")
