"""Save queues by parts: what came since the last save is appended, what left is cut.

    saved     [ part 3: a b c ][ part 4: d e ]
    now            c [           d e ] f g h          a and b left, f, g and h came
    saved     [ part 3: a b c ][ part 4: d e ][ part 5: f g h ]   and: skip 2

A part is an entry of its own and is never written again; the entry of the state names the queue,
its first part, the end and how many rows to skip. A part whose rows have all left is removed. So a
save writes what came and not what is held. What came is found from the right end: everything
behind the row that was last at the last save. Short queues stay in their state.

The key of a part begins with a byte that MessagePack never uses, then has the key of its state, so
that it moves to another key partition with it. Used by `kernel_state`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from itertools import islice
from typing import Any

from edgewise.errors import StateError
from edgewise.kernel import serialize
from edgewise.kernel.queues import Queue, StoredQueue
from edgewise.kernel.state.pieces import joined

LEAST_ROWS = 16  # a queue that never was longer is part of its state
PART_ROWS_MAX = 4096  # longer ones would hold up other threads while they are encoded
_MARK = b"\xc1"
_SIZE_BYTES, _NUMBER_BYTES = 4, 8

Entries = list[tuple[bytes, bytes | None]]
# Rows never change, so a part may be encoded later and in another thread: a call gives its bytes.
LaterEntries = list[tuple[bytes, bytes | Callable[[], bytes] | None]]


def encode_entries(entries: Iterable[tuple[bytes, Any]]) -> Entries:
    """All entries as bytes: what was left for later is encoded now."""
    return [(key, data() if callable(data) else data) for key, data in entries]


def _encode_rows(rows: list[Any]) -> bytes:
    return serialize.encode(serialize.plain(rows))


class QueueParts:
    """The parts of all queues of a kernel, by the key of the state that they are in."""

    def __init__(self) -> None:
        self._next = 0
        self._stored: dict[bytes, dict[int, StoredQueue]] = {}

    def pack(self, plan_id: bytes, key: bytes, state: Any) -> LaterEntries:
        """The entry of a state and the changes of its parts."""
        found, plain = self.cut(key, state)
        return [(key, serialize.seal(plan_id, plain)), *found]

    def cut(self, key: bytes, state: Any) -> tuple[LaterEntries, Any]:
        """The changes of the parts of a state, and the state without its queues."""
        found: LaterEntries = []
        met: dict[int, StoredQueue] = {}

        def leave(queue: Queue) -> Any:
            stored = queue.stored
            if stored is None:
                if len(queue) < LEAST_ROWS:
                    return None
                stored = queue.stored = StoredQueue(self._next)
                self._next += 1
            met[stored.name] = stored
            _advance(key, queue, stored, found)
            return [stored.name, stored.first, stored.end, stored.skip]

        plain = serialize.plain(state, leave)
        for name, gone in self._stored.get(key, {}).items():
            if name not in met:
                found += [(_name(key, name, n), None) for n in range(gone.first, gone.end)]
        if met:
            self._stored[key] = met
        else:
            self._stored.pop(key, None)
        return found, plain

    def drop(self, key: bytes) -> LaterEntries:
        """The entry of a state that is gone, and its parts."""
        gone = self._stored.pop(key, {}).values()
        return [
            (key, None),
            *((_name(key, one.name, n), None) for one in gone for n in range(one.first, one.end)),
        ]

    def remember(self, key: bytes, state: Any) -> None:
        """A state that came from a store: its queues are there."""
        met = {q.stored.name: q.stored for q in _find_queues(state) if q.stored is not None}
        if met:
            self._stored[key] = met
            self._next = max(self._next, *(name + 1 for name in met))


def _advance(key: bytes, queue: Queue, stored: StoredQueue, found: LaterEntries) -> None:
    """Cut what left, append what came."""
    known = stored.count()
    came = _count_new(queue, stored.last) if known else len(queue)
    left = known - (len(queue) - came)
    stored.skip += left
    while stored.rows and stored.skip >= stored.rows[0]:
        stored.skip -= stored.rows.popleft()
        found.append((_name(key, stored.name, stored.first), None))
        stored.first += 1
    rows = list(islice(reversed(queue), came))[::-1]
    for low in range(0, came, PART_ROWS_MAX):
        part = rows[low : low + PART_ROWS_MAX]
        found.append((_name(key, stored.name, stored.end), partial(_encode_rows, part)))
        stored.rows.append(len(part))
        stored.end += 1
        stored.last = part[-1]


def _count_new(queue: Queue, last: Any) -> int:
    """How many rows stand behind the one that was last."""
    for count, row in enumerate(reversed(queue)):
        if row is last:
            return count
    return len(queue)


def _name(key: bytes, queue: int, part: int) -> bytes:
    numbers = queue.to_bytes(_NUMBER_BYTES, "big") + part.to_bytes(_NUMBER_BYTES, "big")
    return _MARK + len(key).to_bytes(_SIZE_BYTES, "big") + key + numbers


def is_part(name: bytes) -> bool:
    return name.startswith(_MARK)


def find_owner(name: bytes) -> bytes:
    """The key of the state that an entry belongs to: its own, if it is no part."""
    if not is_part(name):
        return name
    start = len(_MARK) + _SIZE_BYTES
    return name[start : start + int.from_bytes(name[len(_MARK) : start], "big")]


def join_parts(entries: Iterable[tuple[bytes, bytes]]) -> dict[bytes, bytes]:
    """The entries whole again: no pieces, no parts, each state has the rows of its queues."""
    found = dict(entries)
    parts = {name: found.pop(name) for name in [name for name in found if is_part(name)]}
    found = joined(found.items())
    for key in {find_owner(name) for name in parts} & found.keys():
        plan_id, plain = serialize.open_sealed(found[key])
        found[key] = serialize.seal(plan_id, _join(key, plain, parts))
    return found


def _join(key: bytes, plain: Any, parts: dict[bytes, bytes]) -> Any:
    if not isinstance(plain, list):
        return plain
    tag, items = plain
    if tag == serialize.QUEUE and len(items) == 4:
        name, first, end, skip = items
        names = [_name(key, name, n) for n in range(first, end)]
        if any(one not in parts for one in names):
            raise StateError("kernel state is torn: a part of a window is missing")
        return [tag, [name, first, end, skip, [serialize.decode(parts[one]) for one in names]]]
    if tag >= serialize.FLAT:
        return plain
    return [tag, [_join(key, item, parts) if isinstance(item, list) else item for item in items]]


def forget_stored(state: Any) -> None:
    """A state that is carried to another store: nothing of its queues is there."""
    for queue in _find_queues(state):
        queue.stored = None


def _find_queues(value: Any) -> Iterable[Queue]:
    """In a state: among its cells, and in those of the partitions inside it."""
    if isinstance(value, Queue):
        yield value
    elif isinstance(value, list | dict):
        for item in value.values() if isinstance(value, dict) else value:
            if isinstance(item, Queue | list | dict):
                yield from _find_queues(item)
