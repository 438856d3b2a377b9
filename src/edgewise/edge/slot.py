"""One client's place on one topic: what it holds, what it wants, how far it is. Pure."""

from __future__ import annotations

from collections import deque

from msgspec import Struct

from edgewise.edge.changes import Change, Fold
from edgewise.edge.merge import Merge
from edgewise.edge.topics import Topic
from edgewise.wire.frames import How, TopicKind


class Want(Struct, frozen=True, gc=False):
    """How a subscription wants its topics. Not looked at for garbage, nor is a dict of them: there
    is one for each session and topic.
    """

    gap_us: int = 0  # shortest time between two updates of one topic
    weight: float = 1.0
    window: Merge | None = None
    last: int = 0


ANY = Want()


class Slot:
    """One client's place on one topic. `sent` is the change the client holds."""

    __slots__ = (
        "due_us",
        "first",
        "fold",
        "gap_us",
        "kept_to",
        "last",
        "lined",
        "merge",
        "paused",
        "replay_to",
        "rest",
        "resumed",
        "sent",
        "since_us",
        "told",
        "topic",
        "waits",
        "wants",
        "weight",
    )

    def __init__(self, topic: Topic) -> None:
        self.topic = topic
        self.sent: Change | None = None
        self.fold: Fold | None = None
        self.told = False
        self.paused = False
        self.waits = False  # for its rate to allow the next update
        self.lined = False  # in the line of an unconflatable topic
        self.rest: deque[Change | None] | None = None  # its own queue; ends with None: paused
        self.kept_to = 0  # the last version in `rest`
        self.replay_to = 0  # changes up to this version are told as replay
        self.resumed: tuple[How, int] | None = None  # how to tell the next value, and since where
        self.since_us = 0  # when the client's value was overtaken
        self.first = 0  # the version that was the head then; later ones are conflated
        self.due_us = 0
        self.wants: dict[int, Want] = {}
        self.gap_us = 0
        self.weight = topic.policy.weight
        self.last = 0
        self.merge = topic.merge

    @property
    def held(self) -> int:
        """The version up to which the client has everything, or this slot keeps it for it."""
        sent = self.sent
        return self.kept_to if sent is None else max(self.kept_to, sent.version)

    def want(self, subscription: int, want: Want | None) -> None:
        """Overlapping subscriptions share a slot: the more demanding wish wins."""
        if want is None:
            self.wants.pop(subscription, None)
        else:
            self.wants[subscription] = want
        wants, topic = self.wants.values(), self.topic
        self.gap_us = min((w.gap_us for w in wants), default=0)
        self.weight = topic.policy.weight * max((w.weight for w in wants), default=1.0)
        self.last = (
            0 if any(not w.last for w in wants) else max((w.last for w in wants), default=0)
        )
        windows = [w.window for w in wants]
        # Only a record has numbers to aggregate; other kinds come as they are.
        plain = topic.policy.kind is TopicKind.RECORD
        own = windows[0] if plain and windows and all(windows) else None
        self.merge = own or topic.merge
