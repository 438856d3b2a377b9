"""Track what a client knows: aliases, positions, current values. Pure.

`take` turns one server frame into the events a user sees. The JavaScript client has the same logic
in `clients/js/edgewise.js`; the golden frames in `tests/golden/wire` hold both to it. Both Python
clients use it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from edgewise.errors import ProtocolError
from edgewise.wire.codes import ProtocolCode
from edgewise.wire.delta import apply
from edgewise.wire.frames import (
    Delta,
    Frame,
    How,
    Next,
    Paused,
    Remove,
    RemoveReason,
    Stale,
    TopicFrame,
    TopicKind,
    Value,
)


@dataclass(frozen=True, slots=True)
class Meta:
    """Where an update stands: offsets `start` up to and without `to`, `count` updates in one."""

    how: How
    epoch: int
    start: int
    to: int
    count: int
    at_us: int
    stale_since_us: int = 0


@dataclass(frozen=True, slots=True)
class Update:
    path: str
    value: Any
    meta: Meta


@dataclass(frozen=True, slots=True)
class Removed:
    path: str
    reason: RemoveReason


@dataclass(frozen=True, slots=True)
class Staled:
    """`since_us` 0: the source speaks again."""

    path: str
    since_us: int


@dataclass(frozen=True, slots=True)
class Stopped:
    """The server holds this topic back, `code` says why; RESUME asks for the rest."""

    path: str
    alias: int
    code: int
    epoch: int
    to: int


Event = Update | Removed | Staled | Stopped


@dataclass(slots=True)
class _Held:
    path: str
    kind: TopicKind
    keep: int
    epoch: int = 0
    to: int = 0
    at_us: int = 0
    value: Any = None
    stale_since_us: int = 0


class View:
    """One session's picture. After a reconnect, `begin` keeps values and positions by path."""

    def __init__(self) -> None:
        self._by_alias: dict[int, _Held] = {}
        self._by_path: dict[str, _Held] = {}
        self.updates = 0  # what ACK reports

    def begin(self) -> None:
        """A new session: aliases are void, what is known by path stays known."""
        self._by_alias.clear()
        self.updates = 0

    def forget(self, path: str) -> None:
        self._by_path.pop(path, None)

    def positions(self) -> list[tuple[str, int, int]]:
        """`have` for SUBSCRIBE after a reconnect."""
        return [(h.path, h.epoch, h.to) for h in self._by_path.values() if h.at_us]

    def value(self, path: str) -> Any:
        held = self._by_path.get(path)
        return None if held is None else held.value

    def take(self, frame: Frame) -> Event | None:
        if isinstance(frame, TopicFrame):
            self._learn(frame)
            return None
        if isinstance(frame, Value | Next | Delta):
            self.updates += 1
            return self._update(frame)
        if isinstance(frame, Remove):
            held = self._held(frame.alias)
            del self._by_alias[frame.alias]
            self._by_path.pop(held.path, None)
            return Removed(held.path, frame.reason)
        if isinstance(frame, Stale):
            held = self._held(frame.alias)
            held.stale_since_us = frame.since_us
            return Staled(held.path, frame.since_us)
        if isinstance(frame, Paused):
            held = self._held(frame.alias)
            return Stopped(held.path, frame.alias, frame.code, held.epoch, held.to)
        return None

    def _learn(self, frame: TopicFrame) -> None:
        held = self._by_path.get(frame.path)
        if held is None or held.kind is not frame.kind:
            held = _Held(frame.path, frame.kind, frame.options.keep)
        held.keep = frame.options.keep
        held.stale_since_us = 0
        self._by_alias[frame.alias] = self._by_path[frame.path] = held

    def _update(self, frame: Value | Next | Delta) -> Update:
        held = self._held(frame.alias)
        if isinstance(frame, Value):
            how, start = frame.how, frame.start
            held.epoch, held.to, held.at_us = frame.epoch, frame.to, frame.at_us
            held.value = frame.value
        else:
            how, start = How.UPDATE, held.to
            held.to += frame.advance
            held.at_us += frame.later_us
            if isinstance(frame, Next):
                held.value = frame.value
            else:
                held.value = apply(held.kind, held.value, frame.delta, held.keep)
        meta = Meta(how, held.epoch, start, held.to, frame.count, held.at_us, held.stale_since_us)
        return Update(held.path, held.value, meta)

    def _held(self, alias: int) -> _Held:
        held = self._by_alias.get(alias)
        if held is None:
            raise ProtocolError(
                ProtocolCode.BAD_FRAME, f"alias {alias} was never declared by TOPIC"
            )
        return held
