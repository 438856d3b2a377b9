"""Convert events to Arrow and back: one schema per stream, three system columns in front.

    _ts    int64   event time, ms
    _at    int64   capture time, us
    _kind  int8    EventKind: current, expired, an idle tick (attributes are null), or current with
                   more of the same chunk to come; a chunk has one capture time

`object` attributes are stored as JSON text: the log and Spark do not look inside them, and pay the
encoding once. Logs, engines, gateways and the edge use it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pyarrow as pa

from edgewise.event.schema import Attribute, Schema
from edgewise.event.types import AttrType

TS, AT, KIND = "_ts", "_at", "_kind"
SYSTEM_FIELDS = (
    pa.field(TS, pa.int64(), nullable=False),
    pa.field(AT, pa.int64(), nullable=False),
    pa.field(KIND, pa.int8(), nullable=False),
)
SYSTEM_COUNT = len(SYSTEM_FIELDS)

ARROW_TYPES: dict[AttrType, Any] = {
    AttrType.STRING: pa.string(),
    AttrType.INT: pa.int32(),
    AttrType.LONG: pa.int64(),
    AttrType.FLOAT: pa.float32(),
    AttrType.DOUBLE: pa.float64(),
    AttrType.BOOL: pa.bool_(),
    AttrType.OBJECT: pa.string(),
}
_TYPE_KEY = b"edgewise.type"
_encode, _decode = msgspec.json.encode, msgspec.json.decode


def to_column(values: Sequence[Any], kind: AttrType) -> Any:
    """Convert the Python values of one attribute to an Arrow array.

    ValueError or TypeError if one is of another type.
    """
    return pa.array(to_stored(values, kind), ARROW_TYPES[kind])


def to_stored(values: Sequence[Any], kind: AttrType) -> list[Any]:
    """Convert values to what `record_batch` takes: objects become JSON text."""
    if kind is AttrType.OBJECT:
        return [None if v is None else _encode_object(v) for v in values]
    return list(values)


def _encode_object(value: Any) -> str:
    """JSON text; keys of maps become text, as JSON has no others."""
    try:
        return _encode(value).decode()
    except TypeError:  # a key that is null or a bool
        return _encode(_spell_keys(value)).decode()


def _spell_keys(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            k if isinstance(k, str) else _encode(k).decode(): _spell_keys(v)
            for k, v in value.items()
        }
    return [_spell_keys(v) for v in value] if isinstance(value, list | tuple) else value


def from_value(value: Any, kind: AttrType) -> Any:
    return _decode(value) if kind is AttrType.OBJECT and value is not None else value


def from_column(column: Any, kind: AttrType) -> list[Any]:
    """The inverse of `to_column`."""
    values: list[Any] = column.to_pylist()
    return [from_value(v, kind) for v in values] if kind is AttrType.OBJECT else values


def to_arrow(schema: Schema) -> Any:
    """The Arrow schema of a stream; its metadata holds the name and the exact types."""
    fields = [
        pa.field(a.name, ARROW_TYPES[a.type], metadata={_TYPE_KEY: a.type.value})
        for a in schema.attributes
    ]
    return pa.schema([*SYSTEM_FIELDS, *fields], metadata={b"edgewise.stream": schema.name})


def from_arrow(schema: Any) -> Schema:
    """The inverse of `to_arrow`."""
    name = (schema.metadata or {}).get(b"edgewise.stream", b"").decode()
    attributes = tuple(
        Attribute(field.name, AttrType(field.metadata[_TYPE_KEY].decode()))
        for field in list(schema)[SYSTEM_COUNT:]
    )
    return Schema(name, attributes)


def record_batch(
    schema: Any, ts: list[int], at: list[int], kind: list[int], columns: list[list[Any]]
) -> Any:
    """Build a record batch of a `to_arrow` schema from columns of values; objects as text."""
    values = [ts, at, kind, *columns]
    arrays = [pa.array(v, type=f.type) for v, f in zip(values, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
