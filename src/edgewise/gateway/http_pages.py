"""Build the pages of the ingest server: its streams, its description for machines, its metrics.

Apart from `http` so that a page is added here and nowhere else. A page is built when it is asked
for. Used by `http`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import msgspec

from edgewise.event.schema import Schema
from edgewise.gateway.http_responses import JSON, refuse_method, refuse_path
from edgewise.gateway.ingest_config import IngestConfig
from edgewise.gateway.openapi import build_openapi
from edgewise.gateway.refusal import Refusal

_TEXT = b"text/plain; version=0.0.4; charset=utf-8"

LIVE_PAGE = "/livez"
HEALTH_PAGES = frozenset({LIVE_PAGE, "/readyz", "/healthz"})  # for callers without a token too
ALIVE = b'{"status":"ok"}'

Page = tuple[bytes, Callable[[], bytes]]  # content type, body
Health = Callable[[], tuple[bool, bytes]]  # ready, body


@dataclass(frozen=True, slots=True)
class Response:
    status: int
    kind: bytes
    body: bytes


def choose_page(
    path: str, method: str, pages: Mapping[str, Page], health: Health
) -> Response | Refusal:
    """The page at the path, built now, or why there is none."""
    page = pages.get(path)
    if page is None and path not in HEALTH_PAGES:
        return refuse_path(path)
    if method not in {"GET", "HEAD"}:
        return refuse_method(method, b"GET, HEAD")
    if page is not None:
        kind, make = page
        return Response(200, kind, make())
    ready, body = (True, ALIVE) if path == LIVE_PAGE else health()
    return Response(200 if ready else 503, JSON, body)


def build_pages(
    schemas: Mapping[str, Schema], config: IngestConfig, render_metrics: Callable[[], str]
) -> dict[str, Page]:
    """The pages by path; a caller needs a token for each where the node has a key."""
    return {
        "/streams": (JSON, partial(_list_streams, schemas)),
        "/openapi.json": (JSON, partial(_describe_api, schemas, config)),
        "/metrics": (_TEXT, lambda: render_metrics().encode()),
    }


def _list_streams(schemas: Mapping[str, Schema]) -> bytes:
    listed = [
        {
            "stream": name,
            "attributes": [{"name": a.name, "type": a.type.value} for a in schema.attributes],
        }
        for name, schema in sorted(schemas.items())
    ]
    return msgspec.json.encode({"streams": listed})


def _describe_api(schemas: Mapping[str, Schema], config: IngestConfig) -> bytes:
    return msgspec.json.encode(
        build_openapi(dict(schemas), config.limits, config.paths, config.maps)
    )
