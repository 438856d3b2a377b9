"""Cut a large state into many small entries, so that what stayed the same is not written again.

A state without a key is one entry, and a window of a million events in it changes at its ends
only. Long lists and dictionaries inside are cut into pieces where their content says so (a hash of
an item ends a piece), so what comes or goes in one part leaves the cuts elsewhere where they were.
A piece is named by its content; the entry it was cut from lists the names in order. A long list of
names is cut the same way, so a change of one item writes the logarithm of the list. A reader joins
them first and sees the entry whole.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterable
from typing import Any

from edgewise.errors import StateError
from edgewise.kernel import serialize

LEAST_ITEMS = 256  # below that, a list stays in one
MEAN_ITEMS = 32  # of a piece: small ones repeat less that did not change, and have more names
MOST_ITEMS = 512  # where the content offers no position to cut
_NAME_BYTES = 12
_BIN8 = b"\xc4"  # how a name begins among keys, which are tuples, and what waits, which is text

Entries = list[tuple[bytes, bytes | None]]


class Pieces:
    """Remembers what a store has, and says what it lacks."""

    def __init__(self) -> None:
        self._stored: set[bytes] = set()

    def changed(self, plan_id: bytes, states: Iterable[tuple[Any, Any]]) -> Entries:
        """Entries for plain states by key: themselves, new pieces, None for those now gone."""
        cut = _Cut()
        found: Entries = [
            (serialize.pack_key(key), serialize.seal(plan_id, cut.of(plain)))
            for key, plain in states
        ]
        gone = self._stored - cut.pieces.keys()
        found += [(name, data) for name, data in cut.pieces.items() if name not in self._stored]
        found += [(name, None) for name in sorted(gone)]
        self._stored = set(cut.pieces)
        return found

    def stored(self, names: Iterable[bytes]) -> None:
        """A store has these, and maybe others that are none of ours."""
        self._stored = {name for name in names if _is_name(name)}


def joined(states: Iterable[tuple[bytes, bytes]]) -> dict[bytes, bytes]:
    """The entries whole again, without their pieces."""
    found = dict(states)
    pieces = {key: data for key, data in found.items() if _is_name(key)}
    if not pieces:
        return found
    whole = {}
    for key, data in found.items():
        if key not in pieces:
            plan_id, plain = serialize.open_sealed(data)
            whole[key] = serialize.seal(plan_id, _join(plain, pieces))
    return whole


def _is_name(key: bytes) -> bool:
    return key.startswith(_BIN8)


class _Cut:
    def __init__(self) -> None:
        self.pieces: dict[bytes, bytes] = {}

    def of(self, plain: Any) -> Any:
        if not isinstance(plain, list):
            return plain
        tag, items = plain
        if tag < serialize.FLAT:
            items = [self.of(item) if isinstance(item, list) else item for item in items]
        if len(items) < LEAST_ITEMS:
            return [tag, items]
        return [serialize.PIECES, [tag, *self._name(map(self._keep, _runs(tag, items)))]]

    def _name(self, names: Iterable[bytes]) -> list[Any]:
        """A long list of names is cut itself, so that few names change with few items."""
        found: list[Any] = list(names)
        while len(found) >= LEAST_ITEMS:
            found = [[self._keep(run)] for run in _runs(0, found)]
        return found

    def _keep(self, items: list[Any]) -> bytes:
        data = serialize.encode(items)
        name = hashlib.blake2b(data, digest_size=_NAME_BYTES).digest()
        self.pieces[serialize.encode(name)] = data
        return name


def _runs(tag: int, items: list[Any]) -> Iterable[list[Any]]:
    """Cut behind items whose hash says so; of a dictionary key and value stay together."""
    width = 2 if tag in serialize.MAPS else 1
    low = 0
    for at in range(0, len(items), width):
        end = at + width
        ends_here = zlib.crc32(serialize.encode(items[at])) % MEAN_ITEMS == 0
        if ends_here or end - low >= MOST_ITEMS or end == len(items):
            yield items[low:end]
            low = end


def _join(plain: Any, pieces: dict[bytes, bytes]) -> Any:
    if not isinstance(plain, list):
        return plain
    tag, items = plain
    if tag == serialize.PIECES:
        tag, *names = items
        items = [item for name in names for item in _find_items(name, pieces)]
    if tag >= serialize.FLAT:
        return [tag, items]
    return [tag, [_join(item, pieces) if isinstance(item, list) else item for item in items]]


def _find_items(name: Any, pieces: dict[bytes, bytes]) -> list[Any]:
    """The items of a piece; a name in a list is that of a piece of names."""
    named = name[0] if isinstance(name, list) else name
    found = pieces.get(serialize.encode(named))
    if found is None:
        raise StateError("kernel state is torn: a piece of it is missing")
    items: list[Any] = serialize.decode(found)
    if isinstance(name, list):
        return [item for inner in items for item in _find_items(inner, pieces)]
    return items
