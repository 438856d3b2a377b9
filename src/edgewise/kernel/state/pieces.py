"""Cut a large state into many small entries, so that what stayed the same is not written again.

A state without a key is one entry, and a window of a million events in it changes at its ends
only. Long lists and dictionaries inside are cut into pieces where their content says so (a hash of
an item ends a piece), so what comes or goes in one part leaves the cuts elsewhere where they were.
A piece is named by its content; the entry it was cut from lists the names in order. A reader joins
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
        """Entries for states by key: themselves, new pieces, and None for pieces that are gone."""
        cut = _Cut()
        found: Entries = [
            (serialize.pack_key(key), serialize.seal(plan_id, cut.of(serialize.plain(state))))
            for key, state in states
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
        return [serialize.PIECES, [tag, *map(self._keep, _runs(tag, items))]]

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
        keys = [serialize.encode(name) for name in names]
        if any(key not in pieces for key in keys):
            raise StateError("kernel state is torn: a piece of it is missing")
        items = [item for key in keys for item in serialize.decode(pieces[key])]
    if tag >= serialize.FLAT:
        return [tag, items]
    return [tag, [_join(item, pieces) if isinstance(item, list) else item for item in items]]
