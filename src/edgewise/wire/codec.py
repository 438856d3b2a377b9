"""Encode and decode frames. A decoder is strict: one whole frame that its side may send.

Server and client share it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from edgewise.errors import ProtocolError
from edgewise.wire.codes import ProtocolCode
from edgewise.wire.frames import Frame, FromClient, FromServer

FRAME_BYTES_MAX = 1024 * 1024

_encode = msgspec.msgpack.Encoder().encode
_from_client: Callable[[bytes], FromClient] = msgspec.msgpack.Decoder(FromClient).decode
_from_server: Callable[[bytes], FromServer] = msgspec.msgpack.Decoder(FromServer).decode


encode: Callable[[Frame | Any], bytes] = _encode


def raw(value: object) -> msgspec.Raw:
    """A value encoded once, to be placed into many frames."""
    return msgspec.Raw(_encode(value))


def decode_from_client(data: bytes, bytes_max: int = FRAME_BYTES_MAX) -> FromClient:
    if len(data) > bytes_max:
        raise _too_large(data, bytes_max)
    try:
        return _from_client(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise ProtocolError(ProtocolCode.BAD_FRAME, f"not a client frame: {error}") from error


def decode_from_server(data: bytes, bytes_max: int = FRAME_BYTES_MAX) -> FromServer:
    if len(data) > bytes_max:
        raise _too_large(data, bytes_max)
    try:
        return _from_server(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise ProtocolError(ProtocolCode.BAD_FRAME, f"not a server frame: {error}") from error


def _too_large(data: bytes, bytes_max: int) -> ProtocolError:
    return ProtocolError(
        ProtocolCode.FRAME_TOO_LARGE, f"a frame of {len(data)} bytes; the limit is {bytes_max}"
    )
