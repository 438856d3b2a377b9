"""A person's hands on a running node: events in, values out."""

from __future__ import annotations

import http.client
import itertools
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


def publish(
    url: str, stream: str, lines: Iterable[bytes], token: str = "", ca: Path | None = None
) -> int:
    """Posts JSON lines in batches; answers how many events are durable."""
    parts = urlsplit(url)
    connection: http.client.HTTPConnection
    if parts.scheme == "https":
        trust = ssl.create_default_context(cafile=ca)
        connection = http.client.HTTPSConnection(
            parts.hostname or "", parts.port, timeout=TIMEOUT_S, context=trust
        )
    else:
        connection = http.client.HTTPConnection(
            parts.hostname or "", parts.port, timeout=TIMEOUT_S
        )
    headers = {"Content-Type": "application/x-ndjson"}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    filled = (line for line in lines if line.strip())
    accepted = 0
    try:
        while batch := list(itertools.islice(filled, BATCH_LINES)):
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
    """One JSON line for each update, removal and silence; ends after `count`, 0 is never."""
    with connect(url, token=token, ca=ca, client="edgewise tail") as edge:
        events = (e for e in edge.subscribe(selector) if not isinstance(e, Stopped))
        for event in itertools.islice(events, count or None):
            yield msgspec.json.encode(_line(event))


def _line(event: Update | Removed | Staled) -> dict[str, Any]:
    if isinstance(event, Update):
        meta = event.meta
        place = {"at_us": meta.at_us, "count": meta.count, "how": meta.how.name.lower()}
        return {"topic": event.path, "value": event.value, **place}
    if isinstance(event, Removed):
        return {"topic": event.path, "value": None, "gone": event.reason.name.lower()}
    return {"topic": event.path, "stale_since_us": event.since_us}
