"""Long-lived publishing over a WebSocket, with acknowledgements and credit.

    GET /streams/{stream}/publish[?producer=sensor-7]     upgrade to a WebSocket

    server  {"credit": 64, "last": 41}                     at once
    client  {"id": 42, "events": {...} or [...]}           text frames
    server  {"ack": 42, "accepted": 1, "first": 7, "end": 8, "credit": 64}
    server  {"refused": 42, "error": "invalid", "message": "...", "problems": [...], "credit": 64}

An ack means durable. A client has at most `credit` frames on their way, the number the server
said last; one that sends more than any answer so far allowed is closed with 1008. With `producer`
the ids are its sequence: they only grow, `last` is the highest the log has, and a frame sent again
is acknowledged and not appended (`"duplicate": true`). When a frame could not be appended (it has
`retry_after_s`), later ones are refused until it is sent again: else its number would count as
used. Without `producer` an id is whatever the client likes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, urlsplit

import msgspec

from edgewise.errors import LogError, LogFull
from edgewise.gateway.admit import Admission, Admitted
from edgewise.gateway.intake import Arrivals, Intake, answer_of
from edgewise.gateway.producer import KEY_CHARS_MAX, SEQUENCE_MAX
from edgewise.gateway.refusal import Refused
from edgewise.gateway.stats import DoorStats
from edgewise.log.api import LogWriter

CREDIT_MAX = 64
CREDIT_MIN = 1
PUBLISH = "/publish"
_POLICY, _MALFORMED = 1008, 1007
RETRY_FULL_S = 5
RETRY_BUSY_S = 1


class _Frame(msgspec.Struct):
    id: int
    events: msgspec.Raw


_decode = msgspec.json.Decoder(_Frame).decode


@dataclass(frozen=True, slots=True)
class Lane:
    """One stream as a door sees it."""

    stream: str
    writer: LogWriter
    admission: Admission
    intake: Intake
    arrivals: Arrivals
    stats: DoorStats
    in_flight_bytes_max: int
    keyed: bool  # effectively once: every client must be a named producer


def may_connect(headers: dict[bytes, bytes], origins: frozenset[str]) -> bool:
    """Browsers send no preflight for WebSockets: a page of another site must be turned away."""
    origin = headers.get(b"origin", b"").decode("latin-1")
    host = headers.get(b"host", b"").decode("latin-1")
    return not origin or origin in origins or urlsplit(origin).netloc == host


class Publishing:
    """One connection of one client."""

    def __init__(
        self,
        lane: Lane,
        scope: dict[str, Any],
        receive: Callable[[], Awaitable[dict[str, Any]]],
        send: Callable[[dict[str, Any]], Awaitable[None]],
        denied: Callable[[], Refused | None] = lambda: None,
    ) -> None:
        self._lane = lane
        self._denied = denied  # asked for every frame: a token may expire meanwhile
        query = parse_qs(scope.get("query_string", b"").decode("latin-1"))
        self._producer = query.get("producer", [""])[0]
        self._receive = receive
        self._send = send
        self._received = self._answered = 0
        self._allowed = CREDIT_MAX  # frames since the start; never less than was once said
        self._over = False
        self._hole = SEQUENCE_MAX  # the lowest id that must be sent again before any later one
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        await self._receive()  # websocket.connect
        nameless = self._lane.keyed and not self._producer
        if nameless or len(self._producer) > KEY_CHARS_MAX or not self._producer.isascii():
            await self._send({"type": "websocket.close", "code": _POLICY})
            return
        await self._send({"type": "websocket.accept"})
        hello: dict[str, Any] = {"credit": CREDIT_MAX}
        if self._producer:
            hello["last"] = self._lane.writer.last_sequence(self._producer)
        await self._say(hello)
        while (message := await self._receive())["type"] == "websocket.receive":
            text = message.get("text")
            raw = text.encode() if text is not None else message.get("bytes") or b""
            if not await self._frame(raw):
                return
        # The client is gone: what it sent is appended all the same, nobody waits for the answer.
        self._over = True

    async def _frame(self, raw: bytes) -> bool:
        """False when the connection is over."""
        if (denied := self._denied()) is not None:
            await self._close(_POLICY, denied.message)
            return False
        try:
            frame = _decode(raw)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as bad:
            await self._close(_MALFORMED, f"expected id and events: {bad}")
            return False
        self._received += 1
        if self._received > self._allowed:
            waiting = self._received - 1 - self._answered
            await self._close(_POLICY, f"{waiting} frames wait for their answer, that is all")
            return False
        if self._producer and not 0 <= frame.id <= SEQUENCE_MAX:
            await self._close(_POLICY, "with a producer the id is its sequence: 0 or more")
            return False
        if self._producer and frame.id > self._hole:
            message = f"frame {self._hole} was not appended; send it again first"
            await self._refuse(frame.id, Refused(409, "hole", message, retry_after_s=RETRY_BUSY_S))
            return True
        self._hole = SEQUENCE_MAX
        lane, size = self._lane, len(raw)
        lane.stats.bytes_in += size
        at_us = lane.arrivals.now_us()
        events = lane.admission.read(bytes(frame.events), "application/json", at_us)
        if isinstance(events, Refused):
            await self._refuse(frame.id, events)
            return True
        if lane.stats.bytes_in_flight + size > lane.in_flight_bytes_max:
            message = "too many bytes on their way to the log"
            await self._refuse(frame.id, Refused(429, "busy", message, retry_after_s=RETRY_BUSY_S))
            return True
        lane.arrivals.took(at_us, events.count)
        lane.stats.bytes_in_flight += size
        task = asyncio.create_task(self._append(frame.id, events, size))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return True

    async def _append(self, number: int, events: Admitted, size: int) -> None:
        lane = self._lane
        sequence = number if self._producer else -1
        try:
            got = await lane.intake.append(events, producer=self._producer, sequence=sequence)
        except LogError as bad:
            code = "full" if isinstance(bad, LogFull) else "log"
            await self._refuse(number, Refused(503, code, str(bad), retry_after_s=RETRY_FULL_S))
            return
        finally:
            lane.stats.bytes_in_flight -= size
        known = lane.stats.took(lane.stream, events.count, got)
        answer = {"ack": number, **answer_of(events.count, known, got)}
        await self._say({**answer, "credit": self._next_credit()})

    def _next_credit(self) -> int:
        """Of one more answer. The fuller the door, the less each client may have on its way."""
        used = self._lane.stats.bytes_in_flight / self._lane.in_flight_bytes_max
        credit = max(CREDIT_MIN, int(CREDIT_MAX * (1 - used)))
        self._answered += 1
        # A smaller number never takes back a larger one: frames may be on their way under it.
        self._allowed = max(self._allowed, self._answered + credit)
        return credit

    async def _refuse(self, number: int, why: Refused) -> None:
        self._lane.stats.refused[self._lane.stream, why.code] += 1
        answer: dict[str, Any] = {"refused": number, **why.answer(), "credit": self._next_credit()}
        if why.retry_after_s:
            self._hole = min(self._hole, number)
            answer["retry_after_s"] = why.retry_after_s
        await self._say(answer)

    async def _say(self, answer: dict[str, Any]) -> None:
        if self._over:
            return
        await self._send({"type": "websocket.send", "text": msgspec.json.encode(answer).decode()})

    async def _close(self, code: int, reason: str) -> None:
        self._over = True
        self._lane.stats.refused[self._lane.stream, "protocol"] += 1
        await self._send({"type": "websocket.close", "code": code, "reason": reason[:120]})
