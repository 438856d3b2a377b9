"""Publish events to whichever node is active: retry, fail over, keep order, never double.

    with publisher(["http://a:8006", "http://b:8006"], producer="sensor-7") as out:
        out.send("login_stream", [{"user": "ada"}])      # returns when the events are durable

Each batch has the idempotency key (producer, sequence). One batch is in flight: where its answer
did not come, the same batch goes with the same key to the next address, and the log, which all
nodes share, appends it once. So order is kept, at the price of a round trip per batch.

A program that starts again with the same producer must go on with the next sequence (`first`), or
choose another producer: batches with a known sequence are taken for repeats and not appended.
`edgewise publish` uses it.
"""

from __future__ import annotations

import http.client
import itertools
import random
import secrets
import ssl
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote, urlsplit

import msgspec

from edgewise.client.conversation import backoff_s
from edgewise.errors import BadEvent, SetupError

BATCH_EVENTS_MAX = 1_000
PATIENCE_S = 60.0  # until a batch is given up
ANSWER_S, ANSWER_ALONE_S = 5.0, 30.0  # until another address is tried; with one address
BACKOFF_STEPS_MAX = 2  # a second at most: a takeover is short
_LATER = frozenset({408, 429, 500, 502, 503, 504})  # not the events' fault: try again


@dataclass(frozen=True, slots=True)
class _Answer:
    status: int
    body: bytes


class EventPublisher:
    """Use `publisher`. Not thread-safe. `retries` counts batches that were sent again."""

    def __init__(
        self,
        urls: Sequence[str],
        producer: str,
        *,
        first: int = 0,
        token: str = "",
        ca: str | Path | None = None,
        patience_s: float = PATIENCE_S,
    ) -> None:
        if not urls:
            raise SetupError("a publisher needs the address of a node, such as http://host:8006")
        self.producer = producer
        self.sequence = first  # of the next batch
        self.retries = 0
        self._urls = tuple(urls)
        self._at = 0
        self._token = token
        self._trust = ssl.create_default_context(cafile=ca) if ca else None
        self._patience_s = patience_s
        self._reached = False
        self._connection: http.client.HTTPConnection | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self.close()

    def send(self, stream: str, events: Iterable[Any]) -> int:
        """Returns how many events are durable now: all of them. BadEvent where one is refused."""
        return self.send_lines(stream, map(msgspec.json.encode, events))

    def send_lines(self, stream: str, lines: Iterable[bytes]) -> int:
        """As `send`, of events that are JSON already."""
        left = (line.strip() for line in lines)
        non_empty = (line for line in left if line)
        accepted = 0
        while batch := list(itertools.islice(non_empty, BATCH_EVENTS_MAX)):
            answer = self._deliver(stream, b"".join(line + b"\n" for line in batch))
            if answer.status != http.HTTPStatus.OK:
                before = f"after {accepted} accepted events: " if accepted else ""
                reason = answer.body.decode(errors="replace")
                raise BadEvent(f"{before}{reason}", index=accepted)
            accepted += msgspec.json.decode(answer.body)["accepted"]
        return accepted

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _deliver(self, stream: str, body: bytes) -> _Answer:
        """The answer of a node that decided about the batch."""
        key = f"{self.producer}/{self.sequence}"
        # A single node that never answered is more likely a wrong address than a takeover.
        wait = self._reached or len(self._urls) > 1
        deadline_s = time.monotonic() + (self._patience_s if wait else 0.0)
        attempt = 0
        while True:
            try:
                answer = self._post(stream, body, key)
            except (OSError, http.client.HTTPException) as error:
                problem = f"no node answers at {self._urls[self._at]}: {error}"
            else:
                self._reached = True
                if answer.status not in _LATER:
                    self.sequence += 1
                    return answer
                problem = f"{self._urls[self._at]} answered {answer.status}"
            self.close()
            self._at = (self._at + 1) % len(self._urls)
            if time.monotonic() >= deadline_s:
                raise SetupError(
                    f"{problem}; is `edgewise run` up? Nothing of this batch is lost "
                    f"if it is sent again with the key {key}"
                )
            self.retries += 1
            if self._at == 0:  # every address was tried
                time.sleep(backoff_s(attempt, random.random()))  # noqa: S311 - spreads a herd
                attempt = min(attempt + 1, BACKOFF_STEPS_MAX)

    def _post(self, stream: str, body: bytes, key: str) -> _Answer:
        connection = self._open()
        headers = {"Content-Type": "application/x-ndjson", "Idempotency-Key": key}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        connection.request("POST", f"/streams/{quote(stream, safe='')}", body, headers)
        answer = connection.getresponse()
        return _Answer(answer.status, answer.read())

    def _open(self) -> http.client.HTTPConnection:
        if self._connection is None:
            parts = urlsplit(self._urls[self._at])
            host, timeout_s = parts.hostname or "", ANSWER_S
            if len(self._urls) == 1:
                timeout_s = ANSWER_ALONE_S
            if parts.scheme == "https":
                trust = self._trust or ssl.create_default_context()
                self._connection = http.client.HTTPSConnection(
                    host, parts.port, timeout=timeout_s, context=trust
                )
            else:
                self._connection = http.client.HTTPConnection(host, parts.port, timeout=timeout_s)
        return self._connection


def publisher(
    urls: str | Sequence[str],
    producer: str = "",
    *,
    first: int = 0,
    token: str = "",
    ca: str | Path | None = None,
    patience_s: float = PATIENCE_S,
) -> EventPublisher:
    """A publisher for nodes on one log; `urls` are their ingest addresses.

    `producer` is the name that the log remembers sequences by, `first` the sequence of the first
    batch; without a name a new one is chosen. `ca` is a file with certificates to trust. A batch
    that no node takes for `patience_s` raises SetupError.
    """
    named = producer or f"publisher-{secrets.token_hex(8)}"
    addresses = (urls,) if isinstance(urls, str) else tuple(urls)
    return EventPublisher(addresses, named, first=first, token=token, ca=ca, patience_s=patience_s)
