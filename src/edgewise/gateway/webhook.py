"""HTTP as a sink: rows are posted to an address, as JSON lines, and are delivered with its 2xx.

Each request has an `Idempotency-Key` of the stream and its last offset. Effectively once needs a
receiver that knows such keys (our own HTTP door does) and sends one row per request: after a crash
a larger request could begin with the same row and end with another, under another key.
"""

from __future__ import annotations

import asyncio
import http.client
from typing import Any
from urllib.parse import urlsplit

from edgewise.event.schema import Schema
from edgewise.gateway.drain import Cursor, Drain, Message, Undelivered
from edgewise.gateway.spec import Guarantee, SinkSpec
from edgewise.log.api import LogReader

ROWS_MAX = 500  # in one request
TIMEOUT_S = 10.0
ANSWER_BYTES_MAX = 4096
_TYPES = {
    "json": "application/x-ndjson",
    "csv": "text/csv",
    "text": "text/plain",
}


class HttpSink:
    def __init__(self, spec: SinkSpec, schema: Schema, reader: LogReader, cursor: Cursor) -> None:
        self._parts = urlsplit(spec.options["url"])
        self._prefix = spec.options["key"] or spec.stream
        once = spec.options["delivery"] == Guarantee.EFFECTIVELY_ONCE.value
        self._rows_max = 1 if once else ROWS_MAX
        self._headers = {"Content-Type": _TYPES[spec.map.type]}
        if spec.options["authorization"]:
            self._headers["Authorization"] = spec.options["authorization"]
        self._drain = Drain(spec, schema, reader, cursor)
        self.stats = self._drain.stats
        self._connection: http.client.HTTPConnection | None = None

    async def start(self) -> None:
        self._drain.start(self._deliver)

    async def stop(self) -> None:
        await self._drain.stop()
        self._drop()

    async def _deliver(self, messages: list[Message]) -> None:
        for first in range(0, len(messages), self._rows_max):
            await asyncio.to_thread(self._post, messages[first : first + self._rows_max])

    def _post(self, messages: list[Message]) -> None:
        body = b"".join(m.payload + b"\n" for m in messages)
        headers = {**self._headers, "Idempotency-Key": f"{self._prefix}/{messages[-1].offset}"}
        target = (self._parts.path or "/") + (f"?{self._parts.query}" if self._parts.query else "")
        try:
            connection = self._open()
            connection.request("POST", target, body, headers)
            answer = connection.getresponse()
            text = answer.read(ANSWER_BYTES_MAX)
        except (OSError, http.client.HTTPException) as bad:
            self._drop()
            raise Undelivered(f"{self._parts.netloc}: {bad}") from bad
        if answer.will_close or not answer.isclosed():
            self._drop()
        if not 200 <= answer.status < 300:
            said = text[:200].decode(errors="replace")
            raise Undelivered(f"{self._parts.netloc} answered {answer.status}: {said}")

    def _open(self) -> http.client.HTTPConnection:
        if self._connection is None:
            kind: Any = http.client.HTTPConnection
            if self._parts.scheme == "https":
                kind = http.client.HTTPSConnection
            self._connection = kind(self._parts.hostname, self._parts.port, timeout=TIMEOUT_S)
        return self._connection

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
