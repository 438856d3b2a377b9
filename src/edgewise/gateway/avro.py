"""Encode and decode one Avro datum of the schema that the annotation names.

Object container files are refused: they bring a schema of the sender's choice, and a schema can be
written such that decoding a few bytes never ends. Used by `mappers` and `renderers`, which load it
only for apps with Avro.
"""

from __future__ import annotations

import io
import json
from typing import Any

import fastavro
from fastavro.schema import SchemaParseException, UnknownType

from edgewise.gateway.spec import BadSpec


class AvroCodec:
    """BadSpec where the schema cannot be used."""

    def __init__(self, schema: str) -> None:
        if not schema:
            raise BadSpec(
                '@map(type=\'avro\') needs schema="""...""", the Avro schema as JSON', "schema"
            )
        try:
            self._schema = fastavro.parse_schema(json.loads(schema))
        except (ValueError, SchemaParseException, UnknownType, KeyError, TypeError) as error:
            raise BadSpec(f"the Avro schema cannot be read: {error}", "schema") from None

    def read(self, payload: bytes) -> Any:
        """ValueError for anything that is not one datum of this schema."""
        source = io.BytesIO(payload)
        try:
            datum = fastavro.schemaless_reader(source, self._schema, None)
        except (EOFError, LookupError, TypeError, OverflowError, MemoryError) as error:
            raise ValueError(f"not Avro of the schema: {type(error).__name__} {error}") from None
        if source.tell() != len(payload):
            raise ValueError(f"{len(payload) - source.tell()} bytes too many after the datum")
        return datum

    def write(self, datum: dict[str, Any]) -> bytes:
        out = io.BytesIO()
        fastavro.schemaless_writer(out, self._schema, datum)
        return out.getvalue()
