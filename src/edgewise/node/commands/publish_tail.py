"""Publish events to a node and tail its topics, from the command line.

`edgewise publish` and `edgewise tail`: a first look at a running node without a program.
"""

from __future__ import annotations

import http.client
import itertools
import socket
import ssl
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import msgspec

from edgewise.client.sync import connect
from edgewise.errors import BadEvent, SetupError
from edgewise.wire.view import Removed, Staled, Stopped, Update

BATCH_LINES = 1_000
TIMEOUT_S = 30
CONNECT_S = 5


def publish(
    url: str, stream: str, lines: Iterable[bytes], token: str = "", ca: Path | None = None
) -> int:
    """Post JSON lines in batches; returns how many events are durable."""
    parts = urlsplit(url)
    connection: http.client.HTTPConnection
    if parts.scheme == "https":
        context = ssl.create_default_context(cafile=ca)
        connection = http.client.HTTPSConnection(
            parts.hostname or "", parts.port, timeout=TIMEOUT_S, context=context
        )
    else:
        connection = http.client.HTTPConnection(
            parts.hostname or "", parts.port, timeout=TIMEOUT_S
        )
    headers = {"Content-Type": "application/x-ndjson"}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    non_empty = (line for line in lines if line.strip())
    accepted = 0
    try:
        while batch := list(itertools.islice(non_empty, BATCH_LINES)):
            connection.request(
                "POST",
                f"/streams/{quote(stream, safe='')}",
                b"".join(line.rstrip(b"\n") + b"\n" for line in batch),
                headers,
            )
            answer = connection.getresponse()
            body = answer.read()
            if answer.status != http.HTTPStatus.OK:
                before = f"after {accepted} accepted events: " if accepted else ""
                raise BadEvent(f"{before}{body.decode(errors='replace')}", index=accepted)
            accepted += msgspec.json.decode(body)["accepted"]
    except OSError as error:
        raise SetupError(f"no node answers at {url}: {error}; is `edgewise run` up?") from None
    finally:
        connection.close()
    return accepted


def tail(
    url: str, selector: str, count: int = 0, token: str = "", ca: Path | None = None
) -> Iterator[bytes]:
    """A JSON line for each update, removal and stale topic; ends after `count`, 0: never."""
    _require_listener(url)
    with connect(url, token=token, ca=ca, client="edgewise tail") as edge:
        events = (e for e in edge.subscribe(selector) if not isinstance(e, Stopped))
        for event in itertools.islice(events, count or None):
            yield msgspec.json.encode(_describe(event))


def _require_listener(url: str) -> None:
    """SetupError where nothing listens: a client would keep trying without a word."""
    parts = urlsplit(url)
    port = parts.port or (443 if parts.scheme == "wss" else 80)
    try:
        socket.create_connection((parts.hostname or "", port), CONNECT_S).close()
    except OSError as error:
        raise SetupError(f"no node answers at {url}: {error}; is `edgewise run` up?") from None


def _describe(event: Update | Removed | Staled) -> dict[str, Any]:
    if isinstance(event, Update):
        meta = event.meta
        details = {"at_us": meta.at_us, "count": meta.count, "how": meta.how.name.lower()}
        return {"topic": event.path, "value": event.value, **details}
    if isinstance(event, Removed):
        return {"topic": event.path, "value": None, "gone": event.reason.name.lower()}
    return {"topic": event.path, "stale_since_us": event.since_us}
