"""Act on the frames of one client. Pure: time is an argument.

The wire's grammar decides which frames are legal; here they get their meaning. Answers go through
the outbox like everything else, so a client that does not read its answers is bounded too. The
server opens a session for each connection of a client.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NoReturn, Protocol

from edgewise.edge.access.auth import AccessControl, Principal
from edgewise.edge.config import EdgeConfig
from edgewise.edge.sessions.budget import Budget, LinkRate
from edgewise.edge.sessions.fanout import Fanout
from edgewise.edge.sessions.outbox import Outbox
from edgewise.edge.sessions.subscription import Preference
from edgewise.edge.topics.merges import window_merge
from edgewise.edge.topics.tree import Topic
from edgewise.errors import ProtocolError, SetupError
from edgewise.wire import frames
from edgewise.wire.codec import encode
from edgewise.wire.codes import MEANING, ProtocolCode
from edgewise.wire.paths import parse_path, parse_selector
from edgewise.wire.session import PeerSide, SessionGrammar, State

RATE_MIN = 0.001  # updates per second


# Looked up once: each frame passes there.
_Publish, _Reply, _NEW = frames.Publish, frames.Reply, State.NEW
NOBODY = Principal("")
FIRST_PING_MS = 1_000
REQUESTS_MAX = 32  # questions to one client that wait for its answer

Done = Callable[[Any, ProtocolError | None], None]


class SessionHost(Protocol):
    """Where sessions live."""

    config: EdgeConfig
    fanout: Fanout
    access: AccessControl

    def dispatch_request(self, session: Session, frame: frames.Request) -> None: ...
    def accept_publish(self, session: Session, frame: frames.Publish, now_us: int) -> bool: ...
    def record_age(self, session: Session, group: str, age_us: int) -> None: ...


class Session:
    """Bytes in by `receive`, bytes out by `take`; `closed` says the transport should follow."""

    def __init__(self, name: str, host: SessionHost, now_us: int) -> None:
        config = host.config
        self.name = name
        self.outbox = Outbox(config.queue_max, config.control_bytes_max, config.session_topics_max)
        self.opened_us = now_us
        self.heard_us = now_us
        self.pinged_us = now_us
        self.rtt_us = 0
        self.age_us = 0
        self.number = 0  # among the sessions of its edge; no secret, unlike the name
        self.client = ""
        self.principal = NOBODY
        self._grammar = SessionGrammar(PeerSide.SERVER, config.frame_bytes_max)
        self._host = host
        self._fanout = host.fanout
        self._config = config
        self._subscriptions: dict[int, tuple[str, ...]] = {}
        self._asked: dict[int, Done] = {}
        self._asks = 0
        self.link = LinkRate(now_us)
        self._declared_budget = (0, 0)  # bytes/s and updates/s that the client asked for
        self._conflated = 0
        self._check_us = 0  # when `tick` has something to check
        self._access_changes = 0
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
        if now_us >= self._check_us or self._access_changes != self._host.access.changes:
            self._check(now_us)
        if not self.outbox.idle:
            self._fanout.dirty[self.outbox] = None  # a budget may have grown meanwhile

    def _check(self, now_us: int) -> None:
        """What is due, and when to check again; permissions may change before that."""
        config, access = self._config, self._host.access
        self._access_changes = access.changes
        if self._grammar.state is _NEW:
            self._check_us = self.opened_us + config.handshake_ms * 1000 + 1
            if now_us >= self._check_us:
                self.end(ProtocolCode.HANDSHAKE_TIMEOUT)
            return
        if now_us - self.heard_us > config.idle_ms * 1000:
            self.end(ProtocolCode.IDLE)
            return
        self._recheck(now_us)
        if now_us - self.pinged_us > config.ping_ms * 1000:
            self.pinged_us = now_us
            self._grammar.send(frames.Ping(now_us))
            self._settle()
        ends_us = (self.heard_us + config.idle_ms * 1000, self.pinged_us + config.ping_ms * 1000)
        self._check_us = min(*ends_us, self.principal.expires_us or ends_us[0]) + 1

    def ask(self, path: str, body: Any, done: Done) -> int:
        """A question to the client, and its number; `done` gets the answer or the error."""
        if self.closed is not None or len(self._asked) >= REQUESTS_MAX:
            done(None, ProtocolError(ProtocolCode.BUSY, "the client takes no question now"))
            return 0
        self._asks += 1
        self._asked[self._asks] = done
        self._grammar.send(frames.Request(self._asks, path, body))
        self._settle()
        return self._asks

    def forget_request(self, number: int) -> None:
        """Nobody waits for that answer any more."""
        self._asked.pop(number, None)

    def reply(self, request: int, body: Any) -> None:
        self._grammar.send(frames.Reply(request, body))
        self._settle()

    def refuse(self, request: int, code: int, reason: str) -> None:
        self._grammar.send(frames.Error(request, int(code), reason))
        self._settle()

    def end(self, code: ProtocolCode, reason: str = "") -> None:
        self._grammar.end(code, reason or MEANING[code])
        self._settle()

    def forget(self) -> None:
        """The transport is gone."""
        self._fanout.forget(self.outbox, self._subscriptions)
        self._subscriptions.clear()
        if self.principal is not NOBODY:
            self._host.access.leave(self.principal)
            self.principal = NOBODY
        asked, self._asked = self._asked, {}
        for done in asked.values():
            done(None, ProtocolError(ProtocolCode.NO_ANSWER, "the session ended"))

    def _settle(self) -> None:
        for data in self._grammar.data_to_send():
            self.outbox.control.add(data)
        if self.outbox.control.overflowed and self.closed is None:
            self._grammar.end(ProtocolCode.UNREADABLE, MEANING[ProtocolCode.UNREADABLE])
            for data in self._grammar.data_to_send():
                self.outbox.control.add(data)
        if not self.outbox.idle:
            self._fanout.dirty[self.outbox] = None

    def _recheck(self, now_us: int) -> None:
        """Permissions are asked again while the session lives."""
        principal = self.principal
        if principal.expires_us and now_us > principal.expires_us:
            self.end(ProtocolCode.TOKEN_EXPIRED)
            return
        current = self._host.access.now(principal)
        if current is None:
            self.end(ProtocolCode.UNAUTHENTICATED, f"'{principal.name}' was revoked")
        elif current is not principal:
            self.principal = current
            self._trusted = None
            self.outbox.may_read = current.may_read
            self._fanout.recheck(self.outbox, self._subscriptions)
            self._retune_budget(now_us)

    def _hello(self, frame: frames.Hello, now_us: int) -> None:
        if frame.version != frames.VERSION:
            self._grammar.end(
                ProtocolCode.VERSION_UNKNOWN,
                f"version {frame.version} is not spoken here; use {frames.VERSION}",
            )
            return
        config = self._config
        try:
            self.principal = self._host.access.enter(frame.options.token)
        except ProtocolError as error:
            self._grammar.end(error.code, error.reason)
            return
        self._check_us = 0
        # The first one soon: then the round trip is known.
        self.pinged_us = now_us - max(0, config.ping_ms - FIRST_PING_MS) * 1000
        self.outbox.may_read = self.principal.may_read
        self.client = frame.options.client[:64]
        self._declared_budget = (frame.options.bytes_per_s, frame.options.updates_per_s)
        self._retune_budget(now_us)
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
                self.outbox, frame.id, selector, _read_preference(frame.options), have
            )
        except ProtocolError as error:
            self.refuse(frame.id, error.code, error.reason)
            return
        self._subscriptions[frame.id] = selector
        self._grammar.send(frames.Subscribed(frame.id, count))
        for path in have:
            topic = self._fanout.tree.get(path)
            if topic is None or topic.alias not in self.outbox.subscriptions:
                # Alias 0 names a path once: what the client still shows is gone, at least for it.
                self._grammar.send(frames.TopicFrame(0, path))
                self._grammar.send(frames.Remove(0))

    def _selector(self, frame: frames.Subscribe) -> tuple[str, ...]:
        limit = self._config.subscriptions_max
        if frame.id in self._subscriptions:
            raise ProtocolError(ProtocolCode.DUPLICATE_ID, f"subscription {frame.id} exists")
        if len(self._subscriptions) >= limit:
            raise ProtocolError(
                ProtocolCode.TOO_MANY_SUBSCRIPTIONS, f"a session may have {limit} subscriptions"
            )
        return parse_selector(frame.selector)

    def _unsubscribe(self, frame: frames.Unsubscribe, _now_us: int) -> None:
        selector = self._subscriptions.pop(frame.id, None)
        if selector is None:
            self.refuse(frame.id, ProtocolCode.NOT_FOUND, f"no subscription {frame.id} here")
            return
        self._fanout.unsubscribe(self.outbox, frame.id, selector)

    def _ack(self, frame: frames.Ack, now_us: int) -> None:
        for _, at_us, group in self.outbox.written.acknowledge(frame.updates):
            self.age_us = now_us - at_us
            self._host.record_age(self, group, self.age_us)

    def _resume(self, frame: frames.Resume, _now_us: int) -> None:
        subscription = self.outbox.subscriptions.get(frame.alias)
        if subscription is not None and subscription.announced:
            self.outbox.resume(subscription, frame.epoch, frame.to)

    def _change_budget(self, frame: frames.BudgetFrame, now_us: int) -> None:
        self._declared_budget = (frame.bytes_per_s, frame.updates_per_s)
        self._retune_budget(now_us)

    def learn(self, unsent: int, now_us: int) -> None:
        """`below` bytes wait under us. Only where there is a choice: something was conflated."""
        outbox = self.outbox
        chosen = outbox.written.conflated != self._conflated or outbox.scheduler.behind
        if not chosen and not self.link.bytes_per_s:
            return
        self._conflated = outbox.written.conflated
        before = self.link.bytes_per_s
        self.link.observe(outbox.written.bytes, unsent, now_us)
        if self.link.bytes_per_s != before:
            self._retune_budget(now_us)

    def _retune_budget(self, now_us: int) -> None:
        """The tightest of what the client wants, its principal may and its link carries."""
        most = self.principal
        granted, learned = (most.bytes_per_s, most.updates_per_s), (self.link.bytes_per_s, 0)
        limits = zip(self._declared_budget, granted, learned, strict=True)
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
            done = self._host.accept_publish(self, frame, now_us)
        except ProtocolError as error:
            self.refuse(frame.id, error.code, error.reason)
        else:
            if done:
                # `_settle` has emptied the grammar's queue, so nothing is overtaken.
                outbox = self.outbox
                outbox.control.add(encode(_Reply(frame.id)))
                self._fanout.dirty[outbox] = None
                if outbox.control.overflowed:
                    self._settle()

    def _request(self, frame: frames.Request, _now_us: int) -> None:
        try:
            path = parse_path(frame.path)
            if not self.principal.may_request(path):
                raise_forbidden("request", frame.path)
        except ProtocolError as error:
            self.refuse(frame.id, error.code, error.reason)
        else:
            self._host.dispatch_request(self, frame)

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
        frames.BudgetFrame: _change_budget,
        frames.Ping: _ping,
        frames.Pong: _pong,
        frames.Request: _request,
        frames.Reply: _reply,
        frames.Error: _error,
    }


def _read_preference(options: frames.SubscribeOptions) -> Preference:
    """How a client wants the topics of a subscription; ProtocolError when that is impossible."""
    finite = math.isfinite(options.rate) and math.isfinite(options.weight)
    if not finite or options.rate < 0 or options.weight <= 0 or options.last < 0:
        raise ProtocolError(
            ProtocolCode.BAD_VALUE, "rate and last must not be negative, weight must be above zero"
        )
    try:
        aggregate = window_merge(options.window) if options.window else None
    except SetupError as error:
        raise ProtocolError(ProtocolCode.BAD_VALUE, str(error)) from error
    gap_us = int(1_000_000 / max(options.rate, RATE_MIN)) if options.rate else 0
    return Preference(gap_us, options.weight, aggregate, options.last)


def raise_forbidden(verb: str, path: str) -> NoReturn:
    raise ProtocolError(ProtocolCode.FORBIDDEN, f"this principal may not {verb} '{path}'")
