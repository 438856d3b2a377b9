"""The changes of a topic, and the line of those that wait for them in full. Pure.

What may not be conflated waits once for all sessions: each only knows how far it is, so a change
costs nothing per session that waits already. Sessions that are equally far share bytes too.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any, Self

from edgewise.edge.merge import Merge

LOOK_AT = 64  # changes that may be kept before a look at who needs them
RUNS_MAX = 16  # encoded stretches of one line that are kept


class Change:
    """One update. `value` is the topic's state after it, `input` what came in.

    `frames` caches encodings by the version of the base they start from.
    """

    __slots__ = ("at_us", "epoch", "frames", "input", "to", "value", "version")

    def __init__(
        self, version: int, epoch: int, to: int, at_us: int, *, value: Any, arrived: Any
    ) -> None:
        self.version = version
        self.epoch = epoch
        self.to = to
        self.at_us = at_us
        self.value = value
        self.input = arrived
        self.frames: dict[Hashable, bytes] = {}


class Fold:
    """Everything since one version as one value, shared by all sessions that wait since then."""

    __slots__ = ("first", "frame", "merge", "refs", "value")

    def __init__(self, first: int, merge: Merge, value: Any) -> None:
        self.first = first
        self.merge = merge
        self.value = value
        self.refs = 0
        self.frame: bytes | None = None


class Run(tuple[bytes, ...]):  # noqa: SLOT001 - a tuple may not have slots that hold anything
    """Frames for one write that go to many sessions."""

    size: int
    last: Change

    def __new__(cls, frames: Iterable[bytes], last: Change) -> Self:
        run = super().__new__(cls, frames)
        run.size = sum(map(len, run))
        run.last = last
        return run


class Line:
    """Changes by version that somebody waits for, and who: outboxes with their slots. Nobody
    waits for more changes than its outbox may queue.
    """

    __slots__ = ("_look_at", "changes", "runs", "waiting")

    def __init__(self) -> None:
        self.changes: dict[int, Change] = {}
        self.waiting: dict[Any, Any] = {}
        self.runs: dict[tuple[int, int], Run] = {}
        self._look_at = LOOK_AT

    def add(self, change: Change) -> None:
        """The new head of the topic; whoever has nothing waiting may join for it."""
        if not self.waiting:
            self.changes, self.runs = {}, {}
        self.changes[change.version] = change
        if len(self.changes) > self._look_at:
            self._look(change.version)

    def join(self, outbox: Any, slot: Any) -> None:
        self.waiting[outbox] = slot
        self._look_at = min(self._look_at, outbox.queue_max)

    def leave(self, outbox: Any) -> None:
        if self.waiting.pop(outbox, None) is not None and not self.waiting:
            self.changes, self.runs = {}, {}

    def keep(self, first: int, last: int, run: Run) -> None:
        if len(self.runs) >= RUNS_MAX:
            del self.runs[next(iter(self.runs))]
        self.runs[first, last] = run

    def _look(self, head: int) -> None:
        """Who is too far behind is paused, what nobody waits for goes; the head stays."""
        changes = self.changes
        for outbox, slot in [*self.waiting.items()]:
            if head - slot.held > outbox.queue_max:
                outbox.pause(slot, head)
        least = min((slot.held for slot in self.waiting.values()), default=head - 1)
        self.changes = {v: change for v, change in changes.items() if v > least}
        self.runs = {ends: run for ends, run in self.runs.items() if ends[0] >= least}
        limit = min((outbox.queue_max for outbox in self.waiting), default=LOOK_AT)
        self._look_at = min(limit, LOOK_AT + 2 * len(self.changes))
