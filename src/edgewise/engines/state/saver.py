"""Decide when to save the state of an app, and save it in the background.

A batch does not write state: its events are in the log, so the log is the state until the next
save. After a restart the last save is loaded and the events since are fed again, without output.
A save costs what changed since the last one, so a longer interval writes a hot key once where a
shorter one writes it many times, and pays with a longer restart.

    saved                      crash
      |  batch  batch  batch  ba.                   the log
      +--------------------->                       fed again, no output
                            +-->                    computed again, output logs drop what they have

When to save is for `save_schedule` to say. Collecting runs on the engine's thread, for the state
must stand still; rows of windows do not change, so they are encoded on a background thread, where
fsync and compaction run too. The save point is written
last: a save that was interrupted does not count. The engines use it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field

import msgspec

from edgewise.engines.state.save_schedule import SaveSchedule
from edgewise.engines.state.storage import Storage
from edgewise.engines.state.store import FIX, StateStore
from edgewise.errors import StateError
from edgewise.kernel.state.queue_parts import LaterEntries, encode_entries

SAVE_POINT = "saved.json"


class SavePoint(msgspec.Struct, frozen=True):
    """The state after batch `version`: all events before `offsets`, the app's time at `clock`."""

    version: int
    offsets: dict[str, int]
    clock: int


@dataclass(slots=True)
class SaveStats:
    saves: int = 0
    bytes: int = 0
    seconds: float = 0.0  # on the engine's thread
    replayed_rows: int = 0  # fed again after the last start


@dataclass
class StateSaver:
    """Saves the states of an app's fragments together, as of one batch."""

    storage: Storage  # of the save point
    schedule: SaveSchedule = field(default_factory=SaveSchedule)
    stats: SaveStats = field(default_factory=SaveStats)
    clock_s: Callable[[], float] = time.monotonic
    saved: SavePoint | None = None
    rows: int = 0  # since the last save
    _pool: ThreadPoolExecutor | None = None
    _pending: Future[SavePoint] | None = None

    def load(self) -> SavePoint | None:
        """The last save, None where there was none."""
        try:
            data = self.storage.read(SAVE_POINT)
        except FileNotFoundError:
            return None
        try:
            self.saved = msgspec.json.decode(data, type=SavePoint)
        except msgspec.DecodeError as why:
            raise StateError(f"{self.storage}/{SAVE_POINT} is torn ({why}); {FIX}") from why
        return self.saved

    def is_due(self) -> bool:
        return not self._is_busy() and self.schedule.is_due(self.clock_s(), self.rows)

    def record_rows(self, rows: int) -> None:
        self.rows += rows

    def save(
        self, point: SavePoint, collect: Callable[[], list[tuple[StateStore, LaterEntries]]]
    ) -> None:
        """Save what `collect` returns, in the background; it packs the changes of each store."""
        self.wait()
        began_s = self.clock_s()
        changes = collect()
        now_s = self.clock_s()
        self.schedule.record(now_s, now_s - began_s)
        self.stats.saves += 1
        self.stats.seconds += now_s - began_s
        self.rows = 0
        if self._pool is None:
            self._pool = ThreadPoolExecutor(1, thread_name_prefix="save-state")
        previous = -1 if self.saved is None else self.saved.version
        self._pending = self._pool.submit(self._write, point, changes, previous)

    def wait(self) -> None:
        """Until the save under way is complete; StateError or OSError where it failed."""
        if self._pending is not None:
            pending, self._pending = self._pending, None
            self.saved = pending.result()

    def close(self) -> None:
        self.wait()
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None

    def mark_saved(self, point: SavePoint) -> None:
        """States that were written elsewhere, by tasks or by a migration, are those of `point`."""
        self.wait()
        self.storage.write(SAVE_POINT, msgspec.json.encode(point))
        self.saved, self.rows = point, 0

    def _is_busy(self) -> bool:
        if self._pending is not None and self._pending.done():
            self.wait()
        return self._pending is not None

    def _write(
        self, point: SavePoint, changes: list[tuple[StateStore, LaterEntries]], previous: int
    ) -> SavePoint:
        for store, entries in changes:
            self.stats.bytes += store.write_changes(
                point.version, encode_entries(entries), previous
            )
        self.storage.write(SAVE_POINT, msgspec.json.encode(point))
        for store, _ in changes:
            self.stats.bytes += store.compact_if_due(point.version)
        return point


def summarize_saves(saver: StateSaver) -> dict[str, int | float]:
    """What metrics and the terminal show."""
    stats = saver.stats
    return {
        "state_saves": stats.saves,
        "state_written_bytes": stats.bytes,
        "state_save_seconds": round(stats.seconds, 3),
        "state_replayed_rows": stats.replayed_rows,
        "state_unsaved_rows": saver.rows,
    }
