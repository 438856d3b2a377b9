"""Encode and decode the bytes of a segment file: a sequence of frames with checksums. Pure.

    header frame | data frame | data frame | ... | footer frame | trailer

The header frame starts every segment (schema, first offset, clock, producers so far). A data frame
holds one Arrow record batch as an IPC message. Footer and trailer are written when the segment is
sealed; a segment without them is the active one. Frames start and bodies lie on 64 byte borders,
so a mapped file is an Arrow buffer without a copy, at the cost of some padding.

`durable_before` is how many bytes of the file were known to be on disk when the frame was written.
It tells a torn tail from damage: a bad frame that a later frame calls durable was whole once.
Writers, readers, recovery and verification of segment files use it.
"""

from __future__ import annotations

import contextlib
import enum
import struct
from typing import Any, NamedTuple

import msgspec
from zlib_ng.zlib_ng import crc32

from edgewise.log.api import CLOCK_NONE

MAGIC = b"EWF1"
ALIGN = 64
PRODUCER_BYTES_MAX = 180
BODY_BYTES_MAX = 1 << 31
TS_MAX = 2**63 - 1

_FIXED = struct.Struct("<4sIIIQIIqqqQqHBB")
_TRAILER = struct.Struct("<8sQI")
_TRAILER_MAGIC = b"EWSEALED"
TRAILER_BYTES = ALIGN
_ZEROS = bytes(ALIGN)


class FrameKind(enum.IntEnum):
    """What a frame's body is. The number is what the file stores."""

    DATA = 0
    HEADER = 1
    FOOTER = 2


class Frame(NamedTuple):
    """A frame's header, and where its bytes lie in the file."""

    position: int
    body_at: int
    end: int
    body_bytes: int
    body_crc: int
    first: int
    rows: int
    epoch: int
    ts_min: int
    ts_max: int
    clock_before: int
    durable_before: int
    sequence: int
    producer: str
    kind: FrameKind
    more: bool  # the same append goes on in the next frame

    @property
    def next(self) -> int:
        """The first offset behind this frame."""
        return self.first + self.rows

    @property
    def clock_after(self) -> int:
        return max(self.clock_before, self.ts_max)


class Damaged(Exception):
    """Bytes that are no frame. `short`: the file ends too early, as with a torn tail."""

    def __init__(self, position: int, reason: str, *, short: bool = False) -> None:
        self.position = position
        self.reason = reason
        self.short = short
        super().__init__(f"byte {position}: {reason}")


class ProducerState(msgspec.Struct, array_like=True, frozen=True):
    """The last appends of a producer: `(sequence, first, end)`, oldest first."""

    name: str
    recent: list[tuple[int, int, int]]


class SegmentHeader(msgspec.Struct, frozen=True):
    """What a reader must know before the first row of a segment."""

    base: int
    epoch: int
    clock_before: int
    created_ms: int
    schema: bytes
    producers: list[ProducerState] = []


class IndexEntry(msgspec.Struct, array_like=True, frozen=True):
    """A frame at which a search may start."""

    first: int
    position: int


class SegmentFooter(msgspec.Struct, frozen=True):
    """The summary of a sealed segment."""

    base: int
    end: int
    epoch_first: int
    epoch_last: int
    ts_min: int
    ts_max: int
    clock_after: int
    sealed_ms: int
    frames: int
    index: list[IndexEntry]


def align(size: int) -> int:
    return -(-size // ALIGN) * ALIGN


def header_bytes(producer: str) -> int:
    return align(_FIXED.size + len(producer.encode()))


def pack_frame(
    kind: FrameKind,
    body: Any,
    *,
    body_crc: int | None = None,
    first: int,
    rows: int = 0,
    epoch: int,
    ts_min: int = TS_MAX,
    ts_max: int = CLOCK_NONE,
    clock_before: int = CLOCK_NONE,
    durable_before: int = 0,
    sequence: int = -1,
    producer: str = "",
    more: bool = False,
) -> list[Any]:
    """The buffers of one frame, in the order they are written."""
    size = len(memoryview(body))
    crc = crc32(body) if body_crc is None else body_crc
    name = producer.encode()
    head = bytearray(align(_FIXED.size + len(name)))
    _FIXED.pack_into(
        head, 0, MAGIC, 0, size, crc, first, rows, epoch, ts_min, ts_max, clock_before,
        durable_before, sequence, len(name), kind, more,
    )  # fmt: skip
    head[_FIXED.size : _FIXED.size + len(name)] = name
    head[4:8] = crc32(memoryview(head)[8:]).to_bytes(4, "little")
    rest = -size % ALIGN
    return [head, body, _ZEROS[:rest]] if rest else [head, body]


def parse_frame(buffer: Any, position: int, limit: int, base: int = 0) -> Frame:
    """The frame at `position` of the file; `buffer` starts at `base` and is good up to `limit`."""
    at = position - base
    if position + _FIXED.size > limit:
        raise Damaged(position, "the file ends inside a frame header", short=True)
    magic, head_crc, size, crc, *numbers, name_bytes, kind, more = _FIXED.unpack_from(buffer, at)
    if magic != MAGIC:
        raise Damaged(position, "no frame starts here")
    head = align(_FIXED.size + name_bytes)
    if position + head > limit:
        raise Damaged(position, "the file ends inside a frame header", short=True)
    view = memoryview(buffer)[at : at + head]
    if crc32(view[8:]) != head_crc:
        raise Damaged(position, "the frame header fails its checksum")
    end = position + head + align(size)
    if end > limit:
        raise Damaged(position, "the file ends inside a frame", short=True)
    name = bytes(view[_FIXED.size : _FIXED.size + name_bytes]).decode() if name_bytes else ""
    location = (position, position + head, end, size, crc)
    return Frame._make((*location, *numbers, name, FrameKind(kind), bool(more)))


def check_body(buffer: Any, frame: Frame, base: int = 0) -> memoryview:
    """Return the body of a parsed frame; raise Damaged where its checksum does not match."""
    at = frame.body_at - base
    body = memoryview(buffer)[at : at + frame.body_bytes]
    if crc32(body) != frame.body_crc:
        raise Damaged(frame.position, "the batch fails its checksum")
    return body


def find_durable_bytes(buffer: Any, position: int, limit: int) -> int:
    """The most bytes that a frame header behind `position` calls durable; 0 for none."""
    data = bytes(memoryview(buffer)[:limit])
    known = 0
    at = data.find(MAGIC, position + 1)
    while at >= 0:
        if at % ALIGN == 0:
            with contextlib.suppress(Damaged):
                known = max(known, parse_frame(data, at, limit).durable_before)
        at = data.find(MAGIC, at + 1)
    return known


def pack_trailer(footer_at: int) -> bytes:
    packed = _TRAILER.pack(_TRAILER_MAGIC, footer_at, crc32(footer_at.to_bytes(8, "little")))
    return packed.ljust(TRAILER_BYTES, b"\0")


def parse_trailer(tail: bytes) -> int:
    """Where the footer of a sealed file starts; -1 when these are not the bytes of a trailer."""
    if len(tail) < TRAILER_BYTES:
        return -1
    magic, footer_at, crc = _TRAILER.unpack_from(tail, 0)
    good = magic == _TRAILER_MAGIC and crc == crc32(footer_at.to_bytes(8, "little"))
    return int(footer_at) if good else -1
