"""One client's conversation: what it may say and what follows. Pure: time is an argument.

The wire's grammar decides which frames are legal; here they get their meaning. Answers go through
the outbox like everything else, so a client that does not read its answers is bounded too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from edgewise.edge.config import EdgeConfig
from edgewise.edge.conflate import Outbox
from edgewise.edge.fanout import Fanout
from edgewise.errors import ProtocolError
from edgewise.wire import frames
from edgewise.wire.codes import MEANING, Code
from edgewise.wire.paths import parse_selector
from edgewise.wire.session import Session as Grammar
from edgewise.wire.session import Side, State


class Session:
    """Bytes in by `receive`, bytes out by `take`; `closed` says the transport should follow."""

    def __init__(self, name: str, fanout: Fanout, config: EdgeConfig, now_us: int) -> None:
        self.name = name
        self.outbox = Outbox(config.queue_max, config.control_bytes_max, config.session_topics_max)
        self.opened_us = now_us
        self.heard_us = now_us
        self.pinged_us = now_us
        self.rtt_us = 0
        self.client = ""
        self._grammar = Grammar(Side.SERVER, config.frame_bytes_max)
        self._fanout = fanout
        self._config = config
        self._subscriptions: dict[int, tuple[str, ...]] = {}

    @property
    def open(self) -> bool:
        return self._grammar.state is State.OPEN

    @property
    def closed(self) -> frames.Close | None:
        """Set once the conversation is over, with the reason."""
        return self._grammar.close

    def receive(self, data: bytes, now_us: int) -> None:
        """A peer that breaks the protocol is answered with CLOSE; nothing is raised."""
        self.heard_us = now_us
        try:
            frame = self._grammar.receive(data)
        except ProtocolError:
            self._settle()
            return
        if frame is None:
            return
        act = self._ACTS.get(type(frame))
        if act is not None:
            act(self, frame, now_us)
        self._settle()

    def take(self, bytes_max: int) -> list[bytes]:
        return self.outbox.take(bytes_max)

    def tick(self, now_us: int) -> None:
        """Time passed: handshake, idleness, keep-alive."""
        config = self._config
        if self._grammar.state is State.NEW:
            if now_us - self.opened_us > config.handshake_ms * 1000:
                self.end(Code.HANDSHAKE_TIMEOUT)
        elif now_us - self.heard_us > config.idle_ms * 1000:
            self.end(Code.IDLE)
        elif now_us - self.pinged_us > config.ping_ms * 1000:
            self.pinged_us = now_us
            self._grammar.send(frames.Ping(now_us))
        self._settle()

    def end(self, code: Code, reason: str = "") -> None:
        self._grammar.end(code, reason or MEANING[code])
        self._settle()

    def forget(self) -> None:
        """The transport is gone."""
        self._fanout.forget(self.outbox, self._subscriptions)
        self._subscriptions.clear()

    def _settle(self) -> None:
        for data in self._grammar.data_to_send():
            self.outbox.say(data)
        if self.outbox.overflowed and self.closed is None:
            self._grammar.end(Code.UNREADABLE, MEANING[Code.UNREADABLE])
        if self.outbox:
            self._fanout.dirty[self.outbox] = None

    def _refuse(self, request: int, error: ProtocolError) -> None:
        self._grammar.send(frames.Error(request, int(error.code), error.reason))

    def _hello(self, frame: frames.Hello, now_us: int) -> None:
        if frame.version != frames.VERSION:
            self._grammar.end(
                Code.VERSION_UNKNOWN,
                f"version {frame.version} is not spoken here; use {frames.VERSION}",
            )
            return
        config = self._config
        self.client = frame.options.client[:64]
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
            count = self._fanout.subscribe(self.outbox, frame.id, selector)
        except ProtocolError as error:
            self._refuse(frame.id, error)
            return
        self._subscriptions[frame.id] = selector
        self._grammar.send(frames.Subscribed(frame.id, count))
        for path, _epoch, _to in frame.options.have:
            if self._fanout.tree.get(path) is None:
                # Alias 0 names a path once: what the client still shows is gone.
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
            self._refuse(
                frame.id, ProtocolError(Code.NOT_FOUND, f"no subscription {frame.id} here")
            )
            return
        self._fanout.unsubscribe(self.outbox, frame.id, selector)

    def _ping(self, frame: frames.Ping, now_us: int) -> None:
        self._grammar.send(frames.Pong(frame.n, now_us))

    def _pong(self, frame: frames.Pong, now_us: int) -> None:
        if frame.n == self.pinged_us:
            self.rtt_us = now_us - frame.n

    def _unserved(self, frame: frames.Publish | frames.Request, _now_us: int) -> None:
        self._refuse(frame.id, ProtocolError(Code.NOT_FOUND, f"nothing takes '{frame.path}' here"))

    _ACTS: ClassVar[dict[type, Callable[[Session, Any, int], None]]] = {
        frames.Hello: _hello,
        frames.Subscribe: _subscribe,
        frames.Unsubscribe: _unsubscribe,
        frames.Ping: _ping,
        frames.Pong: _pong,
        frames.Publish: _unserved,
        frames.Request: _unserved,
    }
