"""Encode and decode the records of a log that lives in Kafka. Pure.

One topic with one partition is one log. A record is one Arrow batch; a checkpoint is a record
without rows that holds the schema and the producers so far, written by each new writer and from
time to time after. Offsets of events are not offsets of records (transactions use some of those),
so each record says which events it holds. Its Kafka timestamp is one more than the event offset
behind it: so Kafka's own time index finds the record of an event without reading earlier ones, but
timestamps are of no use to other tools.
"""

from __future__ import annotations

import msgspec
import pyarrow as pa

from edgewise.errors import LogCorrupt
from edgewise.log.api import CLOCK_NONE
from edgewise.log.frame import ProducerState

HEADER = "edgewise"


class RecordHeader(msgspec.Struct, array_like=True, frozen=True):
    """The header of every record. `checkpoint` is the record offset of the last checkpoint."""

    first: int
    rows: int
    clock_before: int
    ts_max: int
    epoch: int
    checkpoint: int  # -1: this record is a checkpoint
    bytes_before: int  # of all records ever written before this one
    written_ms: int
    producer: str = ""
    sequence: int = -1

    @property
    def next(self) -> int:
        return self.first + self.rows

    @property
    def clock_after(self) -> int:
        return max(self.clock_before, self.ts_max)


class LogCheckpoint(msgspec.Struct, frozen=True):
    """The value of a checkpoint."""

    schema: bytes
    producers: list[ProducerState]


class Record(msgspec.Struct, frozen=True):
    """A record as it was fetched."""

    position: int
    header: RecordHeader
    value: bytes

    @property
    def checkpoint_at(self) -> int:
        return self.position if self.header.checkpoint < 0 else self.header.checkpoint

    @property
    def size(self) -> int:
        return len(self.value)


def timestamp_of(header: RecordHeader) -> int:
    """Never 0, which means `now` to the client."""
    return header.next + 1


def search_key(offset: int) -> int:
    """The time to search: the first record with a higher timestamp ends behind `offset`."""
    return offset + 2


def parse_record(
    topic: str, position: int, headers: list[tuple[str, bytes]] | None, value: bytes | None
) -> Record:
    encoded = dict(headers or ()).get(HEADER)
    try:
        header = msgspec.msgpack.decode(encoded or b"", type=RecordHeader)
    except msgspec.MsgspecError as error:
        raise LogCorrupt(
            f"topic {topic}, record {position}: it is not from this log ({error})"
        ) from error
    return Record(position, header, value or b"")


def schema_of(checkpoint: Record) -> pa.Schema:
    return pa.ipc.read_schema(pa.py_buffer(parse_checkpoint(checkpoint).schema))


def parse_checkpoint(record: Record) -> LogCheckpoint:
    return msgspec.msgpack.decode(record.value, type=LogCheckpoint)


def empty_header() -> RecordHeader:
    """The header that precedes the first record of a log."""
    return RecordHeader(0, 0, CLOCK_NONE, CLOCK_NONE, 0, -1, 0, 0)
