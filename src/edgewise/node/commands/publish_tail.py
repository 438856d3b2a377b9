"""Publish events to a node and tail its topics, from the command line.

`edgewise publish` and `edgewise tail`: a first look at a running node without a program.
"""

from __future__ import annotations

import itertools
import socket
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec

from edgewise.client.publisher import publisher
from edgewise.client.sync import connect
from edgewise.errors import SetupError
from edgewise.wire.view import Removed, Staled, Stopped, Update

CONNECT_S = 5


def publish(
    urls: str | Sequence[str],
    stream: str,
    lines: Iterable[bytes],
    token: str = "",
    ca: Path | None = None,
    *,
    producer: str = "",
) -> int:
    """Post JSON lines in batches; returns how many events are durable.

    With a `producer`, the same lines sent again, after a failure or by mistake, count once.
    """
    with publisher(urls, producer, token=token, ca=ca) as out:
        return out.send_lines(stream, lines)


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
