"""Encode state as bytes and decode it: MessagePack, versioned, bound to one plan, no code inside.

Plain values are written as they are; what MessagePack lacks is a pair of a tag and its items:
tuples, deques, sets, dicts with keys of any kind, and whole numbers of more than 64 bits. Most of
a large state is rows in a window and sums by group: there one tag (`FLAT` and the tag) says for
all items what they are, and none is looked at. Every state opens with the format version and the
fingerprint of the plan that wrote it, and is refused by any other.
"""

from __future__ import annotations

import hashlib
import re
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import msgspec

from edgewise.errors import StateError
from edgewise.kernel.queues import Queue

FORMAT = 4
READ_FORMATS = frozenset({3, FORMAT})  # 3 has no queues
T = TypeVar("T")
_TUPLE, _DEQUE, _SET, _FROZENSET, _DICT = 1, 2, 3, 4, 5
_FINGERPRINT_BYTES = 16

_SHARED, _SEEN, _ORDERED, _LARGE = 6, 7, 8, 9
_QUEUED = 12  # a queue with its rows, all in one
QUEUE = 11  # the rows of a queue are entries of their own (`queue_parts`)
PIECES = 10  # a long list or dict whose items are entries of their own (`pieces`)
FLAT = 16  # added to a tag: items are tuples, or keys and lists by turns, of plain values only
FLAT_LEAST = 16  # items from which on it is worth finding out
MAPS = frozenset({_DICT, _ORDERED, _DICT + FLAT})  # their items are keys and values by turns
_INT_MIN, _INT_MAX = -(1 << 63), (1 << 63) - 1  # what MessagePack holds; a sum may be larger
_SCALARS = frozenset({type(None), bool, int, float, str, bytes})
_classes: dict[str, Any] = {}
LeaveOut = Callable[[Queue], Any]  # what stands for a queue, None: write it like a deque

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder()


def shared(cls: type[T]) -> type[T]:
    """A class whose objects keep their identity: one that stands in two positions stays one.

    Its `__slots__` are its state, or the names in its `SAVED`.
    """
    _classes[cls.__name__] = cls
    return cls


def _saved(cls: Any) -> tuple[str, ...]:
    names: tuple[str, ...] = getattr(cls, "SAVED", cls.__slots__)
    return names


def fingerprint(plan: object) -> bytes:
    """Of frozen declarations, whose `repr` says everything that they mean."""
    text = re.sub(r" at 0x[0-9a-f]+", "", repr(plan))  # a reader of texts has no text itself
    return hashlib.sha256(text.encode()).digest()[:_FINGERPRINT_BYTES]


def pack(plan_id: bytes, value: Any) -> bytes:
    return seal(plan_id, plain(value))


def plain(value: Any, leave_out: LeaveOut | None = None) -> Any:
    """A value as what MessagePack knows: `[tag, items]` for all that holds others.

    `leave_out` may give what is to stand for a queue, whose rows are then kept elsewhere.
    """
    return _Plain(leave_out).of(value)


def seal(plan_id: bytes, plain: Any) -> bytes:
    return _encoder.encode([FORMAT, plan_id, plain])


def encode(plain: Any) -> bytes:
    return _encoder.encode(plain)


def decode(data: bytes) -> Any:
    try:
        return _decoder.decode(data)
    except msgspec.DecodeError as why:
        raise StateError(f"kernel state is torn: {why}") from why


def unpack(plan_id: bytes | None, data: bytes) -> Any:
    """`plan_id` None takes the state of any plan: who asks knows what is in it."""
    found, value = open_sealed(data)
    if plan_id is not None and found != plan_id:
        raise StateError(
            "kernel state belongs to another query: the plan changed since it was written; "
            "start from the log, or run the app it was made by"
        )
    return _Whole().of(value)


def open_sealed(data: bytes) -> tuple[bytes, Any]:
    """The plan it belongs to, and the value as `plain` made it."""
    head = decode(data)
    if not isinstance(head, list) or len(head) != 3:
        raise StateError("kernel state is torn: it does not open with its version")
    version, found, value = head
    if version not in READ_FORMATS:
        raise StateError(
            f"kernel state has format {version}, this program reads format {FORMAT}: "
            "start from the log instead, or run the version that wrote it"
        )
    return found, value


def repack(data: bytes, value: Any) -> bytes:
    """`value` in the place of what `data` holds, of the same plan."""
    _version, plan_id, _value = _decoder.decode(data)
    return pack(plan_id, value)


