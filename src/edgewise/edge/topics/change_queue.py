"""Hold the changes of a topic, and the queue of those that may not be conflated. Pure.

What may not be conflated waits once for all sessions: each only knows how far it is, so a change
costs nothing per session that waits already, and sessions that are equally far share bytes too.

    changes      4   5   6   7   8        once for all
    covered      ^3      ^5          ^8   session x needs 4 to 8, y needs 6 to 8, z nothing

A session that is more than its limit behind is paused, so the slowest does not decide how much is
kept. Topics own a queue, outboxes join and leave it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any, Self

from edgewise.edge.topics.merges import Merge

TRIM_AT = 64  # changes that may be kept before those that nobody needs are dropped
RUNS_MAX = 16  # encoded runs of one queue that are kept


class TopicChange:
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


class EncodedRun(tuple[bytes, ...]):  # noqa: SLOT001 - a tuple may not have slots that hold anything
    """Frames for one write that go to many sessions; `last` is the change they lead to."""

    size: int
    last: TopicChange

    def __new__(cls, frames: Iterable[bytes], last: TopicChange) -> Self:
        run = super().__new__(cls, frames)
        run.size = sum(map(len, run))
        run.last = last
        return run


class ChangeQueue:
    """Changes by version that some session waits for, and the outboxes that do with their
    subscriptions. No session waits for more changes than its outbox may queue.
    """

    __slots__ = ("_trim_at", "changes", "members", "runs")

    def __init__(self) -> None:
        self.changes: dict[int, TopicChange] = {}
        self.members: dict[Any, Any] = {}
        self.runs: dict[tuple[int, int], EncodedRun] = {}
        self._trim_at = TRIM_AT

    def add(self, change: TopicChange) -> None:
        """The new head of the topic; sessions that have nothing waiting may join for it."""
        if not self.members:
            self.changes, self.runs = {}, {}
        self.changes[change.version] = change
        if len(self.changes) > self._trim_at:
            self._trim(change.version)

    def join(self, outbox: Any, subscription: Any) -> None:
        self.members[outbox] = subscription
        self._trim_at = min(self._trim_at, outbox.queue_max)

    def leave(self, outbox: Any) -> None:
        if self.members.pop(outbox, None) is not None and not self.members:
            self.changes, self.runs = {}, {}

    def keep(self, first: int, last: int, run: EncodedRun) -> None:
        if len(self.runs) >= RUNS_MAX:
            del self.runs[next(iter(self.runs))]
        self.runs[first, last] = run

    def _trim(self, head: int) -> None:
        """Pause who is too far behind, drop what nobody waits for; the head stays."""
        changes = self.changes
        for outbox, subscription in [*self.members.items()]:
            if head - subscription.covered > outbox.queue_max:
                outbox.pause(subscription, head)
        least = min((s.covered for s in self.members.values()), default=head - 1)
        self.changes = {n: change for n, change in changes.items() if n > least}
        self.runs = {ends: run for ends, run in self.runs.items() if ends[0] >= least}
        limit = min((outbox.queue_max for outbox in self.members), default=TRIM_AT)
        self._trim_at = min(limit, TRIM_AT + 2 * len(self.changes))
