"""Define the frames as types. SPEC.md explains them; fields are in the order of the wire.

A frame is one MessagePack array whose first element is its number. Unknown trailing elements and
unknown map keys are ignored, so both sides may grow.
"""

from __future__ import annotations

import enum
from typing import Any

from msgspec import Struct

VERSION = 1


class TopicKind(enum.IntEnum):
    """What a topic's value is."""

    RECORD = 0  # a map of fields
    TABLE = 1  # a map of rows by key
    SERIES = 2  # the last entries, each [sequence, at_us, fields]
    BLOB = 3  # bytes


class How(enum.IntEnum):
    """How a VALUE came to be: what a client may conclude from it."""

    SNAPSHOT = 0  # the current state, first sight of this topic
    UPDATE = 1  # what happened since the last frame of this topic
    CATCH_UP = 2  # the current state after a pause; nothing between is missing from it
    REPLAY = 3  # one past update, exactly as it was
    GAP = 4  # the current state after a pause; exact updates between are lost


class RemoveReason(enum.IntEnum):
    """Why a topic left a session."""

    REMOVED = 0
    EXPIRED = 1
    UNSUBSCRIBED = 2
    FORBIDDEN = 3


class HelloOptions(Struct, omit_defaults=True, frozen=True):
    token: str = ""
    client: str = ""
    bytes_per_s: int = 0
    updates_per_s: int = 0


class Limits(Struct, omit_defaults=True, frozen=True):
    """What the server grants; 0 means no limit."""

    frame_bytes: int = 0
    subscriptions: int = 0
    ping_ms: int = 0
    ack_ms: int = 0


class SubscribeOptions(Struct, omit_defaults=True, frozen=True):
    """`have`: [path, epoch, to] of what the client holds; `window`: aggregates, not values."""

    rate: float = 0.0
    weight: float = 1.0
    window: list[str] = []
    last: int = 0
    have: list[tuple[str, int, int]] = []


class TopicOptions(Struct, omit_defaults=True, frozen=True):
    conflate: str = "replace"
    recovery: str = "gap"
    keep: int = 0


class PublishOptions(Struct, omit_defaults=True, frozen=True):
    kind: int = 0
    remove: bool = False
    key: str = ""


class _Frame(Struct, array_like=True, frozen=True, gc=False):
    pass  # gc: decoded bytes hold no cycles


class Hello(_Frame, frozen=True, tag=1):
    version: int
    options: HelloOptions = HelloOptions()


class Welcome(_Frame, frozen=True, tag=2):
    version: int
    session: str
    now_us: int
    limits: Limits = Limits()


class Subscribe(_Frame, frozen=True, tag=3):
    id: int
    selector: str
    options: SubscribeOptions = SubscribeOptions()


class Subscribed(_Frame, frozen=True, tag=4):
    id: int
    topics: int


class Unsubscribe(_Frame, frozen=True, tag=5):
    id: int


class TopicFrame(_Frame, frozen=True, tag=6):
    alias: int
    path: str
    kind: TopicKind = TopicKind.RECORD
    options: TopicOptions = TopicOptions()


class Value(_Frame, frozen=True, tag=7):
    alias: int
    how: How
    epoch: int
    start: int
    to: int
    count: int
    at_us: int
    value: Any


class Next(_Frame, frozen=True, tag=8):
    """A full value; position and time are relative to the topic's last frame."""

    alias: int
    advance: int
    count: int
    later_us: int
    value: Any


class Delta(_Frame, frozen=True, tag=9):
    """As Next, with a difference to the last value instead of a value."""

    alias: int
    advance: int
    count: int
    later_us: int
    delta: Any


class Remove(_Frame, frozen=True, tag=10):
    alias: int
    reason: RemoveReason = RemoveReason.REMOVED


class Stale(_Frame, frozen=True, tag=11):
    """`since_us` is when the value became stale; 0 says it is fresh again."""

    alias: int
    since_us: int


class Paused(_Frame, frozen=True, tag=12):
    alias: int
    code: int


class Resume(_Frame, frozen=True, tag=13):
    alias: int
    epoch: int
    to: int


class Ping(_Frame, frozen=True, tag=14):
    n: int


class Pong(_Frame, frozen=True, tag=15):
    n: int
    now_us: int = 0


class Ack(_Frame, frozen=True, tag=16):
    """How many VALUE, NEXT and DELTA frames the client has taken in since WELCOME."""

    updates: int


class Publish(_Frame, frozen=True, tag=17):
    id: int
    path: str
    value: Any
    options: PublishOptions = PublishOptions()


class Request(_Frame, frozen=True, tag=18):
    id: int
    path: str
    body: Any


class Reply(_Frame, frozen=True, tag=19):
    id: int
    body: Any = None


class Error(_Frame, frozen=True, tag=20):
    id: int
    code: int
    reason: str = ""


class Close(_Frame, frozen=True, tag=21):
    code: int
    reason: str = ""


class BudgetFrame(_Frame, frozen=True, tag=22):
    """New budgets for the session; 0 lifts one."""

    bytes_per_s: int = 0
    updates_per_s: int = 0


FromClient = (
    Hello
    | Subscribe
    | Unsubscribe
    | Resume
    | Ping
    | Pong
    | Ack
    | Publish
    | Request
    | Reply
    | Error
    | Close
    | BudgetFrame
)
FromServer = (
    Welcome
    | Subscribed
    | TopicFrame
    | Value
    | Next
    | Delta
    | Remove
    | Stale
    | Paused
    | Ping
    | Pong
    | Request
    | Reply
    | Error
    | Close
)
Frame = FromClient | FromServer


def frame_name(kind: type[Frame]) -> str:
    """As SPEC.md calls it. Some types say more: `Topic` and `Budget` name other things here."""
    return kind.__name__.removesuffix("Frame").upper()
