"""Encode and decode the messages of Siddhi's TCP transport. Pure.

    byte 2 | size (int) | session length (int), session | channel length (int), channel
           | data length (int), data

All numbers are big-endian; `size` counts what follows it. The channel is the `context` of a
source. Used by `tcp`.
"""

from __future__ import annotations

import struct

PROTOCOL = 2
_HEAD = struct.Struct(">bi")
_INT = struct.Struct(">i")


def encode_frame(session: str, channel: str, data: bytes) -> bytes:
    parts = [_INT.pack(len(part)) + part for part in (session.encode(), channel.encode(), data)]
    body = b"".join(parts)
    return _HEAD.pack(PROTOCOL, len(body)) + body


class FrameDecoder:
    """Bytes in, as they arrive; messages out. ValueError for what is no such message."""

    def __init__(self, size_max: int) -> None:
        self._size_max = size_max
        self._held = bytearray()

    def feed(self, data: bytes) -> list[tuple[str, bytes]]:
        """Channel and data of every message that is whole now."""
        self._held += data
        found, at = [], 0
        while len(self._held) - at >= _HEAD.size:
            protocol, size = _HEAD.unpack_from(self._held, at)
            if protocol != PROTOCOL:
                raise ValueError(f"protocol {protocol} is not Siddhi's TCP protocol {PROTOCOL}")
            if not 0 <= size <= self._size_max:
                raise ValueError(f"a message of {size} bytes; the most is {self._size_max}")
            end = at + _HEAD.size + size
            if end > len(self._held):
                break
            found.append(_decode_body(bytes(self._held[at + _HEAD.size : end])))
            at = end
        del self._held[:at]
        return found


def _decode_body(body: bytes) -> tuple[str, bytes]:
    parts, at = [], 0
    for _ in range(3):
        if at + 4 > len(body):
            raise ValueError("a message ends before its data")
        size = _INT.unpack_from(body, at)[0]
        at += 4
        if size < 0 or at + size > len(body):
            raise ValueError(f"a part of {size} bytes does not fit its message")
        parts.append(body[at : at + size])
        at += size
    return parts[1].decode(), parts[2]
