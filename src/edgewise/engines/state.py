"""Kernel state, versioned by batch id: what a state store is to Spark, for kernels, by file.

    <root>/<partition>/<version>.delta   keys that changed in that batch
    <root>/<partition>/<version>.snap    all keys, so that older files may go

Version v is the state after batch v. Loading v takes the newest snapshot at or below v and the
deltas after it; a missing, torn or foreign file is refused, never guessed around. A file appears
whole or not at all (temporary name, fsync, rename), and writing a version again is harmless: a
repeated batch gives the same bytes. Files are MessagePack with a header and a checksum.

A worker keeps the last state it made in memory; it counts only if its version is the one asked
for, so a batch that ran elsewhere, or twice, falls back to the files.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterable
from pathlib import Path

import msgspec

from edgewise.errors import StateError

SNAPSHOT_EVERY = 16  # versions; bounds what a restart reads
SNAPSHOTS_KEPT = 2  # Spark may go back one batch, never more
_MAGIC = b"EWS1"

Entries = list[tuple[bytes, bytes | None]]


class StateStore:
    """The versions of one partition of one fragment."""

    def __init__(self, root: Path, partition: int) -> None:
        self.dir = root / str(partition)

    def load(self, version: int) -> dict[bytes, bytes]:
        """All keys as of `version`; -1 is the empty state before the first batch."""
        if version < 0:
            return {}
        versions = self._versions()
        base = max((v for v, kind in versions if kind == "snap" and v <= version), default=-1)
        state: dict[bytes, bytes] = {}
        if base >= 0:
            _apply(state, self._read(base, "snap"))
        for step in range(base + 1, version + 1):
            _apply(state, self._read(step, "delta"))
        return state

    def save(self, version: int, changed: Entries) -> None:
        """The changes of one batch; now and then also the whole, and older files go."""
        self.dir.mkdir(parents=True, exist_ok=True)
        self._write(version, "delta", changed)
        if version % SNAPSHOT_EVERY == SNAPSHOT_EVERY - 1:
            self._write(version, "snap", list(self.load(version).items()))
            self._prune()

    def _versions(self) -> list[tuple[int, str]]:
        if not self.dir.exists():
            return []
        names = (path.name.split(".") for path in self.dir.iterdir())
        return sorted((int(n[0]), n[1]) for n in names if len(n) == 2 and n[0].isdigit())

    def _path(self, version: int, kind: str) -> Path:
        return self.dir / f"{version}.{kind}"

    def _write(self, version: int, kind: str, entries: Entries) -> None:
        body = msgspec.msgpack.encode((version, kind, entries))
        path = self._path(version, kind)
        temporary = path.with_name(f".{path.name}.{os.getpid()}")
        with temporary.open("wb") as file:
            file.write(_MAGIC + zlib.crc32(body).to_bytes(4, "big") + body)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)

    def _read(self, version: int, kind: str) -> Entries:
        path = self._path(version, kind)
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            raise StateError(
                f"{path} is missing: the state of batch {version} is incomplete; "
                "remove the checkpoint directory to start again from the log"
            ) from None
        body = data[8:]
        if data[:4] != _MAGIC or zlib.crc32(body) != int.from_bytes(data[4:8], "big"):
            raise StateError(f"{path} is torn or not a state file; restore it from a backup")
        found_version, found_kind, entries = msgspec.msgpack.decode(
            body, type=tuple[int, str, list[tuple[bytes, bytes | None]]]
        )
        if (found_version, found_kind) != (version, kind):
            raise StateError(f"{path} holds {found_kind} {found_version}: it was moved or renamed")
        return entries

    def _prune(self) -> None:
        snaps = [v for v, kind in self._versions() if kind == "snap"]
        if len(snaps) < SNAPSHOTS_KEPT:
            return
        oldest = snaps[-SNAPSHOTS_KEPT]
        for version, kind in self._versions():
            if version < oldest or (version == oldest and kind == "delta"):
                self._path(version, kind).unlink(missing_ok=True)


def _apply(state: dict[bytes, bytes], entries: Iterable[tuple[bytes, bytes | None]]) -> None:
    for key, value in entries:
        if value is None:
            state.pop(key, None)
        else:
            state[key] = value
