"""State as bytes and back: MessagePack, versioned, bound to one plan, no code inside.

Plain values are written as they are; what MessagePack lacks is a pair of a tag and its items:
tuples, deques, sets, and dicts with keys of any kind. Every state opens with the format version
and the fingerprint of the plan that made it, and is refused by anything else.
"""

from __future__ import annotations

import hashlib
from collections import deque
from typing import Any

import msgspec

from edgewise.errors import StateError

FORMAT = 1
_TUPLE, _DEQUE, _SET, _FROZENSET, _DICT = 1, 2, 3, 4, 5
_FINGERPRINT_BYTES = 16

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder()


def fingerprint(plan: object) -> bytes:
    """Of frozen declarations, whose `repr` says everything that they mean."""
    return hashlib.sha256(repr(plan).encode()).digest()[:_FINGERPRINT_BYTES]


def pack(mark: bytes, value: Any) -> bytes:
    return _encoder.encode([FORMAT, mark, _plain(value)])


def unpack(mark: bytes, data: bytes) -> Any:
    try:
        head = _decoder.decode(data)
    except msgspec.DecodeError as why:
        raise StateError(f"kernel state is torn: {why}") from why
    if not isinstance(head, list) or len(head) != 3:
        raise StateError("kernel state is torn: it does not open with its version")
    version, found, value = head
    if version != FORMAT:
        raise StateError(
            f"kernel state has format {version}, this program reads format {FORMAT}: "
            "start from the log instead, or run the version that wrote it"
        )
    if found != mark:
        raise StateError(
            "kernel state belongs to another query: the plan changed since it was written; "
            "start from the log, or run the app it was made by"
        )
    return _whole(value)


def pack_key(key: Any) -> bytes:
    return _encoder.encode(_plain(key))


def unpack_key(data: bytes) -> Any:
    return _whole(_decoder.decode(data))


def _plain(value: Any) -> Any:
    match value:
        case None | bool() | int() | float() | str() | bytes():
            return value
        case list():
            return [0, [_plain(v) for v in value]]
        case tuple():
            return [_TUPLE, [_plain(v) for v in value]]
        case deque():
            return [_DEQUE, [_plain(v) for v in value]]
        case set():
            return [_SET, [_plain(v) for v in value]]
        case frozenset():
            return [_FROZENSET, [_plain(v) for v in value]]
        case dict():
            flat: list[Any] = []
            for k, v in value.items():
                flat += (_plain(k), _plain(v))
            return [_DICT, flat]
        case _:
            raise StateError(
                f"a value of type {type(value).__name__} cannot be kept in state: {value!r}"
            )


def _whole(value: Any) -> Any:
    if not isinstance(value, list):
        return value
    tag, raw = value
    items = [_whole(v) for v in raw]
    match tag:
        case 1:
            return tuple(items)
        case 2:
            return deque(items)
        case 3:
            return set(items)
        case 4:
            return frozenset(items)
        case 5:
            return dict(zip(items[::2], items[1::2], strict=True))
        case _:
            return items
