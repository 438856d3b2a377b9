"""Hold topics by path with their current values and life times. Pure.

A topic's `head` is its newest change. Versions count the changes of one topic; offsets are those
of the log a change came from. A version never repeats within a topic's life. Fanout changes the
tree, routes read it.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from msgspec import Struct

from edgewise.edge.topics.change_queue import ChangeQueue, Fold, TopicChange
from edgewise.edge.topics.merges import Merge
from edgewise.errors import ProtocolError
from edgewise.wire.codes import ProtocolCode
from edgewise.wire.frames import TopicKind
from edgewise.wire.paths import parse_path

SERIES_KEEP = 100  # entries of a series that does not say
SIZE_GUESS = 64  # bytes of a frame nobody has seen yet
GROUPS_MAX = 64  # further groups are counted as one
OTHERS = "(others)"


@dataclass(frozen=True, slots=True)
class Policy:
    """How a topic behaves; from its sink or its publisher."""

    kind: TopicKind = TopicKind.RECORD
    conflate: str = "replace"
    recovery: str = "gap"
    ttl_ms: int = 0  # 0: lives until removed
    stale_ms: int = 0  # 0: never
    keep: int = 0  # entries of a series; changes kept for replay
    weight: float = 1.0

    @property
    def conflatable(self) -> bool:
        return self.conflate != "off"

    @property
    def replaceable(self) -> bool:
        """Whether the current value says all that a client missed."""
        return self.conflatable and self.recovery != "precise"

    @property
    def replays(self) -> bool:
        """Whether past changes are kept for clients that were away or behind."""
        return self.recovery == "precise" or not self.conflatable


class PageRequest(Struct, frozen=True):
    """Rows of one topic from offset `start` on, wanted from the log; they end before `end`."""

    path: str
    start: int
    end: int
    outbox: Any  # whose client waits for them
    deliver: Callable[[HistoryPage | None], None]  # None: the log has not kept all of them


class HistoryPage(Struct, frozen=True):
    """Some of the rows that were asked for, in order, and where the next page begins."""

    rows: list[Publication]
    next: int


class RowHistory(Protocol):
    """Reads past rows of topics, where the edge's own memory does not reach back far enough."""

    def fetch(self, request: PageRequest) -> None:
        """Returns at once; a page is delivered later, by the thread of the sessions."""
        ...


class Publication(Struct, array_like=True, frozen=True, gc=False):
    """One value on its way to a topic, from a feed, a client or another worker."""

    path: str
    value: Any
    offset: int  # of its row in the log it came from
    at_us: int
    epoch: int = 0
    policy: Policy | None = None  # of a topic that is not there yet
    key: str = ""  # the row of a table topic
    remove: bool = False
    whole_from: int = -1  # offset from which this source's history is complete
    history: Any = None  # a RowHistory of where it came from; never sent to another worker


def compose(policy: Policy, before: Any, value: Any, at_us: int, key: str) -> Any:
    """The new current value. Rows of a table replace by key, None removes one; a series appends.

    The old value is never touched: clients may still hold it as their base.
    """
    if policy.kind is TopicKind.TABLE:
        table = dict(before or {})
        if value is None:
            table.pop(key, None)
        else:
            table[key] = value
        return table
    if policy.kind is TopicKind.SERIES:
        entries = before or []
        sequence = entries[-1][0] + 1 if entries else 0
        return [*entries, [sequence, at_us, value]][-(policy.keep or SERIES_KEEP) :]
    return value


class TopicGroup:
    """What was sent of all topics with the same first segment, also of those that are gone."""

    __slots__ = ("bytes", "conflated", "name", "topics", "updates")

    def __init__(self, name: str) -> None:
        self.name = name
        self.topics = 0  # now
        self.updates = 0
        self.bytes = 0
        self.conflated = 0


