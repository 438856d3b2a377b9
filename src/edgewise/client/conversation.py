"""Keep a client's side of a session without I/O, across reconnects. Pure.

It says what to send after connecting, what each frame means for which subscription, and when to
try again. The async and the sync client only move bytes, so all of this is tested without sockets.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from msgspec import structs

from edgewise.errors import ProtocolError
from edgewise.wire import frames
from edgewise.wire.codes import ProtocolCode, may_retry
from edgewise.wire.paths import parse_path, parse_selector, selects
from edgewise.wire.session import PeerSide, SessionGrammar
from edgewise.wire.view import Event, Stopped, View

FRAME_BYTES_MAX = 16 * 1024 * 1024  # what we accept from a server
BACKOFF_FIRST_S = 0.25
BACKOFF_MOST_S = 10.0
HAVE_ENTRY_BYTES = 24  # of one position, besides its path
HAVE_SPARE_BYTES = 4096  # of SUBSCRIBE, besides its positions


@dataclass(slots=True)
class SubscriptionRequest:
    """A subscription as the user wants it; it outlives connections."""

    id: int
    selector: tuple[str, ...]
    text: str
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Delivery:
    """An event and the subscriptions it is for."""

    event: Event
    ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class CallResult:
    """The end of a PUBLISH or REQUEST: `error` is None when it went well."""

    id: int
    body: Any
    error: ProtocolError | None


@dataclass(frozen=True, slots=True)
class IncomingRequest:
    """The server asks us."""

    id: int
    path: str
    body: Any


@dataclass(frozen=True, slots=True)
class Ended:
    code: int
    reason: str

    @property
    def may_retry(self) -> bool:
        return may_retry(self.code)


Outcome = Delivery | CallResult | IncomingRequest | Ended


def backoff_s(attempt: int, dice: float) -> float:
    """Wait before try number `attempt` (0 is the first retry); `dice` in [0, 1) spreads a herd."""
    most = min(BACKOFF_MOST_S, BACKOFF_FIRST_S * 2.0 ** min(attempt, 16))
    return most / 2 + dice * most / 2


class Conversation:
    """Survives reconnects: `begin` opens the next session with what is known and wanted."""

    def __init__(self, hello: frames.HelloOptions | None = None) -> None:
        self.view = View()
        self.session_name = ""
        self.open = False
        self._hello = hello or frames.HelloOptions()
        self._grammar = SessionGrammar(PeerSide.CLIENT, FRAME_BYTES_MAX)
        self._asks: dict[int, SubscriptionRequest] = {}
        self._next_id = 1
        self._acked = 0
        self._frame_bytes = FRAME_BYTES_MAX

    def begin(self, token: str = "") -> None:
        """Connected: HELLO goes out. What is known by path stays known."""
        self._grammar = SessionGrammar(PeerSide.CLIENT, FRAME_BYTES_MAX)
        self.view.begin()
        self.open = False
        self._acked = 0
        hello = structs.replace(self._hello, token=token) if token else self._hello
        self._grammar.send(frames.Hello(frames.VERSION, hello))

    def receive(self, data: bytes, now_us: int) -> list[Outcome]:
        frame = self._grammar.receive(data)
        if isinstance(frame, frames.Welcome):
            self.open = True
            self.session_name = frame.session
            self._frame_bytes = frame.limits.frame_bytes or FRAME_BYTES_MAX
            for ask in self._asks.values():
                self._send_ask(ask)
        elif isinstance(frame, frames.Ping):
            self._grammar.send(frames.Pong(frame.n, now_us))
        elif isinstance(frame, frames.Reply):
            return [CallResult(frame.id, frame.body, None)]
        elif isinstance(frame, frames.Error):
            return [CallResult(frame.id, None, ProtocolError(frame.code, frame.reason))]
        elif isinstance(frame, frames.Request):
            return [IncomingRequest(frame.id, frame.path, frame.body)]
        elif isinstance(frame, frames.Close):
            return [Ended(frame.code, frame.reason)]
        elif frame is not None:
            return self._deliver(self.view.take(frame))
        return []

    def set_budget(self, bytes_per_s: int, updates_per_s: int) -> None:
        """Another budget from now on, also after a reconnect."""
        self._hello = structs.replace(
            self._hello, bytes_per_s=bytes_per_s, updates_per_s=updates_per_s
        )
        if self.open:
            self._grammar.send(frames.BudgetFrame(bytes_per_s, updates_per_s))

    def data_to_send(self) -> list[bytes]:
        return self._grammar.data_to_send()

    def subscribe(self, selector: str, **options: Any) -> int:
        ask = SubscriptionRequest(self._take_id(), parse_selector(selector), selector, options)
        self._asks[ask.id] = ask
        if self.open:
            self._send_ask(ask)
        return ask.id

    def unsubscribe(self, subscription: int) -> None:
        if self._asks.pop(subscription, None) is not None and self.open:
            self._grammar.send(frames.Unsubscribe(subscription))

    def publish(self, path: str, value: Any, **options: Any) -> int:
        parse_path(path)
        return self._call(
            lambda id_: frames.Publish(id_, path, value, frames.PublishOptions(**options))
        )

    def request(self, path: str, body: Any) -> int:
        return self._call(lambda id_: frames.Request(id_, path, body))

    def reply(self, request: int, body: Any) -> None:
        self._grammar.send(frames.Reply(request, body))

    def refuse(self, request: int, code: ProtocolCode, reason: str) -> None:
        self._grammar.send(frames.Error(request, code, reason))

    def ping(self, now_us: int) -> None:
        """Ask the server for a sign of life."""
        if self.open:
            self._grammar.send(frames.Ping(now_us))

    def ack(self) -> None:
        """Tell the server how far we are, so that it can measure age."""
        if self.open and self.view.updates > self._acked:
            self._acked = self.view.updates
            self._grammar.send(frames.Ack(self._acked))

    def end(self) -> None:
        self._grammar.end(ProtocolCode.DONE, "done")
        self.open = False

    def lost(self) -> None:
        """The transport broke; the session is over, the picture stays."""
        self.open = False

    def _call(self, build: Any) -> int:
        if not self.open:
            raise ProtocolError(ProtocolCode.LOST, "not connected")
        id_ = self._take_id()
        self._grammar.send(build(id_))
        return id_

    def _take_id(self) -> int:
        self._next_id += 1
        return self._next_id - 1

    def _send_ask(self, ask: SubscriptionRequest) -> None:
        have, room = [], self._frame_bytes - HAVE_SPARE_BYTES
        for position in self.view.positions():
            if selects(ask.selector, parse_path(position[0])):
                room -= len(position[0].encode()) + HAVE_ENTRY_BYTES
                if room < 0:
                    break  # the rest comes as snapshots
                have.append(position)
        options = frames.SubscribeOptions(**ask.options, have=have)
        self._grammar.send(frames.Subscribe(ask.id, ask.text, options))

    def _deliver(self, event: Event | None) -> list[Outcome]:
        if event is None:
            return []
        if isinstance(event, Stopped):
            self._grammar.send(frames.Resume(event.alias, event.epoch, event.to))
        path = parse_path(event.path)
        ids = tuple(a.id for a in self._asks.values() if selects(a.selector, path))
        return [Delivery(event, ids)] if ids else []
