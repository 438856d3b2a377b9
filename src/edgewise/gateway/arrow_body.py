"""Read Arrow IPC streams as request bodies, and check their columns. Pure.

Columns need no parsing, so this is the fastest way in; types, ranges and JSON texts are checked
all the same. A body holds the stream's attributes by name, in any order, and may hold `_ts`
(int64, ms). Compressed buffers are refused: how large they unpack is only known too late. Used by
`admit` for bodies and by `source_writer` for Parquet files.
"""

from __future__ import annotations

import struct
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from edgewise.event.arrow import ARROW_TYPES, TS
from edgewise.event.schema import Attribute, Schema
from edgewise.event.types import AttrType
from edgewise.gateway.json_body import TS_MAX_MS, Fault

CONTENT_TYPE = "application/vnd.apache.arrow.stream"
BATCHES_MAX = 1024
# Field numbers of Arrow's Message, DictionaryBatch and RecordBatch; and what a message may be.
_HEADER_TYPE, _HEADER, _DATA, _COMPRESSION = 1, 2, 1, 3
_DICTIONARY_BATCH, _RECORD_BATCH = 2, 3
_COMPRESSED = "buffers are compressed; send them plain, or the whole body as gzip"


Times = list[int | None] | int  # as in `examine.Columns`


def read_arrow(body: bytes, schema: Schema) -> tuple[Times, list[Any]] | list[Fault]:
    """Event times (None: time of arrival) and one Arrow array per attribute, or the faults."""
    try:
        table = _read_batches(body)
        table.validate(full=True)
    except (pa.ArrowException, OSError, ValueError, struct.error, IndexError) as error:
        first = str(error).splitlines()[0] if str(error) else type(error).__name__
        return [Fault(-1, "body", f"not an Arrow stream: {first[:200]}")]
    return read_table(table, schema)


def read_table(table: Any, schema: Schema) -> tuple[Times, list[Any]] | list[Fault]:
    """As `read_arrow`, of a table."""
    faults = [
        Fault(-1, name, f"{schema.name} has no such attribute")
        for name in table.schema.names
        if name != TS and schema.index(name) < 0
    ]
    if len(set(table.schema.names)) < len(table.schema.names):
        return [*faults, Fault(-1, "body", "a column comes twice")]
    arrays = [_read_column(table, attribute, faults) for attribute in schema.attributes]
    ts = _read_times(table, faults)
    return faults or (ts, arrays)


def _read_batches(body: bytes) -> Any:
    batches: list[Any] = []
    messages = pa.ipc.MessageReader.open_stream(body)
    first = next(messages, None)
    if first is None:
        raise ValueError("it is empty")
    if first.type != "schema":  # Arrow would read it as one, and beyond its end
        raise ValueError("it does not begin with a schema")
    schema = pa.ipc.read_schema(first)
    for message in messages:
        if message.type == "dictionary":  # only the stream reader can join them
            return _read_with_dictionaries(body)
        if _is_compressed(message.metadata.to_pybytes()):
            raise ValueError(_COMPRESSED)
        batches.append(pa.ipc.read_record_batch(message, schema))
        _check_count(batches)
    return pa.Table.from_batches(batches, schema=schema)


def _read_with_dictionaries(body: bytes) -> Any:
    for message in pa.ipc.MessageReader.open_stream(body):
        if message.type != "schema" and _is_compressed(message.metadata.to_pybytes()):
            raise ValueError(_COMPRESSED)
    batches: list[Any] = []
    with pa.ipc.open_stream(body) as reader:
        for batch in reader:
            batches.append(batch)
            _check_count(batches)
        return pa.Table.from_batches(batches, schema=reader.schema)


def _check_count(batches: list[Any]) -> None:
    if len(batches) > BATCHES_MAX:
        raise ValueError(f"more than {BATCHES_MAX} batches")


def _is_compressed(message: bytes) -> bool:
    """Whether the record batch of a message, a flatbuffer, has its compression field."""
    root = _follow(message, 0)
    kind = _find_field(message, root, _HEADER_TYPE)
    header = _find_field(message, root, _HEADER)
    if not kind or not header or message[kind] not in {_DICTIONARY_BATCH, _RECORD_BATCH}:
        return False
    table = _follow(message, header)
    if message[kind] == _DICTIONARY_BATCH:
        data = _find_field(message, table, _DATA)
        if not data:
            return False
        table = _follow(message, data)
    return bool(_find_field(message, table, _COMPRESSION))


def _follow(buffer: bytes, at: int) -> int:
    """Where a flatbuffer reference points."""
    return at + int(struct.unpack_from("<I", buffer, at)[0])


def _find_field(buffer: bytes, table: int, number: int) -> int:
    """Where a flatbuffer table has a field, 0 where it has not."""
    vtable = table - struct.unpack_from("<i", buffer, table)[0]
    slot = 4 + 2 * number
    if slot >= struct.unpack_from("<H", buffer, vtable)[0]:
        return 0
    offset = struct.unpack_from("<H", buffer, vtable + slot)[0]
    return table + offset if offset else 0


def _read_column(table: Any, attribute: Attribute, faults: list[Fault]) -> Any:
    name, wanted = attribute.name, ARROW_TYPES[attribute.type]
    if table.schema.get_field_index(name) < 0:
        faults.append(Fault(-1, name, "missing; send a column of nulls where there are no values"))
        return None
    column = table.column(name)
    try:
        array = _concat(column if column.type == wanted else column.cast(wanted), wanted)
    except (pa.ArrowException, ValueError) as error:
        faults.append(Fault(-1, name, f"expected {wanted}: {str(error).splitlines()[0][:200]}"))
        return None
    if attribute.type in {AttrType.FLOAT, AttrType.DOUBLE} and not _all_finite(array):
        finite: Any = pc.is_finite(array)
        odd = pc.index(finite, pa.scalar(value=False)).as_py()
        if odd >= 0:
            faults.append(Fault(odd, name, f"{array[odd].as_py()} is not a number"))
    if attribute.type is AttrType.OBJECT:
        _check_json(array, name, faults)
    return array


def _concat(column: Any, kind: Any) -> Any:
    if column.num_chunks == 1:
        return column.chunk(0)
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], kind)


def _all_finite(array: Any) -> bool:
    """False also where there are nulls: then each value is checked."""
    return not array.null_count and bool(np.isfinite(array.to_numpy()).all())


def _check_json(array: Any, name: str, faults: list[Fault]) -> None:
    for index, text in enumerate(array.to_pylist()):
        try:
            if text is not None:
                msgspec.json.decode(text)
        except (msgspec.MsgspecError, RecursionError, UnicodeError):
            faults.append(Fault(index, name, "an object travels as JSON text, and this is none"))
            return


def _read_times(table: Any, faults: list[Fault]) -> Times:
    if table.schema.get_field_index(TS) < 0:
        return int(table.num_rows)
    column = table.column(TS)
    if column.type != pa.int64():
        faults.append(Fault(-1, TS, f"expected int64 milliseconds, got {column.type}"))
        return []
    times: list[int | None] = column.to_pylist()
    for index, ts in enumerate(times):
        if ts is not None and abs(ts) > TS_MAX_MS:
            faults.append(Fault(index, TS, f"out of range: {ts}"))
            break
    return times