class Topic:
    """A path with a current value. `subscriptions` are those of all sessions that see it, by
    outbox; `idle` those of them with nothing waiting, to which a change must be offered: where
    something waits already there is nothing to do. What may not be conflated has a `queue`.

    `history` holds the last changes of a topic that promises replay; it is whole from offset
    `whole_from` on. What is older is read from the log by `row_history`, if there is one.
    """

    __slots__ = (
        "alias",
        "armed_us",
        "composed",
        "conflatable",
        "deadline_us",
        "folds",
        "group",
        "head",
        "history",
        "idle",
        "keep",
        "merge",
        "path",
        "policy",
        "queue",
        "replaceable",
        "replays",
        "row_history",
        "segments",
        "shared",
        "size",
        "stale_us",
        "subscriptions",
        "timed",
        "whole_from",
    )

    def __init__(
        self,
        alias: int,
        path: str,
        segments: tuple[str, ...],
        policy: Policy,
        merge: Merge | None = None,
        *,
        group: TopicGroup,
    ) -> None:
        self.group = group
        self.alias = alias
        self.path = path
        self.segments = segments
        self.policy = policy
        self.conflatable = policy.conflatable
        self.replaceable = policy.replaceable
        self.replays = policy.replays
        self.keep = max(1, policy.keep)
        self.composed = policy.kind in {TopicKind.TABLE, TopicKind.SERIES}
        self.shared = False  # comes from here, not from a log that other edges read too
        self.timed = bool(policy.ttl_ms or policy.stale_ms)
        self.merge = merge
        self.head: TopicChange | None = None
        self.subscriptions: dict[Any, Any] = {}
        self.idle: dict[Any, Any] = {}
        self.queue = None if self.conflatable else ChangeQueue()
        self.folds: dict[tuple[int, str], Fold] = {}
        self.history: deque[TopicChange] = deque()
        self.whole_from = -1
        self.row_history: RowHistory | None = None
        self.size = SIZE_GUESS  # of the last frame; the scheduler's estimate of the next
        self.stale_us = 0
        self.deadline_us = 0
        self.armed_us = 0  # the one entry of the deadline heap that counts

    def change(self, epoch: int, to: int, at_us: int, value: Any, key: str = "") -> TopicChange:
        """The new head. What was encoded for the old one is let go, open folds take it in."""
        old = self.head
        version, before = (1, None) if old is None else (old.version + 1, old.value)
        arrived = value
        if self.merge is not None:
            arrived, value = self._merged(self.merge, before, value)
        elif self.composed:
            value = compose(self.policy, before, value, at_us, key)
        if old is not None and self.queue is None:
            old.frames = {}
        if self.folds:
            self._fold_in(value, arrived)
        head = self.head = TopicChange(version, epoch, to, at_us, value=value, arrived=arrived)
        if self.queue is not None:
            self.queue.add(head)
        if self.replays:
            history = self.history
            if self.whole_from < 0:
                self.whole_from = to - 1
            history.append(head)
            if len(history) > self.keep:
                self.whole_from = history.popleft().to
        return head

    def _merged(self, merge: Merge, before: Any, value: Any) -> tuple[Any, Any]:
        """What came in, and with what was there; ProtocolError when they do not go together."""
        try:
            arrived = merge.lift(value)
            return arrived, arrived if before is None else merge.merge(before, arrived)
        except Exception as error:  # the merge may be the user's, and the value anybody's
            reason = f"'{self.path}' does not take this by {merge.name}: {error}"
            raise ProtocolError(ProtocolCode.BAD_VALUE, reason) from error

    def show(self, value: Any) -> Any:
        """A state as clients see it."""
        return value if self.merge is None else self.merge.show(value)

    def _fold_in(self, value: Any, arrived: Any) -> None:
        for fold in self.folds.values():
            lifted = arrived if fold.merge is self.merge else fold.merge.lift(self.show(value))
            fold.value = fold.merge.merge(fold.value, lifted)
            fold.frame = None

    def open_fold(self, change: TopicChange, merge: Merge) -> Fold:
        """The fold of everything from `change` on; it is the head."""
        fold = self.folds.get((change.version, merge.name))
        if fold is None:
            own = merge is not self.merge
            first = merge.lift(self.show(change.value)) if own else change.input
            fold = self.folds[change.version, merge.name] = Fold(change.version, merge, first)
        fold.refs += 1
        return fold

    def close_fold(self, fold: Fold) -> None:
        fold.refs -= 1
        if not fold.refs:
            del self.folds[fold.first, fold.merge.name]

    def since(self, epoch: int, to: int) -> list[TopicChange] | None:
        """Every change after a position, or None when some of them are gone."""
        head = self.head
        if head is None or epoch > head.epoch or to > head.to or to < self.whole_from:
            return None
        return [c for c in self.history if c.to > to]


