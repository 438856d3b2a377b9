"""Answer on-demand queries over HTTP: `POST /query` with the text of a query as the body.

    POST /query   200 {"columns": [...], "rows": [[...], ...], "as_of": ms}

Where the node asks for tokens, the claim `ingest` must hold `$query` or `#`: what an app holds is
not for everybody who may send it events. The node gives the function that answers; it runs in a
thread, a few at a time, so that no query delays ingest. Used by `http`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from edgewise.errors import AppError, EdgewiseError
from edgewise.gateway.http_responses import JSON, Send, refuse_method, refuse_path, respond
from edgewise.gateway.refusal import Refusal, refuse_request

QUERY_PAGE = "/query"
QUERY_RIGHT = "$query"  # names that begin with $ are no streams of an app
QUERY_BYTES_MAX = 64 * 1024
QUERIES_MAX = 2  # at a time

Receive = Callable[[], Awaitable[dict[str, Any]]]
AnswerQuery = Callable[[str], bytes]


class QueryEndpoint:
    """`answer` is the node's; without one there is nothing to ask."""

    def __init__(self, answer: AnswerQuery | None = None) -> None:
        self._answer = answer
        self._running = 0

    async def respond(
        self, scope: dict[str, Any], receive: Receive, send: Send, caller: object
    ) -> Refusal | None:
        """Send the answer, or return why there is none."""
        if isinstance(caller, Refusal):
            return caller
        if self._answer is None:
            return refuse_path(QUERY_PAGE)
        if scope["method"] != "POST":
            return refuse_method(scope["method"], b"POST")
        text = await _read_text(receive)
        if isinstance(text, Refusal):
            return text
        if self._running >= QUERIES_MAX:
            return refuse_request(503, "busy", f"{QUERIES_MAX} queries run already; try again")
        self._running += 1
        try:
            body = await asyncio.to_thread(self._answer, text)
        except AppError as error:
            return refuse_request(400, "query", str(error), at="body")
        except EdgewiseError as error:
            return refuse_request(409, "state", str(error))
        finally:
            self._running -= 1
        await respond(send, 200, body, JSON)
        return None


async def _read_text(receive: Receive) -> str | Refusal:
    body = b""
    more = True
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = bool(message.get("more_body"))
        if len(body) > QUERY_BYTES_MAX:
            reason = f"a query has at most {QUERY_BYTES_MAX} bytes"
            return refuse_request(413, "too_large", reason, at="body")
    try:
        return body.decode()
    except UnicodeDecodeError:
        return refuse_request(400, "query", "a query is UTF-8 text", at="body")
