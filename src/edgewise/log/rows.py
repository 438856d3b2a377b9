"""Fit record batches to the schema of a log, slice, measure and encode them. Pure.

Checksums and time ranges are computed here, before any lock is held and maybe in another process,
so that the writer only writes. Writers and readers of all logs use it.
"""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
from zlib_ng.zlib_ng import crc32

from edgewise.errors import LogError
from edgewise.event.arrow import SYSTEM_COUNT, TS
from edgewise.log.api import CLOCK_NONE, EncodedBatch, LogBatch
from edgewise.log.frame import BODY_BYTES_MAX, TS_MAX

DEFAULT_KEY = b"edgewise.default"


def describe_difference(stored: Any, given: Any) -> str:
    """Why rows of schema `given` do not fit a log of schema `stored`; '' if they fit."""
    for at, field in enumerate(stored):
        if at >= len(given):
            return f"attribute '{field.name}' {field.type} is missing"
        other = given.field(at)
        if other.name != field.name:
            return f"attribute {at - SYSTEM_COUNT + 1} is '{other.name}', not '{field.name}'"
        if other.type != field.type:
            return f"attribute '{field.name}' is {other.type}, not {field.type}"
        key = b"edgewise.type"
        mine, theirs = (f.metadata or {} for f in (field, other))
        if key in mine and key in theirs and mine[key] != theirs[key]:
            return f"attribute '{field.name}' is {theirs[key].decode()}, not {mine[key].decode()}"
    if len(given) > len(stored):
        return f"attribute '{given.field(len(stored)).name}' is unknown to the log"
    return ""


def fit_to_schema(rows: Any, schema: Any) -> Any:
    """Return the rows under exactly this schema; LogError if they have another one."""
    if not rows.schema.equals(schema):
        difference = describe_difference(schema, rows.schema)
        if difference:
            raise LogError(f"these rows do not fit the log: {difference}")
        rows = pa.RecordBatch.from_arrays(rows.columns, schema=schema)
    for at in range(SYSTEM_COUNT):
        if rows.column(at).null_count:
            raise LogError(f"these rows do not fit the log: '{schema.field(at).name}' is null")
    return rows


def encode_batches(rows: Any, schema: Any, rows_max: int) -> list[EncodedBatch]:
    """Encode rows for a log with this schema: at least one batch, also for no rows."""
    rows = fit_to_schema(rows, schema)
    starts = range(0, max(rows.num_rows, 1), rows_max)
    return [_encode(rows.slice(at, rows_max) if len(starts) > 1 else rows) for at in starts]


def _encode(rows: Any) -> EncodedBatch:
    # Small things first: the copy and its checksum evict all code from the processor's caches.
    count, (ts_min, ts_max) = rows.num_rows, _find_time_range(rows.column(0))
    body = rows.serialize()
    if body.size > BODY_BYTES_MAX:
        raise LogError(
            f"a batch of {count} rows takes {body.size} bytes, a log takes "
            f"{BODY_BYTES_MAX}; append fewer rows at once"
        )
    return EncodedBatch(body, crc32(body), count, ts_min, ts_max)


def _find_time_range(times: Any) -> tuple[int, int]:
    if len(times) == 1:  # a single event must not wait for numpy
        return (only := times[0].as_py()), only
    if not len(times):
        return TS_MAX, CLOCK_NONE
    # After a sync all code is cold: this takes a third of what to_numpy, min and max take.
    values = np.frombuffer(times.buffers()[1], np.int64, len(times), 8 * times.offset)
    return values.item(values.argmin()), values.item(values.argmax())


def slice_batch(batch: LogBatch, start: int, end: int) -> LogBatch:
    """The part of a stored batch that lies in offsets `start` up to and without `end`."""
    first = max(start, batch.first)
    skip, count = first - batch.first, min(end - first, batch.first + batch.rows.num_rows - first)
    if not skip and count == batch.rows.num_rows:
        return batch
    clock = compute_clock(batch.rows, skip, batch.clock_before)
    return LogBatch(first, clock, batch.rows.slice(skip, count))


def read_default(field: Any) -> Any:
    """The value of an attribute in rows older than it; null if no default was given."""
    stored = (field.metadata or {}).get(DEFAULT_KEY)
    return None if stored is None else msgspec.json.decode(stored)


def read_defaults(schema: Any) -> dict[str, Any]:
    """The defaults of all attributes that were added with one."""
    return {f.name: read_default(f) for f in schema if DEFAULT_KEY in (f.metadata or {})}


def add_defaults(schema: Any, defaults: dict[str, Any]) -> Any:
    """Add to the schema the defaults of new attributes, which readers fill in."""
    for name, value in defaults.items():
        at = schema.get_field_index(name)
        if at < SYSTEM_COUNT:
            raise LogError(f"there is no attribute '{name}' to give a default")
        field = schema.field(at)
        pa.scalar(value, field.type)  # refuses a default of another type
        metadata = {**(field.metadata or {}), DEFAULT_KEY: msgspec.json.encode(value)}
        schema = schema.set(at, field.with_metadata(metadata))
    return schema


def evolve_schema(location: object, stored: Any, given: Any, defaults: dict[str, Any]) -> Any:
    """The schema to write: attributes may be added at the end, each with a default."""
    added = list(given)[len(stored) :]
    shared = given
    for _ in added:
        shared = shared.remove(len(shared) - 1)
    difference = describe_difference(stored, shared)
    if difference:
        raise LogError(
            f"{location}: the log has another schema: {difference}; attributes can be added at "
            "the end, nothing else"
        )
    for field in added:
        if field.name not in defaults:
            raise LogError(
                f"{location}: the log has another schema: attribute '{field.name}' is new; give "
                "it a default for the events that are there, in an app with "
                f"@default({field.name}='...') before the stream"
            )
    schema = stored
    for field in added:
        schema = schema.append(field)
    return add_defaults(schema, {f.name: defaults[f.name] for f in added})


def convert_to_schema(rows: Any, schema: Any) -> Any:
    """Convert rows of an older or newer schema: fill in defaults, drop unknown attributes."""
    if rows.schema.equals(schema):
        return rows
    arrays = []
    for field in schema:
        at = rows.schema.get_field_index(field.name)
        missing = pa.scalar(read_default(field), field.type)
        arrays.append(rows.column(at) if at >= 0 else pa.repeat(missing, rows.num_rows))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def compute_clock(rows: Any, count: int, clock_before: int) -> int:
    """The clock after the first `count` rows of a batch."""
    if count <= 0:
        return clock_before
    times = rows.column(rows.schema.get_field_index(TS)).slice(0, count).to_numpy()
    return max(clock_before, int(times.max()))
