"""Check which frames may be sent when, for both sides of a session. Sans-I/O.

Three verbs: `receive` takes bytes and gives a frame; `send` takes a frame; `data_to_send` gives
bytes for the transport. One row of TRANSITIONS per state: the frames that may be received and the
state they lead to. A frame without an entry is the peer's fault and ends the session with a CLOSE
that says why. Server sessions and clients use it.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from edgewise.errors import ProtocolError
from edgewise.wire import codec
from edgewise.wire.codes import ProtocolCode
from edgewise.wire.frames import (
    Ack,
    BudgetFrame,
    Close,
    Delta,
    Error,
    Frame,
    Hello,
    Next,
    Paused,
    Ping,
    Pong,
    Publish,
    Remove,
    Reply,
    Request,
    Resume,
    Stale,
    Subscribe,
    Subscribed,
    TopicFrame,
    Unsubscribe,
    Value,
    Welcome,
    frame_name,
)


class State(enum.Enum):
    NEW = "new"
    OPEN = "open"
    CLOSED = "closed"


# Members by name cost five times as much where each frame passes.
_CLOSED = State.CLOSED


class PeerSide(enum.Enum):
    CLIENT = "client"
    SERVER = "server"


_BOTH = (Ping, Pong, Request, Reply, Error)
_TO_SERVER = (Subscribe, Unsubscribe, Resume, Ack, Publish, BudgetFrame, *_BOTH)
_TO_CLIENT = (Subscribed, TopicFrame, Value, Next, Delta, Remove, Stale, Paused, *_BOTH)

TRANSITIONS: Mapping[PeerSide, Mapping[State, Mapping[Any, State]]] = {
    PeerSide.SERVER: {
        State.NEW: {Hello: State.OPEN, Close: State.CLOSED},
        State.OPEN: dict.fromkeys(_TO_SERVER, State.OPEN) | {Close: State.CLOSED},
        State.CLOSED: {},
    },
    PeerSide.CLIENT: {
        State.NEW: {Welcome: State.OPEN, Close: State.CLOSED},
        State.OPEN: dict.fromkeys(_TO_CLIENT, State.OPEN) | {Close: State.CLOSED},
        State.CLOSED: {},
    },
}


class SessionGrammar:
    """Frames that arrive after the end are dropped: the peer may not have heard of it yet."""

    def __init__(self, side: PeerSide, frame_bytes_max: int = codec.FRAME_BYTES_MAX) -> None:
        self.side = side
        self.state = State.NEW
        self.close: Close | None = None
        self._bytes_max = frame_bytes_max
        self._decode: Callable[[bytes, int], Frame] = (
            codec.decode_from_client if side is PeerSide.SERVER else codec.decode_from_server
        )
        self._row = TRANSITIONS[side][State.NEW]
        self._out: list[bytes] = []

    def receive(self, data: bytes) -> Frame | None:
        """One frame, or None after the end. A broken peer is closed, then ProtocolError raised."""
        if self.state is _CLOSED:
            return None
        try:
            frame = self._decode(data, self._bytes_max)
            if self._row.get(type(frame)) is self.state:
                return frame
            after = self._row.get(type(frame)) or self._refused(frame)
        except ProtocolError as error:
            self.end(error.code, error.reason)
            raise
        self._become(after)
        if isinstance(frame, Close):
            self.close = frame
        return frame

    def send(self, frame: Frame) -> None:
        if self.state is not State.CLOSED:
            self._out.append(codec.encode(frame))

    def end(self, code: int, reason: str) -> None:
        """Send CLOSE; nothing can be sent after it."""
        if self.state is not State.CLOSED:
            self.close = Close(int(code), reason)
            self._out.append(codec.encode(self.close))
            self._become(State.CLOSED)

    def data_to_send(self) -> list[bytes]:
        """One transport message each."""
        if not self._out:
            return []
        out, self._out = self._out, []
        return out

    def _become(self, state: State) -> None:
        self.state = state
        self._row = TRANSITIONS[self.side][state]

    def _refused(self, frame: Frame) -> NoReturn:
        early = self.side is PeerSide.SERVER and self.state is State.NEW
        raise ProtocolError(
            ProtocolCode.HELLO_EXPECTED if early else ProtocolCode.BAD_FRAME,
            f"{frame_name(type(frame))} is not allowed when {self.state.value}",
        )
