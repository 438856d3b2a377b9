"""State as bytes and back: MessagePack, versioned, bound to one plan, no code inside.

Plain values are written as they are; what MessagePack lacks is a pair of a tag and its items:
tuples, deques, sets, dicts with keys of any kind, and whole numbers of more than 64 bits. Every
state opens with the format version and the fingerprint of the plan that made it, and is refused by
anything else.
"""

from __future__ import annotations

import hashlib
import re
from collections import OrderedDict, deque
from typing import Any, TypeVar

import msgspec

from edgewise.errors import StateError

FORMAT = 2
T = TypeVar("T")
_TUPLE, _DEQUE, _SET, _FROZENSET, _DICT = 1, 2, 3, 4, 5
_FINGERPRINT_BYTES = 16

_SHARED, _SEEN, _ORDERED, _LARGE = 6, 7, 8, 9
_INT_MIN, _INT_MAX = -(1 << 63), (1 << 63) - 1  # what MessagePack holds; a sum may be larger
_classes: dict[str, Any] = {}

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder()


def shared(cls: type[T]) -> type[T]:
    """A class whose objects keep their identity: one that stands in two places stays one.

    Its `__slots__` are its state.
    """
    _classes[cls.__name__] = cls
    return cls


def fingerprint(plan: object) -> bytes:
    """Of frozen declarations, whose `repr` says everything that they mean."""
    text = re.sub(r" at 0x[0-9a-f]+", "", repr(plan))  # a reader of texts has no text itself
    return hashlib.sha256(text.encode()).digest()[:_FINGERPRINT_BYTES]


def pack(mark: bytes, value: Any) -> bytes:
    return _encoder.encode([FORMAT, mark, _Plain().of(value)])


def unpack(mark: bytes | None, data: bytes) -> Any:
    """`mark` None takes the state of any plan: who asks knows what is in it."""
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
    if mark is not None and found != mark:
        raise StateError(
            "kernel state belongs to another query: the plan changed since it was written; "
            "start from the log, or run the app it was made by"
        )
    return _Whole().of(value)


def repack(data: bytes, value: Any) -> bytes:
    """`value` in the place of what `data` holds, of the same plan."""
    _version, mark, _value = _decoder.decode(data)
    return pack(mark, value)


def peek(data: bytes) -> Any:
    """The state of a key whatever plan made it, to look at and never to go on from."""
    try:
        _version, _mark, value = _decoder.decode(data)
        _clock, *state = _Whole().of(value)
    except (msgspec.DecodeError, ValueError, TypeError, KeyError) as why:
        raise StateError(f"kernel state is torn: {why}") from why
    return state


def pack_key(key: Any) -> bytes:
    return _encoder.encode(_Plain().of(key))


def unpack_key(data: bytes) -> Any:
    return _Whole().of(_decoder.decode(data))


class _Plain:
    """Values as what MessagePack knows."""

    def __init__(self) -> None:
        self._seen: dict[int, int] = {}

    def of(self, value: Any) -> Any:
        if isinstance(value, int) and not _INT_MIN <= value <= _INT_MAX:
            return [_LARGE, [str(value)]]
        if value is None or isinstance(value, bool | int | float | str | bytes):
            return value
        tag = _TAGS.get(type(value))
        if tag in {_DICT, _ORDERED}:
            flat: list[Any] = []
            for k, v in value.items():
                flat += (self.of(k), self.of(v))
            return [tag, flat]
        if tag is not None:
            return [tag, [self.of(v) for v in value]]
        if _classes.get(type(value).__name__) is not type(value):
            raise StateError(
                f"a value of type {type(value).__name__} cannot be kept in state: {value!r}"
            )
        number = self._seen.get(id(value))
        if number is not None:
            return [_SEEN, [number]]
        self._seen[id(value)] = len(self._seen)
        fields = [
            self.of(getattr(value, name)) for name in _classes[type(value).__name__].__slots__
        ]
        return [_SHARED, [type(value).__name__, *fields]]


_TAGS: dict[Any, int] = {
    list: 0,
    tuple: _TUPLE,
    deque: _DEQUE,
    set: _SET,
    frozenset: _FROZENSET,
    dict: _DICT,
    OrderedDict: _ORDERED,
}
_MAKERS: dict[int, Any] = {0: list, _TUPLE: tuple, _DEQUE: deque, _SET: set, _FROZENSET: frozenset}


class _Whole:
    """The way back; objects are numbered as they were met on the way in."""

    def __init__(self) -> None:
        self._seen: list[Any] = []

    def of(self, value: Any) -> Any:
        if not isinstance(value, list):
            return value
        tag, raw = value
        if tag == _LARGE:
            return int(raw[0])
        if tag == _SEEN:
            return self._seen[raw[0]]
        if tag == _SHARED:
            cls = _classes[raw[0]]
            made = cls.__new__(cls)
            self._seen.append(made)
            for name, field in zip(cls.__slots__, raw[1:], strict=True):
                setattr(made, name, self.of(field))
            return made
        items = [self.of(v) for v in raw]
        if tag in {_DICT, _ORDERED}:
            made = dict if tag == _DICT else OrderedDict
            return made(zip(items[::2], items[1::2], strict=True))
        return _MAKERS[tag](items)
