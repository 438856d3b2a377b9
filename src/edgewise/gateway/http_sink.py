"""Post rows to a URL as a sink: JSON lines, delivered when the answer is 2xx.

Each request has an `Idempotency-Key` of the stream and its last offset. Effectively-once delivery
needs a receiver that knows such keys (our own ingest endpoint does) and sends one row per request:
after a crash a larger request could begin with the same row and end with another, and so have
another key. Loaded by `connectors`.
"""

from __future__ import annotations

import asyncio
import base64
import http.client
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from edgewise.event.schema import Schema
from edgewise.gateway.sink_reader import Message, SinkCursor, SinkReader, Undelivered
from edgewise.gateway.spec import Guarantee, SinkSpec
from edgewise.log.api import LogReader

TIMEOUT_S = 10.0
ANSWER_BYTES_MAX = 4096
_TYPES = {
    "json": "application/x-ndjson",
    "csv": "text/csv",
    "text": "text/plain",
    "xml": "application/xml",
    "keyvalue": "application/json",
}
_LINES = ("json", "csv", "text")
_HEADER = re.compile(r"""'([^':]+):([^']*)'""")


class HttpSink:
    def __init__(
        self, spec: SinkSpec, schema: Schema, reader: LogReader, cursor: SinkCursor
    ) -> None:
        self._parts = urlsplit(spec.options["url"])
        self._prefix = spec.options["key"] or spec.stream
        once = spec.options["delivery"] == Guarantee.EFFECTIVELY_ONCE.value
        whole = once or spec.map.type not in _LINES  # a request is one document, not lines
        self._rows_max = 1 if whole else int(spec.options["rows"])
        self._method = spec.options["method"]
        self._headers = {"Content-Type": _TYPES[spec.map.type], **_build_headers(spec.options)}
        self._reader = SinkReader(spec, schema, reader, cursor)
        self.stats = self._reader.stats
        self._connection: http.client.HTTPConnection | None = None

    async def start(self) -> None:
        self._reader.start(self._deliver)

    async def stop(self) -> None:
        await self._reader.stop()
        self._disconnect()

    async def _deliver(self, messages: list[Message]) -> None:
        for first in range(0, len(messages), self._rows_max):
            await asyncio.to_thread(self._post, messages[first : first + self._rows_max])

    def _post(self, messages: list[Message]) -> None:
        body = b"".join(m.payload + b"\n" for m in messages)
        status, text = self.exchange(body, messages[-1].offset, ANSWER_BYTES_MAX)
        if not 200 <= status < 300:
            excerpt = text[:200].decode(errors="replace")
            raise Undelivered(f"{self._parts.netloc} answered {status}: {excerpt}")

    def exchange(self, body: bytes, offset: int, bytes_max: int) -> tuple[int, bytes]:
        """One request and its answer, of which at most `bytes_max` are read."""
        headers = {**self._headers, "Idempotency-Key": f"{self._prefix}/{offset}"}
        target = (self._parts.path or "/") + (f"?{self._parts.query}" if self._parts.query else "")
        try:
            connection = self._open()
            connection.request(self._method, target, body, headers)
            answer = connection.getresponse()
            text = answer.read(bytes_max)
        except (OSError, http.client.HTTPException) as error:
            self._disconnect()
            raise Undelivered(f"{self._parts.netloc}: {error}") from error
        if answer.will_close or not answer.isclosed():
            self._disconnect()
        return answer.status, text

    def _open(self) -> http.client.HTTPConnection:
        if self._connection is None:
            kind: Any = http.client.HTTPConnection
            if self._parts.scheme == "https":
                kind = http.client.HTTPSConnection
            self._connection = kind(self._parts.hostname, self._parts.port, timeout=TIMEOUT_S)
        return self._connection

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _build_headers(options: Mapping[str, str]) -> dict[str, str]:
    headers: dict[str, str] = {}
    for name, value in _HEADER.findall(options["headers"]):
        headers[name.strip()] = value.strip()
    if options["username"]:
        login = f"{options['username']}:{options['password']}".encode()
        headers["Authorization"] = "Basic " + base64.b64encode(login).decode()
    if options["authorization"]:
        headers["Authorization"] = options["authorization"]
    return headers
