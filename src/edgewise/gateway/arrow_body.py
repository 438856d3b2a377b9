"""Arrow IPC streams as request bodies: columns that need no parsing, checked all the same. Pure.

A stream holds the stream's attributes by name, in any order, and may hold `_ts` (int64, ms).
Compressed buffers are refused: how large they unpack is only known too late.
"""

from __future__ import annotations

import struct
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from edgewise.event.arrow import ARROW_TYPES, TS
from edgewise.event.schema import Attribute, Schema
from edgewise.event.types import AttrType
from edgewise.gateway.examine import TS_MAX_MS, Fault

CONTENT_TYPE = "application/vnd.apache.arrow.stream"
BATCHES_MAX = 1024
_HEADER_TYPE, _HEADER, _COMPRESSION = 1, 2, 3  # field numbers in Arrow's Message and RecordBatch
_RECORD_BATCH = 3


def read_arrow(body: bytes, schema: Schema) -> tuple[list[int | None], list[Any]] | list[Fault]:
    """Event times (None: time of arrival) and one Arrow array per attribute, or the faults."""
    try:
        table = _table(body)
        table.validate(full=True)
    except (pa.ArrowException, OSError, ValueError, struct.error, IndexError) as bad:
        first = str(bad).splitlines()[0] if str(bad) else type(bad).__name__
        return [Fault(-1, "body", f"not an Arrow stream: {first[:200]}")]
    return columns_of(table, schema)


def columns_of(table: Any, schema: Schema) -> tuple[list[int | None], list[Any]] | list[Fault]:
    """As `read_arrow`, of a table that is one already."""
    faults = [
        Fault(-1, name, f"{schema.name} has no such attribute")
        for name in table.schema.names
        if name != TS and schema.index(name) < 0
    ]
    if len(set(table.schema.names)) < len(table.schema.names):
        return [*faults, Fault(-1, "body", "a column comes twice")]
    arrays = [_column(table, attribute, faults) for attribute in schema.attributes]
    ts = _times(table, faults)
    return faults or (ts, arrays)


def _table(body: bytes) -> Any:
    if _compressed(body):
        raise ValueError("buffers are compressed; send them plain, or the whole body as gzip")
    with pa.ipc.open_stream(body) as reader:
        batches = []
        for batch in reader:
            batches.append(batch)
            if len(batches) > BATCHES_MAX:
                raise ValueError(f"more than {BATCHES_MAX} batches")
        return pa.Table.from_batches(batches, schema=reader.schema)


def _compressed(body: bytes) -> bool:
    for message in pa.ipc.MessageReader.open_stream(body):
        if message.type == "record batch" and _names_a_codec(message.metadata.to_pybytes()):
            return True
    return False


def _names_a_codec(message: bytes) -> bool:
    """Whether a RecordBatch message, a flatbuffer, has its compression field."""
    root = struct.unpack_from("<I", message, 0)[0]
    kind = _field(message, root, _HEADER_TYPE)
    header = _field(message, root, _HEADER)
    if not kind or not header or message[kind] != _RECORD_BATCH:
        return False
    table = header + struct.unpack_from("<I", message, header)[0]
    return bool(_field(message, table, _COMPRESSION))


def _field(buffer: bytes, table: int, number: int) -> int:
    """Where a flatbuffer table has a field, 0 where it has not."""
    vtable = table - struct.unpack_from("<i", buffer, table)[0]
    slot = 4 + 2 * number
    if slot >= struct.unpack_from("<H", buffer, vtable)[0]:
        return 0
    offset = struct.unpack_from("<H", buffer, vtable + slot)[0]
    return table + offset if offset else 0


def _column(table: Any, attribute: Attribute, faults: list[Fault]) -> Any:
    name, wanted = attribute.name, ARROW_TYPES[attribute.type]
    if table.schema.get_field_index(name) < 0:
        faults.append(Fault(-1, name, "missing; send a column of nulls where there are no values"))
        return None
    try:
        array = table.column(name).cast(wanted).combine_chunks()
    except (pa.ArrowException, ValueError) as bad:
        faults.append(Fault(-1, name, f"expected {wanted}: {str(bad).splitlines()[0][:200]}"))
        return None
    if isinstance(array, pa.ChunkedArray):
        array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], wanted)
    if attribute.type in {AttrType.FLOAT, AttrType.DOUBLE}:
        finite: Any = pc.is_finite(array)
        odd = pc.index(finite, pa.scalar(value=False)).as_py()
        if odd >= 0:
            faults.append(Fault(odd, name, f"{array[odd].as_py()} is not a number"))
    if attribute.type is AttrType.OBJECT:
        _check_json(array, name, faults)
    return array


def _check_json(array: Any, name: str, faults: list[Fault]) -> None:
    for index, text in enumerate(array.to_pylist()):
        try:
            if text is not None:
                msgspec.json.decode(text)
        except (msgspec.MsgspecError, RecursionError, UnicodeError):
            faults.append(Fault(index, name, "an object travels as JSON text, and this is none"))
            return


def _times(table: Any, faults: list[Fault]) -> list[int | None]:
    if table.schema.get_field_index(TS) < 0:
        return [None] * table.num_rows
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
