"""Track one topic of one session: what the client holds, wants, and still has to get. Pure.

A subscription is in one of six states. What the client has not got yet waits in one of two ways:
where values may be conflated only the topic's head waits (PENDING, or THROTTLED until its rate
allows it), and a newer value takes its turn; where they may not, each change waits in the queue
that all sessions of the topic share (QUEUED).

             VALUE_DUE                 SENT
      IDLE ---------------> PENDING ---------> IDLE
       |  |                    ^
       |  | RATE_EXCEEDED      | RATE_ELAPSED
       |  +--------------> THROTTLED
       |
       | CHANGE_QUEUED                SENT
       +------------------> QUEUED ---------> IDLE
                              |
                              | QUEUE_FULL        PAUSE_SENT
                              +---------> PAUSING ----------> PAUSED

RESET leads from every state to IDLE. Besides its state a subscription may have a backlog, changes
that only this client still needs; they go out first. The outbox uses all of this.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping

from msgspec import Struct

from edgewise.edge.sessions.backlog import Backlog
from edgewise.edge.topics.change_queue import Fold, TopicChange
from edgewise.edge.topics.merges import Merge
from edgewise.edge.topics.tree import Topic
from edgewise.wire.frames import How, TopicKind


class DeliveryState(enum.IntEnum):
    """What of a topic waits for one client."""

    IDLE = 0  # nothing: a change must be offered
    PENDING = 1  # the head, whichever it is when it is sent
    THROTTLED = 2  # likewise, but not before its rate allows it
    QUEUED = 3  # each change, in the topic's queue
    PAUSING = 4  # the rest of the backlog, then the frame that says PAUSED
    PAUSED = 5  # nothing, until the client resumes


class Trigger(enum.IntEnum):
    """What moves a subscription from one state to another."""

    VALUE_DUE = 0  # the client is to get the head
    RATE_EXCEEDED = 1  # likewise, but it had an update too recently
    RATE_ELAPSED = 2
    CHANGE_QUEUED = 3  # a change that may not be conflated
    SENT = 4  # the client has everything
    QUEUE_FULL = 5  # more changes wait than an outbox may queue
    PAUSE_SENT = 6
    RESET = 7  # whatever waits is dropped


_IDLE, _PENDING, _THROTTLED, _QUEUED, _PAUSING, _PAUSED = DeliveryState
_RESET = {Trigger.RESET: _IDLE}

# What has no entry cannot happen: a KeyError here is a defect of the outbox.
TRANSITIONS: Mapping[DeliveryState, Mapping[Trigger, DeliveryState]] = {
    _IDLE: _RESET
    | {
        Trigger.VALUE_DUE: _PENDING,
        Trigger.RATE_EXCEEDED: _THROTTLED,
        Trigger.CHANGE_QUEUED: _QUEUED,
    },
    _PENDING: _RESET | {Trigger.SENT: _IDLE},
    _THROTTLED: _RESET | {Trigger.RATE_ELAPSED: _PENDING},
    _QUEUED: _RESET | {Trigger.SENT: _IDLE, Trigger.QUEUE_FULL: _PAUSING},
    _PAUSING: _RESET | {Trigger.PAUSE_SENT: _PAUSED},
    _PAUSED: _RESET,
}


class Preference(Struct, frozen=True, gc=False):
    """How a client wants its topics. The garbage collector skips it, and a dict of them: there is
    one for each session and topic.
    """

    gap_us: int = 0  # shortest time between two updates of one topic
    weight: float = 1.0
    window: Merge | None = None
    last: int = 0


NO_PREFERENCE = Preference()


class TopicSubscription:
    """`sent` is the change the client holds; `resume_as` says how its next value is sent, and from
    which position, when that is no plain update.
    """

    __slots__ = (
        "announced",
        "backlog",
        "due_us",
        "first",
        "fold",
        "merge",
        "overtaken_us",
        "preference",
        "preferences",
        "resume_as",
        "sent",
        "state",
        "topic",
        "weight",
    )

    def __init__(self, topic: Topic) -> None:
        self.topic = topic
        self.state = DeliveryState.IDLE
        self.sent: TopicChange | None = None
        self.announced = False  # the client knows the alias
        self.backlog: Backlog | None = None
        self.resume_as: tuple[How, int] | None = None
        self.fold: Fold | None = None
        self.overtaken_us = 0  # when the client's value became old
        self.first = 0  # the version that was the head then; later ones are conflated
        self.due_us = 0  # when its rate allows the next update
        self.preferences: dict[int, Preference] = {}  # by subscription of the client
        self.preference = NO_PREFERENCE  # all of them together
        self.weight = topic.policy.weight
        self.merge = topic.merge

    @property
    def covered(self) -> int:
        """The version up to which the client has everything, or the backlog keeps it."""
        sent, backlog = self.sent, self.backlog
        if backlog is not None:
            return backlog.last
        return 0 if sent is None else sent.version

    @property
    def resumes(self) -> bool:
        """Whether the client came back with a position and has not got what it missed yet."""
        return self.backlog is not None or self.resume_as is not None

    @property
    def sendable(self) -> bool:
        """Whether something could be sent now; not while the backlog is read from the log."""
        if self.backlog is not None:
            return bool(self.backlog.changes)
        return self.state in {_PENDING, _QUEUED, _PAUSING}

    @property
    def overtaken(self) -> int:
        """Changes since the one that made the topic pending; none while nothing is pending."""
        topic = self.topic
        head, waits = topic.head, self.state in {_PENDING, _THROTTLED}
        if not waits or head is None or (self.merge is None and not topic.conflatable):
            return 0  # what comes before the first sight of it was not for this client
        return head.version - self.first

    def keep(self, changes: list[TopicChange], last: int) -> None:
        """Add to the backlog what the topic's queue keeps no longer for it."""
        if self.backlog is None:
            self.backlog = Backlog(changes, last)
        else:
            self.backlog.extend(changes, last)

    def prefer(self, subscription_id: int, preference: Preference | None) -> bool:
        """Overlapping subscriptions of a client share a topic: the most demanding wish counts.
        Answers whether updates have another form from now on.
        """
        before = self.merge
        if preference is None:
            self.preferences.pop(subscription_id, None)
        else:
            self.preferences[subscription_id] = preference
        wishes, topic = self.preferences.values(), self.topic
        windows = [wish.window for wish in wishes]
        # Only a record has numbers to aggregate; other kinds come as they are.
        aggregates = topic.policy.kind is TopicKind.RECORD and bool(windows) and all(windows)
        self.preference = Preference(
            gap_us=min((wish.gap_us for wish in wishes), default=0),
            weight=max((wish.weight for wish in wishes), default=1.0),
            window=windows[0] if aggregates else None,
            last=0
            if any(not wish.last for wish in wishes)
            else max((wish.last for wish in wishes), default=0),
        )
        self.weight = topic.policy.weight * self.preference.weight
        self.merge = after = self.preference.window or topic.merge
        return (before and before.name) != (after and after.name)