class _Branch:
    __slots__ = ("children", "topic")

    def __init__(self) -> None:
        self.children: dict[str, _Branch] = {}
        self.topic: Topic | None = None


class TopicTree:
    """All topics of one edge."""

    def __init__(self, topics_max: int) -> None:
        self._root = _Branch()
        self._topics: dict[str, Topic] = {}
        self._topics_max = topics_max
        self.groups: dict[str, TopicGroup] = {}
        self._alias = 0
        self._deadlines: list[tuple[int, str]] = []

    def __len__(self) -> int:
        return len(self._topics)

    def __iter__(self) -> Iterator[Topic]:
        return iter(self._topics.values())

    def get(self, path: str) -> Topic | None:
        return self._topics.get(path)

    def create(self, path: str, policy: Policy, merge: Merge | None = None) -> Topic:
        segments = parse_path(path)
        if len(self._topics) >= self._topics_max:
            raise ProtocolError(
                ProtocolCode.TOO_MANY_TOPICS, f"the tree holds {self._topics_max} topics already"
            )
        branch = self._root
        for segment in segments:
            branch = branch.children.setdefault(segment, _Branch())
        self._alias += 1
        group = self._group(segments[0])
        topic = branch.topic = Topic(self._alias, path, segments, policy, merge, group=group)
        self._topics[path] = topic
        group.topics += 1
        return topic

    def remove(self, path: str) -> Topic | None:
        topic = self._topics.pop(path, None)
        if topic is None:
            return None
        topic.group.topics -= 1
        trail = [self._root]
        for segment in topic.segments:
            trail.append(trail[-1].children[segment])
        trail[-1].topic = None
        for depth in range(len(topic.segments), 0, -1):
            branch = trail[depth]
            if branch.topic is not None or branch.children:
                break
            del trail[depth - 1].children[topic.segments[depth - 1]]
        return topic

    def _group(self, name: str) -> TopicGroup:
        if name not in self.groups and len(self.groups) >= GROUPS_MAX:
            name = OTHERS
        return self.groups.setdefault(name, TopicGroup(name))

    def select(self, selector: tuple[str, ...]) -> Iterator[Topic]:
        """Every topic a parsed selector names."""
        return self._walk(self._root, selector, 0)

    def touch(self, topic: Topic, now_us: int) -> None:
        """The topic changed: its deadline starts anew."""
        waits = [ms for ms in (topic.policy.ttl_ms, topic.policy.stale_ms) if ms]
        if waits:
            self.arm(topic, now_us + min(waits) * 1000)

    def arm(self, topic: Topic, deadline_us: int) -> None:
        """A later deadline waits for the entry already in the heap; an earlier one voids it."""
        topic.deadline_us = deadline_us
        if not topic.armed_us or deadline_us < topic.armed_us:
            topic.armed_us = deadline_us
            heapq.heappush(self._deadlines, (deadline_us, topic.path))

    def due(self, now_us: int) -> Iterator[Topic]:
        """Topics whose deadline has come. The caller decides between stale and expired."""
        while self._deadlines and self._deadlines[0][0] <= now_us:
            entry_us, path = heapq.heappop(self._deadlines)
            topic = self._topics.get(path)
            if topic is None or topic.armed_us != entry_us:
                continue
            topic.armed_us = 0
            if topic.deadline_us > now_us:
                self.arm(topic, topic.deadline_us)
            else:
                yield topic

    def _walk(self, branch: _Branch, selector: tuple[str, ...], depth: int) -> Iterator[Topic]:
        if depth == len(selector):
            if branch.topic is not None:
                yield branch.topic
            return
        want = selector[depth]
        if want == "#":
            yield from self._below(branch, hide_system=depth == 0)
        elif want == "+":
            for name, child in branch.children.items():
                if depth or not name.startswith("$"):
                    yield from self._walk(child, selector, depth + 1)
        elif want in branch.children:
            yield from self._walk(branch.children[want], selector, depth + 1)

    def _below(self, branch: _Branch, *, hide_system: bool) -> Iterator[Topic]:
        if branch.topic is not None:
            yield branch.topic
        for name, child in branch.children.items():
            if not (hide_system and name.startswith("$")):
                yield from self._below(child, hide_system=False)
