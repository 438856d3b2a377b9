"""Store kernel state by version, in files: what Spark's state store is, for kernels.

    <root>/<key partition>/<version>.delta   keys that changed in that batch
    <root>/<key partition>/<version>.snap    all keys, so that older files may go

Version v is the state after batch v. Not every batch saves its state; a delta names the version
before it, so loading v goes back to the newest snapshot and applies what follows, for example 9:

    2.delta  3.snap  3.delta  6.delta  7.delta  9.delta
             ------           -------           -------
             base      <----- after 3  <------- after 6     7 was never completed: left out

A missing, torn or foreign file is refused, never guessed around. A file appears complete or not at
all (`storage`), and writing a version again is harmless: a repeated batch gives the same bytes.
Files are MessagePack with a header and a checksum. A snapshot is written when the deltas since the
last one are as large as it is, so that each byte of state is written about twice. Before that many
small deltas become one, so that the number of files is bounded however large the snapshot is.

Used wherever kernels run: by `engines.batch` in both engines and in Spark's workers.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import msgspec

from edgewise.engines.state.storage import TEMPORARY, Storage, open_storage
from edgewise.errors import StateError

SNAPSHOT_EVERY = 16  # versions, where each batch saves its state
DELTAS_MAX = 64  # since a snapshot; bounds the files that a restart reads
SNAPSHOT_BYTES_MIN = 1 << 16  # deltas of less are not worth a snapshot
SNAPSHOTS_KEPT = 2  # Spark may go back one batch, never more
FIX = (
    "restore it from a backup, or remove the checkpoint of the app: everything is then computed "
    "again from the logs, and its rows come a second time"
)
_MAGIC = b"EWS1"

Entries = list[tuple[bytes, bytes | None]]


class _StateFile(msgspec.Struct, array_like=True):
    """`previous` is the version that a delta follows; None in files of before: the one before."""

    version: int
    kind: str
    entries: list[tuple[bytes, bytes | None]]
    previous: int | None = None


_decoder = msgspec.msgpack.Decoder(_StateFile)
_background: list[ThreadPoolExecutor] = []  # one thread in a process, made when first needed


class StateStore:
    """The versions of one key partition of one fragment, under `root`: a path, URI or storage.

    Without a key partition the files are in `root` itself.
    """

    def __init__(self, root: str | Path | Storage, key_partition: int | None) -> None:
        parent = open_storage(root) if isinstance(root, str | Path) else root
        self.storage = parent if key_partition is None else parent.inside(str(key_partition))

    def load(self, version: int) -> dict[bytes, bytes]:
        """All keys as of `version`; -1 is the empty state before the first batch."""
        snapshots = {v for v, kind in self.versions() if kind == "snap"}
        deltas: list[Entries] = []
        while version >= 0 and version not in snapshots:
            delta = self._read(version, "delta")
            deltas.append(delta.entries)
            version = _find_previous(delta)
        state: dict[bytes, bytes] = {}
        if version >= 0:
            _apply(state, self._read(version, "snap").entries)
        for entries in reversed(deltas):
            _apply(state, entries)
        return state

    def save(self, version: int, changed: Entries) -> Future[int] | None:
        """Write what changed since the version before; now and then compact in the background."""
        self.write_changes(version, changed)
        if version % SNAPSHOT_EVERY != SNAPSHOT_EVERY - 1:
            return None
        if not _background:
            _background.append(ThreadPoolExecutor(1, thread_name_prefix="compact-state"))
        return _background[0].submit(self.compact, version)

    def write_changes(self, version: int, changed: Entries, previous: int | None = None) -> int:
        """Write what changed since version `previous`; return how many bytes that took."""
        return self._write(version, "delta", changed, previous)

    def compact_if_due(self, version: int) -> int:
        """Write a snapshot where the deltas have grown to its size; return its bytes or 0.

        Where there are many small deltas before that, the newest become one.
        """
        sizes = self.storage.sizes()
        versions = self.versions()
        base = max((v for v, kind in versions if kind == "snap" and v <= version), default=-1)
        deltas = [v for v, kind in versions if kind == "delta" and base < v <= version]
        grown = sum(sizes.get(f"{v}.delta", 0) for v in deltas)
        if grown >= max(sizes.get(f"{base}.snap", 0), SNAPSHOT_BYTES_MIN):
            return self.compact(version)
        if len(deltas) < DELTAS_MAX:
            return 0
        return self._merge(deltas[find_merge(deltas, sizes) :])

    def _merge(self, deltas: list[int]) -> int:
        """One delta in the place of these; versions before the last of them are gone."""
        files: list[_StateFile] = []
        version = deltas[-1]
        while version >= deltas[0]:  # from each to the one it follows: some were never completed
            files.append(self._read(version, "delta"))
            version = _find_previous(files[-1])
        merged: dict[bytes, bytes | None] = {}
        for file in reversed(files):
            merged.update(file.entries)
        written = self._write(deltas[-1], "delta", list(merged.items()), version)
        for older in deltas[:-1]:
            self.storage.remove(f"{older}.delta")
        return written

    def compact(self, version: int) -> int:
        """Write a snapshot of `version`; remove the files before the snapshot before it."""
        written = self._write(version, "snap", list(self.load(version).items()))
        self._prune()
        return written

    def amend(self, version: int, changed: Entries) -> None:
        """Add changes of an on-demand query, made between two batches, to the version before."""
        kind = "delta" if (version, "delta") in self.versions() else "snap"
        file = self._read(version, kind)
        entries = dict(file.entries) | dict(changed)
        if kind == "snap":
            entries = {key: value for key, value in entries.items() if value is not None}
        self._write(version, kind, list(entries.items()), file.previous)
        if kind == "delta" and (version, "snap") in self.versions():
            self._write(version, "snap", list(self.load_deltas(version).items()))

    def load_deltas(self, version: int) -> dict[bytes, bytes]:
        """As `load`, but without the snapshot of `version` itself."""
        delta = self._read(version, "delta")
        state = self.load(_find_previous(delta))
        _apply(state, delta.entries)
        return state

    def start_from(self, version: int, state: dict[bytes, bytes]) -> None:
        """Write the first version of a store that continues another."""
        self._write(version, "snap", list(state.items()))

    def versions(self) -> list[tuple[int, str]]:
        names = (name.split(".") for name in self.storage.names())
        return sorted((int(n[0]), n[1]) for n in names if len(n) == 2 and n[0].isdigit())

    def _write(
        self, version: int, kind: str, entries: Entries, previous: int | None = None
    ) -> int:
        body = msgspec.msgpack.encode(_StateFile(version, kind, entries, previous))
        data = _MAGIC + zlib.crc32(body).to_bytes(4, "big") + body
        self.storage.write(f"{version}.{kind}", data)
        return len(data)

    def _read(self, version: int, kind: str) -> _StateFile:
        name = f"{version}.{kind}"
        try:
            data = self.storage.read(name)
        except FileNotFoundError:
            raise StateError(
                f"{self.storage}/{name} is missing: the state of batch {version} is incomplete; "
                f"{FIX}"
            ) from None
        body = data[8:]
        torn = StateError(f"{self.storage}/{name} is torn or not a state file; {FIX}")
        if data[:4] != _MAGIC or zlib.crc32(body) != int.from_bytes(data[4:8], "big"):
            raise torn
        try:
            found = _decoder.decode(body)
        except msgspec.DecodeError as why:
            raise torn from why
        if (found.version, found.kind) != (version, kind):
            raise StateError(
                f"{self.storage}/{name} holds {found.kind} {found.version}: it was moved or "
                f"renamed; {FIX}"
            )
        return found

    def _prune(self) -> None:
        versions = self.versions()
        snaps = [v for v, kind in versions if kind == "snap"]
        if len(snaps) < SNAPSHOTS_KEPT:
            return
        oldest = snaps[-SNAPSHOTS_KEPT]
        for version, kind in versions:
            if version < oldest or (version == oldest and kind == "delta"):
                self.storage.remove(f"{version}.{kind}")
        for name in self.storage.names():
            of = name.removeprefix(TEMPORARY).split(".")[0]
            if name.startswith(TEMPORARY) and of.isdigit() and int(of) < oldest:
                self.storage.remove(name)


@dataclass(frozen=True, slots=True)
class PartitionedState:
    """The state of one fragment over all its key partitions."""

    root: Storage
    partitions: int


class KeyRouter(Protocol):
    """Which key partition the state of a key belongs to, of so many `partitions`."""

    def split(self, key: bytes, value: bytes, partitions: int) -> Mapping[int, bytes]: ...
    def join(self, one: bytes, other: bytes) -> bytes:
        """Join two values of one key: some keys exist in every key partition."""
        ...


def repartition(
    old: PartitionedState, new: PartitionedState, version: int, router: KeyRouter
) -> None:
    """Copy the state of `version` to another number of key partitions."""
    states: list[dict[bytes, bytes]] = [{} for _ in range(new.partitions)]
    for source in range(old.partitions):
        for key, value in StateStore(old.root, source).load(version).items():
            for target, moved in router.split(key, value, new.partitions).items():
                there = states[target].get(key)
                states[target][key] = moved if there is None else router.join(there, moved)
    for target, state in enumerate(states):
        StateStore(new.root, target).start_from(version, state)


def find_merge(deltas: list[int], sizes: Mapping[str, int]) -> int:
    """Where the deltas begin that become one: the newest, and each as large as those after it.

    So a byte is written again only when as many have come, a logarithm of times in all.
    """
    start, total = len(deltas), 0
    while start and (start > DELTAS_MAX // 2 or sizes[f"{deltas[start - 1]}.delta"] <= 2 * total):
        start -= 1
        total += sizes[f"{deltas[start]}.delta"]
    return start


def _find_previous(delta: _StateFile) -> int:
    return delta.version - 1 if delta.previous is None else delta.previous


def _apply(state: dict[bytes, bytes], entries: Iterable[tuple[bytes, bytes | None]]) -> None:
    for key, value in entries:
        if value is None:
            state.pop(key, None)
        else:
            state[key] = value
