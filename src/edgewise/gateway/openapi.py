"""Describe the ingest endpoints as an OpenAPI 3.1 document, from the streams they serve. Pure.

Used by `http` for `/openapi.json`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from edgewise.event.schema import Schema
from edgewise.event.types import INT_MAX, INT_MIN, LONG_MAX, LONG_MIN, AttrType
from edgewise.gateway.admit import FRAMINGS, AdmissionLimits
from edgewise.gateway.json_body import FLOAT_MAX, TS_MAX_MS, Framing
from edgewise.gateway.producer import KEY_CHARS_MAX
from edgewise.gateway.spec import MapSpec

VERSION = "1"
_JSON_TYPES: dict[AttrType, dict[str, Any]] = {
    AttrType.STRING: {"type": ["string", "null"]},
    AttrType.INT: {"type": ["integer", "null"], "minimum": INT_MIN, "maximum": INT_MAX},
    AttrType.LONG: {"type": ["integer", "null"], "minimum": LONG_MIN, "maximum": LONG_MAX},
    AttrType.FLOAT: {"type": ["number", "null"], "minimum": -FLOAT_MAX, "maximum": FLOAT_MAX},
    AttrType.DOUBLE: {"type": ["number", "null"]},
    AttrType.BOOL: {"type": ["boolean", "null"]},
    AttrType.OBJECT: {},
}
_REFUSALS = {
    "400": "The body is malformed, or events do not fit the stream: nothing was accepted.",
    "404": "There is no such stream.",
    "408": "The body did not arrive in time.",
    "413": "The body is larger than the limit.",
    "415": "The type, charset or encoding of the body is not supported.",
    "429": "Too many bytes on their way to the log. Send again after Retry-After seconds.",
    "503": "The log has no room: nothing was accepted. Send again after Retry-After seconds.",
}


def build_openapi(
    streams: Mapping[str, Schema],
    limits: AdmissionLimits,
    paths: Mapping[str, str] | None = None,
    maps: Mapping[str, MapSpec] | None = None,
) -> dict[str, Any]:
    """One path per stream, so that a generated client has one typed call per stream.

    `paths` are further paths of streams, `maps` the mappings of those that have one.
    """
    further = {
        path: _describe_stream(name, limits, path, (maps or {}).get(path))
        for path, name in sorted((paths or {}).items())
    }
    return {
        "openapi": "3.1.0",
        "info": {"title": "Edgewise ingest", "version": VERSION},
        "paths": {
            **{f"/streams/{name}": _describe_stream(name, limits) for name in sorted(streams)},
            **further,
            "/streams": {
                "get": _describe_page("The streams and their attributes.", "application/json")
            },
            "/livez": {"get": _describe_page("The server answers.", "application/json")},
            **{
                path: {"get": _describe_page("All parts work; 503 if not.", "application/json")}
                for path in ("/readyz", "/healthz")
            },
            "/metrics": {"get": _describe_page("Counters for Prometheus.", "text/plain")},
        },
        "components": {
            "schemas": {
                "Accepted": _ACCEPTED,
                "Refused": _REFUSED,
                **{
                    f"stream.{name}": _describe_event(schema)
                    for name, schema in sorted(streams.items())
                },
            }
        },
    }


def _describe_page(text: str, kind: str) -> dict[str, Any]:
    return {"responses": {"200": {"description": text, "content": {kind: {}}}}}


def _refer(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}


def _describe_stream(
    name: str, limits: AdmissionLimits, path: str = "", mapping: MapSpec | None = None
) -> dict[str, Any]:
    one = _refer(f"stream.{name}")
    content: dict[str, Any] = {}
    for media, framing in FRAMINGS.items():
        if framing is Framing.JSON:
            content[media] = {"schema": {"oneOf": [one, {"type": "array", "items": one}]}}
        else:
            content[media] = {"schema": {"type": "string"}}
    if mapping is not None:
        content = {"*/*": {"schema": {"description": f"read as {mapping.type}"}}}
    key = {
        "name": "Idempotency-Key",
        "in": "header",
        "description": "producer/sequence, or any text of its own for one request",
        "schema": {"type": "string", "maxLength": KEY_CHARS_MAX},
    }
    refused = {"application/json": {"schema": _refer("Refused")}}
    responses: dict[str, Any] = {
        status: {"description": text, "content": refused} for status, text in _REFUSALS.items()
    }
    responses["200"] = {
        "description": "The events are in the log and would survive power loss.",
        "content": {"application/json": {"schema": _refer("Accepted")}},
    }
    return {
        "post": {
            "operationId": f"publish_{name}" + re.sub(r"\W+", "_", path),
            "summary": f"Events for {name}; all are accepted or none",
            "description": (
                f"At most {limits.body_bytes_max} bytes, after gzip too, and "
                f"{limits.events_max} events."
            ),
            "parameters": [key],
            "requestBody": {"required": True, "content": content},
            "responses": responses,
        }
    }


def _describe_event(schema: Schema) -> dict[str, Any]:
    plain = {
        "type": "object",
        "properties": {a.name: _JSON_TYPES[a.type] for a in schema.attributes},
        "required": list(schema.names),
        "additionalProperties": False,
    }
    if "data" in schema.names:
        return plain
    values = {
        "type": "array",
        "prefixItems": [_JSON_TYPES[a.type] for a in schema.attributes],
        "minItems": len(schema.attributes),
        "maxItems": len(schema.attributes),
    }
    envelope = {
        "type": "object",
        "properties": {
            "ts": {"type": "integer", "minimum": -TS_MAX_MS, "maximum": TS_MAX_MS},
            "data": {"oneOf": [plain, values]},
        },
        "required": ["data"],
        "additionalProperties": False,
    }
    return {"oneOf": [plain, envelope]}


_ACCEPTED = {
    "type": "object",
    "properties": {
        "accepted": {"type": "integer"},
        "first": {"type": "integer", "description": "offset of the first event"},
        "end": {"type": "integer", "description": "offset after the last event"},
        "duplicate": {"type": "boolean", "description": "sent before: nothing was appended"},
        "duplicates": {"type": "integer", "description": "events whose id the log already had"},
    },
    "required": ["accepted", "first", "end"],
}
_REFUSED = {
    "type": "object",
    "properties": {
        "error": {"type": "string"},
        "message": {"type": "string"},
        "accepted": {"const": 0},
        "problems": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "event": {"type": "integer"},
                    "field": {"type": "string"},
                    "reason": {"type": "string"},
                },
                "required": ["field", "reason"],
            },
        },
    },
    "required": ["error", "message", "accepted", "problems"],
}
