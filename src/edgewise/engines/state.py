"""Kernel state, versioned by batch id: what a state store is to Spark, for kernels, by file.

    <root>/<partition>/<version>.delta   keys that changed in that batch
    <root>/<partition>/<version>.snap    all keys, so that older files may go

Version v is the state after batch v. Loading v takes the newest snapshot at or below v and the
deltas after it; a missing, torn or foreign file is refused, never guessed around. A file appears
whole or not at all (`homes`), and writing a version again is harmless: a repeated batch gives the
same bytes. Files are MessagePack with a header and a checksum. Snapshots are made in the
background; until one is there, its deltas are.

A worker keeps the last state it made in memory; it counts only if its version is the one asked
for, so a batch that ran elsewhere, or twice, falls back to the files.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import msgspec

from edgewise.engines.homes import TEMPORARY, Home, home
from edgewise.errors import StateError

SNAPSHOT_EVERY = 16  # versions; bounds what a restart reads
SNAPSHOTS_KEPT = 2  # Spark may go back one batch, never more
FIX = (
    "restore it from a backup, or remove the checkpoint of the app: everything is then computed "
    "again from the logs, and its rows come a second time"
)
_MAGIC = b"EWS1"

Entries = list[tuple[bytes, bytes | None]]

_decoder = msgspec.msgpack.Decoder(tuple[int, str, list[tuple[bytes, bytes | None]]])
_background: list[ThreadPoolExecutor] = []  # one thread in a process, made when first needed


class StateStore:
    """The versions of one partition of one fragment, under `root`: a path, URI or home.

    Without a partition `root` is its own place.
    """

    def __init__(self, root: str | Path | Home, partition: int | None) -> None:
        parent = home(root) if isinstance(root, str | Path) else root
        self.home = parent if partition is None else parent.inside(str(partition))

    def load(self, version: int) -> dict[bytes, bytes]:
        """All keys as of `version`; -1 is the empty state before the first batch."""
        if version < 0:
            return {}
        base = max(
            (v for v, kind in self.versions() if kind == "snap" and v <= version), default=-1
        )
        state: dict[bytes, bytes] = {}
        if base >= 0:
            _apply(state, self._read(base, "snap"))
        for step in range(base + 1, version + 1):
            _apply(state, self._read(step, "delta"))
        return state

    def save(self, version: int, changed: Entries) -> Future[None] | None:
        """The changes of one batch; now and then also the whole, later, and older files go."""
        self._write(version, "delta", changed)
        if version % SNAPSHOT_EVERY != SNAPSHOT_EVERY - 1:
            return None
        if not _background:
            _background.append(ThreadPoolExecutor(1, thread_name_prefix="state"))
        return _background[0].submit(self.compact, version)

    def compact(self, version: int) -> None:
        """Everything up to `version` in one file; what it replaces goes one snapshot later."""
        self._write(version, "snap", list(self.load(version).items()))
        self._prune()

    def amend(self, version: int, changed: Entries) -> None:
        """A change between two batches: it becomes part of the version before it."""
        kind = "delta" if (version, "delta") in self.versions() else "snap"
        entries = dict(self._read(version, kind)) | dict(changed)
        if kind == "snap":
            entries = {key: value for key, value in entries.items() if value is not None}
        self._write(version, kind, list(entries.items()))
        if kind == "delta" and (version, "snap") in self.versions():
            self._write(version, "snap", list(self.load_deltas(version).items()))

    def load_deltas(self, version: int) -> dict[bytes, bytes]:
        """As `load`, without the snapshot of `version` itself."""
        state = self.load(version - 1)
        _apply(state, self._read(version, "delta"))
        return state

    def start_from(self, version: int, state: dict[bytes, bytes]) -> None:
        """The first version of a store that takes over from another."""
        self._write(version, "snap", list(state.items()))

    def versions(self) -> list[tuple[int, str]]:
        names = (name.split(".") for name in self.home.names())
        return sorted((int(n[0]), n[1]) for n in names if len(n) == 2 and n[0].isdigit())

    def _write(self, version: int, kind: str, entries: Entries) -> None:
        body = msgspec.msgpack.encode((version, kind, entries))
        data = _MAGIC + zlib.crc32(body).to_bytes(4, "big") + body
        self.home.write(f"{version}.{kind}", data)

    def _read(self, version: int, kind: str) -> Entries:
        name = f"{version}.{kind}"
        try:
            data = self.home.read(name)
        except FileNotFoundError:
            raise StateError(
                f"{self.home}/{name} is missing: the state of batch {version} is incomplete; {FIX}"
            ) from None
        body = data[8:]
        torn = StateError(f"{self.home}/{name} is torn or not a state file; {FIX}")
        if data[:4] != _MAGIC or zlib.crc32(body) != int.from_bytes(data[4:8], "big"):
            raise torn
        try:
            found_version, found_kind, entries = _decoder.decode(body)
        except msgspec.DecodeError as why:
            raise torn from why
        if (found_version, found_kind) != (version, kind):
            raise StateError(
                f"{self.home}/{name} holds {found_kind} {found_version}: it was moved or renamed; "
                f"{FIX}"
            )
        return entries

    def _prune(self) -> None:
        versions = self.versions()
        snaps = [v for v, kind in versions if kind == "snap"]
        if len(snaps) < SNAPSHOTS_KEPT:
            return
        oldest = snaps[-SNAPSHOTS_KEPT]
        for version, kind in versions:
            if version < oldest or (version == oldest and kind == "delta"):
                self.home.remove(f"{version}.{kind}")
        for name in self.home.names():
            of = name.removeprefix(TEMPORARY).split(".")[0]
            if name.startswith(TEMPORARY) and of.isdigit() and int(of) < oldest:
                self.home.remove(name)


@dataclass(frozen=True, slots=True)
class Spread:
    """The partitions of one fragment in one generation of its state."""

    root: Home
    parts: int


class Places(Protocol):
    """Where the state of a key goes when there are `parts` partitions."""

    def split(self, key: bytes, value: bytes, parts: int) -> Mapping[int, bytes]: ...
    def join(self, one: bytes, other: bytes) -> bytes:
        """Of one name that every partition has: what came to the same place from two."""
        ...


def rehash(old: Spread, new: Spread, version: int, places: Places) -> None:
    """The same keys over another number of partitions, as of `version`."""
    states: list[dict[bytes, bytes]] = [{} for _ in range(new.parts)]
    for part in range(old.parts):
        for key, value in StateStore(old.root, part).load(version).items():
            for place, mine in places.split(key, value, new.parts).items():
                there = states[place].get(key)
                states[place][key] = mine if there is None else places.join(there, mine)
    for part, state in enumerate(states):
        StateStore(new.root, part).start_from(version, state)


def _apply(state: dict[bytes, bytes], entries: Iterable[tuple[bytes, bytes | None]]) -> None:
    for key, value in entries:
        if value is None:
            state.pop(key, None)
        else:
            state[key] = value
