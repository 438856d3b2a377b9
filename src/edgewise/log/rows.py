"""Record batches on their way into a log: fit to its schema, cut, measured, serialised. No I/O."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
from zlib_ng.zlib_ng import crc32

from edgewise.errors import LogError
from edgewise.event.arrow import SYSTEM_COUNT, TS
from edgewise.log.api import CLOCK_NONE, LogBatch, Part
from edgewise.log.frame import BODY_BYTES_MAX, TS_MAX

DEFAULT_KEY = b"edgewise.default"


def schema_difference(stored: Any, given: Any) -> str:
    """What keeps rows of schema `given` out of a log of schema `stored`; '' when they fit."""
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


def fitted(rows: Any, schema: Any) -> Any:
    """The same rows under exactly this schema; LogError when they are of another one."""
    if not rows.schema.equals(schema):
        difference = schema_difference(schema, rows.schema)
        if difference:
            raise LogError(f"these rows do not fit the log: {difference}")
        rows = pa.RecordBatch.from_arrays(rows.columns, schema=schema)
    for at in range(SYSTEM_COUNT):
        if rows.column(at).null_count:
            raise LogError(f"these rows do not fit the log: '{schema.field(at).name}' is null")
    return rows


def parts_of(rows: Any, schema: Any, rows_max: int) -> list[Part]:
    """Rows as a log of files with this schema keeps them: at least one part, also for no rows."""
    rows = fitted(rows, schema)
    cuts = range(0, max(rows.num_rows, 1), rows_max)
    return [_part(rows.slice(at, rows_max) if len(cuts) > 1 else rows) for at in cuts]


def _part(rows: Any) -> Part:
    # First what is small: the copy and its checksum push all code out of the processor's caches.
    count, (ts_min, ts_max) = rows.num_rows, _range(rows.column(0))
    body = rows.serialize()
    if body.size > BODY_BYTES_MAX:
        raise LogError(
            f"a batch of {count} rows takes {body.size} bytes, a log takes "
            f"{BODY_BYTES_MAX}; append fewer rows at once"
        )
    return Part(body, crc32(body), count, ts_min, ts_max)


def _range(times: Any) -> tuple[int, int]:
    if len(times) == 1:  # a lonely event must not wait for numpy
        return (only := times[0].as_py()), only
    if not len(times):
        return TS_MAX, CLOCK_NONE
    # Right behind a sync all code is cold: this is a third of what to_numpy, min and max take.
    values = np.frombuffer(times.buffers()[1], np.int64, len(times), 8 * times.offset)
    return values.item(values.argmin()), values.item(values.argmax())


def cut_batch(batch: LogBatch, start: int, end: int) -> LogBatch:
    """The part of a stored batch that lies in offsets `start` up to and without `end`."""
    first = max(start, batch.first)
    skip, count = first - batch.first, min(end - first, batch.first + batch.rows.num_rows - first)
    if not skip and count == batch.rows.num_rows:
        return batch
    clock = clock_within(batch.rows, skip, batch.clock_before)
    return LogBatch(first, clock, batch.rows.slice(skip, count))


def default_of(field: Any) -> Any:
    """What a row from before the attribute was added has for it; null if nothing was said."""
    said = (field.metadata or {}).get(DEFAULT_KEY)
    return None if said is None else msgspec.json.decode(said)


def defaults_in(schema: Any) -> dict[str, Any]:
    """Of the attributes that were added with one."""
    return {f.name: default_of(f) for f in schema if DEFAULT_KEY in (f.metadata or {})}


def with_defaults(schema: Any, defaults: dict[str, Any]) -> Any:
    """The schema with the defaults of attributes that were added, which readers fill in."""
    for name, value in defaults.items():
        at = schema.get_field_index(name)
        if at < SYSTEM_COUNT:
            raise LogError(f"there is no attribute '{name}' to give a default")
        field = schema.field(at)
        pa.scalar(value, field.type)  # refuses a default of another type
        said = {**(field.metadata or {}), DEFAULT_KEY: msgspec.json.encode(value)}
        schema = schema.set(at, field.with_metadata(said))
    return schema


def as_schema(rows: Any, schema: Any) -> Any:
    """Rows of an older or younger schema as a reader wants them: defaults filled in, rest left."""
    if rows.schema.equals(schema):
        return rows
    arrays = []
    for field in schema:
        at = rows.schema.get_field_index(field.name)
        missing = pa.scalar(default_of(field), field.type)
        arrays.append(rows.column(at) if at >= 0 else pa.repeat(missing, rows.num_rows))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def clock_within(rows: Any, count: int, clock_before: int) -> int:
    """The clock after the first `count` rows of a batch."""
    if count <= 0:
        return clock_before
    times = rows.column(rows.schema.get_field_index(TS)).slice(0, count).to_numpy()
    return max(clock_before, int(times.max()))
