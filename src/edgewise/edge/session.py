"""One client's conversation: what it may say and what follows. Pure: time is an argument.

The wire's grammar decides which frames are legal; here they get their meaning. Answers go through
the outbox like everything else, so a client that does not read its answers is bounded too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NoReturn, Protocol

from edgewise.edge.config import EdgeConfig
from edgewise.edge.conflate import Outbox
from edgewise.edge.fanout import Fanout
from edgewise.edge.gate import Gate, Principal
from edgewise.edge.histogram import Histogram
from edgewise.edge.merge import window
from edgewise.edge.pace import Budget, Drain
from edgewise.edge.slot import Want
from edgewise.edge.topics import Topic
from edgewise.errors import ProtocolError, SetupError
from edgewise.wire import frames
from edgewise.wire.codec import encode
from edgewise.wire.codes import MEANING, Code
from edgewise.wire.paths import parse_path, parse_selector
from edgewise.wire.session import Session as Grammar
from edgewise.wire.session import Side, State

RATE_MIN = 0.001  # updates per second


# Looked up once: each frame and each look passes there.
_Publish, _Reply, _NEW = frames.Publish, frames.Reply, State.NEW
NOBODY = Principal("")
FIRST_PING_MS = 1_000
ASKS_MAX = 32  # questions to one client that wait for its answer

Done = Callable[[Any, ProtocolError | None], None]


class Place(Protocol):
    """Where sessions live."""

    config: EdgeConfig
    fanout: Fanout
    gate: Gate

    def asked(self, session: Session, frame: frames.Request) -> None: ...
    def put(self, session: Session, frame: frames.Publish, now_us: int) -> bool: ...
    def aged(self, group: str, age_us: int) -> None: ...


class Session:
    """Bytes in by `receive`, bytes out by `take`; `closed` says the transport should follow."""

    def __init__(self, name: str, place: Place, now_us: int) -> None:
        config = place.config
        self.name = name
        self.outbox = Outbox(config.queue_max, config.control_bytes_max, config.session_topics_max)
        self.opened_us = now_us
        self.heard_us = now_us
        self.pinged_us = now_us
        self.rtt_us = 0
        self.age_us = 0
        self.ages: Histogram | None = None  # since the first acknowledgement
        self.number = 0  # among the sessions of its edge; no secret, unlike the name
        self.client = ""
        self.principal = NOBODY
        self._grammar = Grammar(Side.SERVER, config.frame_bytes_max)
        self._place = place
        self._fanout = place.fanout
        self._config = config
        self._subscriptions: dict[int, tuple[str, ...]] = {}
        self._asked: dict[int, Done] = {}
        self._asks = 0
        self.drain = Drain(now_us)
        self._declared = (0, 0)  # bytes/s and updates/s that the client asked for
        self._overtaken = 0
        self._look_us = 0  # when `tick` has something to look at
        self._asked_gate = 0
        self._trusted: Topic | None = None  # where this principal may publish, asked last

    @property
    def open(self) -> bool:
        return self._grammar.state is State.OPEN

    @property
    def closed(self) -> frames.Close | None:
        """Set once the conversation is over, with the reason."""
        return self._grammar.close

    def receive(self, data: bytes, now_us: int) -> None:
        """A peer that breaks the protocol is answered with CLOSE; nothing is raised."""
        try:
            frame = self._grammar.receive(data)
        except ProtocolError:
            self._settle()
            return
        if frame is None:
            return  # after the end: who talks on and does not read is not kept for it
        self.heard_us = now_us
        if type(frame) is _Publish:
            self._publish(frame, now_us)
            return
        act = self._ACTS.get(type(frame))
        if act is not None:
            act(self, frame, now_us)
        self._settle()

    def take(self, bytes_max: int, now_us: int) -> Sequence[bytes]:
        return self.outbox.take(bytes_max, now_us)

    def tick(self, now_us: int) -> None:
        """Time passed: handshake, idleness, keep-alive, permissions."""
        if now_us >= self._look_us or self._asked_gate != self._place.gate.changes:
            self._look(now_us)
        if not self.outbox.idle:
            self._fanout.dirty[self.outbox] = None  # a budget may have grown meanwhile

    def _look(self, now_us: int) -> None:
        """What is due, and when to look again: nothing can be before, unless permissions change"""
        config, gate = self._config, self._place.gate
        self._asked_gate = gate.changes
        if self._grammar.state is _NEW:
            self._look_us = self.opened_us + config.handshake_ms * 1000 + 1
            if now_us >= self._look_us:
                self.end(Code.HANDSHAKE_TIMEOUT)
            return
        if now_us - self.heard_us > config.idle_ms * 1000:
            self.end(Code.IDLE)
            return
        self._recheck(now_us)
        if now_us - self.pinged_us > config.ping_ms * 1000:
            self.pinged_us = now_us
            self._grammar.send(frames.Ping(now_us))
            self._settle()
        ends_us = (self.heard_us + config.idle_ms * 1000, self.pinged_us + config.ping_ms * 1000)
        self._look_us = min(*ends_us, self.principal.expires_us or ends_us[0]) + 1

    def ask(self, path: str, body: Any, done: Done) -> int:
        """A question to the client, and its number; `done` gets the answer or the error."""
        if self.closed is not None or len(self._asked) >= ASKS_MAX:
            done(None, ProtocolError(Code.BUSY, "the client takes no question now"))
            return 0
        self._asks += 1
        self._asked[self._asks] = done
        self._grammar.send(frames.Request(self._asks, path, body))
        self._settle()
        return self._asks

    def unask(self, number: int) -> None:
        """Nobody waits for that answer any more."""
        self._asked.pop(number, None)

    def reply(self, request: int, body: Any) -> None:
        self._grammar.send(frames.Reply(request, body))
        self._settle()

    def refuse(self, request: int, code: int, reason: str) -> None:
        self._grammar.send(frames.Error(request, int(code), reason))
        self._settle()

    def end(self, code: Code, reason: str = "") -> None:
        self._grammar.end(code, reason or MEANING[code])
        self._settle()

    def forget(self) -> None:
        """The transport is gone."""
        self._fanout.forget(self.outbox, self._subscriptions)
        self._subscriptions.clear()
        if self.principal is not NOBODY:
            self._place.gate.leave(self.principal)
            self.principal = NOBODY
        asked, self._asked = self._asked, {}
        for done in asked.values():
            done(None, ProtocolError(Code.NO_ANSWER, "the session ended"))

    def _settle(self) -> None:
        for data in self._grammar.data_to_send():
            self.outbox.say(data)
        if self.outbox.overflowed and self.closed is None:
            self._grammar.end(Code.UNREADABLE, MEANING[Code.UNREADABLE])
            for data in self._grammar.data_to_send():
                self.outbox.say(data)
        if not self.outbox.idle:
            self._fanout.dirty[self.outbox] = None

    def _recheck(self, now_us: int) -> None:
        """Permissions are asked again while the session lives."""
        principal = self.principal
        if principal.expires_us and now_us > principal.expires_us:
            self.end(Code.TOKEN_EXPIRED)
            return
        current = self._place.gate.now(principal)
        if current is None:
            self.end(Code.UNAUTHENTICATED, f"'{principal.name}' was revoked")
        elif current is not principal:
            self.principal = current
            self._trusted = None
            self.outbox.may_read = current.may_read
            self._fanout.recheck(self.outbox, self._subscriptions)
            self._set_pace(now_us)

    def _hello(self, frame: frames.Hello, now_us: int) -> None:
        if frame.version != frames.VERSION:
            self._grammar.end(
                Code.VERSION_UNKNOWN,
                f"version {frame.version} is not spoken here; use {frames.VERSION}",
            )
            return
        config = self._config
        try:
            self.principal = self._place.gate.enter(frame.options.token)
        except ProtocolError as error:
            self._grammar.end(error.code, error.reason)
            return
        self._look_us = 0
        # The first one soon: then the round trip is known.
        self.pinged_us = now_us - max(0, config.ping_ms - FIRST_PING_MS) * 1000
        self.outbox.may_read = self.principal.may_read
        self.client = frame.options.client[:64]
        self._declared = (frame.options.bytes_per_s, frame.options.updates_per_s)
        self._set_pace(now_us)
        limits = frames.Limits(
            frame_bytes=config.frame_bytes_max,
            subscriptions=config.subscriptions_max,
            ping_ms=config.ping_ms,
            ack_ms=config.ack_ms,
        )
        self._grammar.send(frames.Welcome(frames.VERSION, self.name, now_us, limits))

    def _subscribe(self, frame: frames.Subscribe, _now_us: int) -> None:
        try:
            selector = self._selector(frame)
            have = {path: (epoch, to) for path, epoch, to in frame.options.have}
            count = self._fanout.subscribe(
                self.outbox, frame.id, selector, _want(frame.options), have
            )
        except ProtocolError as error:
            self.refuse(frame.id, error.code, error.reason)
            return
        self._subscriptions[frame.id] = selector
        self._grammar.send(frames.Subscribed(frame.id, count))
        for path in have:
            topic = self._fanout.tree.get(path)
            if topic is None or topic.alias not in self.outbox.slots:
                # Alias 0 names a path once: what the client still shows is gone, at least for it.
                self._grammar.send(frames.Topic(0, path))
                self._grammar.send(frames.Remove(0))

    def _selector(self, frame: frames.Subscribe) -> tuple[str, ...]:
        limit = self._config.subscriptions_max
        if frame.id in self._subscriptions:
            raise ProtocolError(Code.DUPLICATE_ID, f"subscription {frame.id} exists")
        if len(self._subscriptions) >= limit:
            raise ProtocolError(
                Code.TOO_MANY_SUBSCRIPTIONS, f"a session may have {limit} subscriptions"
            )
        return parse_selector(frame.selector)

    def _unsubscribe(self, frame: frames.Unsubscribe, _now_us: int) -> None:
        selector = self._subscriptions.pop(frame.id, None)
        if selector is None:
            self.refuse(frame.id, Code.NOT_FOUND, f"no subscription {frame.id} here")
            return
        self._fanout.unsubscribe(self.outbox, frame.id, selector)

    def _ack(self, frame: frames.Ack, now_us: int) -> None:
        for _, at_us, group in self.outbox.acknowledged(frame.updates):
            self.age_us = now_us - at_us
            self.ages = self.ages or Histogram()
            self.ages.add(max(0, self.age_us) / 1000)
            self._place.aged(group, self.age_us)

    def _resume(self, frame: frames.Resume, _now_us: int) -> None:
        slot = self.outbox.slots.get(frame.alias)
        if slot is not None and slot.told:
            self.outbox.resume(slot, frame.epoch, frame.to)

    def _pace(self, frame: frames.Pace, now_us: int) -> None:
        self._declared = (frame.bytes_per_s, frame.updates_per_s)
        self._set_pace(now_us)

    def learn(self, below: int, now_us: int) -> None:
        """`below` bytes wait under us. Only where there is a choice: something was conflated."""
        outbox = self.outbox
        chosen = outbox.overtaken != self._overtaken or outbox.behind
        if not chosen and not self.drain.bytes_per_s:
            return
        self._overtaken = outbox.overtaken
        before = self.drain.bytes_per_s
        self.drain.observe(outbox.bytes_sent, below, now_us)
        if self.drain.bytes_per_s != before:
            self._set_pace(now_us)

    def _set_pace(self, now_us: int) -> None:
        """The tightest of what the client wants, its principal may and its link carries."""
        most = self.principal
        granted, learned = (most.bytes_per_s, most.updates_per_s), (self.drain.bytes_per_s, 0)
        limits = zip(self._declared, granted, learned, strict=True)
        tight = [min((n for n in three if n > 0), default=0) for three in limits]
        budget = self.outbox.budget or Budget(0, 0, now_us)
        budget.retune(tight[0], tight[1], now_us)
        self.outbox.budget = budget if budget.limited else None

    def _ping(self, frame: frames.Ping, now_us: int) -> None:
        self._grammar.send(frames.Pong(frame.n, now_us))

    def _pong(self, frame: frames.Pong, now_us: int) -> None:
        if frame.n == self.pinged_us:
            self.rtt_us = now_us - frame.n

    def _publish(self, frame: frames.Publish, now_us: int) -> None:
        try:
            topic = self._fanout.tree.get(frame.path)
            if topic is None or topic is not self._trusted:
                path = topic.segments if topic is not None else parse_path(frame.path)
                if not self.principal.may_publish(path):
                    raise_forbidden("publish", frame.path)
                self._trusted = topic
            done = self._place.put(self, frame, now_us)
        except ProtocolError as error:
            self.refuse(frame.id, error.code, error.reason)
        else:
            if done:
                # `_settle` has emptied the grammar's queue, so nothing is overtaken.
                outbox = self.outbox
                outbox.say(encode(_Reply(frame.id)))
                self._fanout.dirty[outbox] = None
                if outbox.overflowed:
                    self._settle()

    def _request(self, frame: frames.Request, _now_us: int) -> None:
        try:
            path = parse_path(frame.path)
            if not self.principal.may_request(path):
                raise_forbidden("request", frame.path)
        except ProtocolError as error:
            self.refuse(frame.id, error.code, error.reason)
        else:
            self._place.asked(self, frame)

    def _reply(self, frame: frames.Reply, _now_us: int) -> None:
        done = self._asked.pop(frame.id, None)
        if done is not None:
            done(frame.body, None)

    def _error(self, frame: frames.Error, _now_us: int) -> None:
        done = self._asked.pop(frame.id, None)
        if done is not None:
            done(None, ProtocolError(frame.code, frame.reason))

    _ACTS: ClassVar[dict[type, Callable[[Session, Any, int], None]]] = {
        frames.Hello: _hello,
        frames.Subscribe: _subscribe,
        frames.Unsubscribe: _unsubscribe,
        frames.Ack: _ack,
        frames.Resume: _resume,
        frames.Pace: _pace,
        frames.Ping: _ping,
        frames.Pong: _pong,
        frames.Request: _request,
        frames.Reply: _reply,
        frames.Error: _error,
    }


def _want(options: frames.SubscribeOptions) -> Want:
    """A subscription's wishes, checked."""
    finite = math.isfinite(options.rate) and math.isfinite(options.weight)
    if not finite or options.rate < 0 or options.weight <= 0 or options.last < 0:
        raise ProtocolError(
            Code.BAD_VALUE, "rate and last must not be negative, weight must be above zero"
        )
    try:
        aggregate = window(options.window) if options.window else None
    except SetupError as error:
        raise ProtocolError(Code.BAD_VALUE, str(error)) from error
    gap_us = int(1_000_000 / max(options.rate, RATE_MIN)) if options.rate else 0
    return Want(gap_us, options.weight, aggregate, options.last)


def raise_forbidden(verb: str, path: str) -> NoReturn:
    raise ProtocolError(Code.FORBIDDEN, f"this principal may not {verb} '{path}'")