def peek(data: bytes) -> Any:
    """The state of a key whatever plan made it, to look at and never to go on from."""
    try:
        _version, _plan_id, value = _decoder.decode(data)
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

    def __init__(self, leave_out: LeaveOut | None = None) -> None:
        self._seen: dict[int, int] = {}
        self._leave_out = leave_out

    def of(self, value: Any) -> Any:
        if value is None or isinstance(value, bool | float | str | bytes):
            return value
        if isinstance(value, int):
            return value if _INT_MIN <= value <= _INT_MAX else [_LARGE, [str(value)]]
        if type(value) is Queue and self._leave_out is not None:
            left = self._leave_out(value)
            if left is not None:
                return [QUEUE, left]
        tag = _TAGS.get(type(value))
        if tag is not None:
            return self._held(tag, value)
        if _classes.get(type(value).__name__) is not type(value):
            raise StateError(
                f"a value of type {type(value).__name__} cannot be kept in state: {value!r}"
            )
        number = self._seen.get(id(value))
        if number is not None:
            return [_SEEN, [number]]
        self._seen[id(value)] = len(self._seen)
        fields = [self.of(getattr(value, name)) for name in _saved(type(value))]
        return [_SHARED, [type(value).__name__, *fields]]

    def _held(self, tag: int, items: Any) -> list[Any]:
        if len(items) >= FLAT_LEAST and tag == _DICT and _are_cells(items):
            return [tag + FLAT, [x for pair in items.items() for x in pair]]
        if len(items) >= FLAT_LEAST and tag in _ROWS and _are_rows(items):
            return [tag + FLAT, [*items]]
        if tag in MAPS:
            return [tag, [self.of(x) for pair in items.items() for x in pair]]
        return [tag, [self.of(x) for x in items]]


def _are_rows(items: Sequence[Any]) -> bool:
    """Tuples of plain values, and of tuples of these."""
    if set(map(type, items)) != {tuple}:
        return False
    inner = [x for item in items for x in item]
    deep = [y for x in inner if type(x) is tuple for y in x]
    return _are_plain([x for x in inner if type(x) is not tuple]) and _are_plain(deep)


def _are_cells(items: dict[Any, Any]) -> bool:
    """Lists of plain values by plain keys."""
    if set(map(type, items.values())) != {list}:
        return False
    return _are_plain([*items]) and _are_plain([x for cells in items.values() for x in cells])


def _are_plain(values: list[Any]) -> bool:
    whole = [x for x in values if type(x) is int]
    fit = not whole or (min(whole) >= _INT_MIN and max(whole) <= _INT_MAX)
    return fit and set(map(type, values)) <= _SCALARS


_TAGS: dict[Any, int] = {
    list: 0,
    tuple: _TUPLE,
    deque: _DEQUE,
    Queue: _QUEUED,
    set: _SET,
    frozenset: _FROZENSET,
    dict: _DICT,
    OrderedDict: _ORDERED,
}
_ROWS = frozenset({0, _TUPLE, _DEQUE, _QUEUED})
_MAKERS: dict[int, Any] = {
    0: list, _TUPLE: tuple, _DEQUE: deque, _QUEUED: Queue, _SET: set, _FROZENSET: frozenset,
}  # fmt: skip


def _flat(tag: int, raw: list[Any]) -> Any:
    if tag == _DICT:
        return dict(zip(raw[::2], raw[1::2], strict=True))
    rows = [tuple([tuple(x) if type(x) is list else x for x in item]) for item in raw]
    return _MAKERS[tag](rows)


class _Whole:
    """The way back; objects are numbered as they were met on the way in."""

    def __init__(self) -> None:
        self._seen: list[Any] = []

    def of(self, value: Any) -> Any:
        if not isinstance(value, list):
            return value
        tag, raw = value
        if tag >= FLAT:
            return _flat(tag - FLAT, raw)
        if tag == _LARGE:
            return int(raw[0])
        if tag == QUEUE:
            name, first, end, skip, parts = [*raw, []][:5]
            if len(parts) != end - first:
                raise StateError("kernel state is torn: a part of a window is missing")
            return Queue.of_parts(name, first, end, skip, [_Whole().of(part) for part in parts])
        if tag == _SEEN:
            return self._seen[raw[0]]
        if tag == _SHARED:
            cls = _classes[raw[0]]
            made = cls.__new__(cls)
            self._seen.append(made)
            for name, field in zip(_saved(cls), raw[1:], strict=True):
                setattr(made, name, self.of(field))
            return made
        items = [self.of(v) for v in raw]
        if tag in {_DICT, _ORDERED}:
            made = dict if tag == _DICT else OrderedDict
            return made(zip(items[::2], items[1::2], strict=True))
        return _MAKERS[tag](items)
