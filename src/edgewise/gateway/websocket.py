"""Accept events over a long-lived WebSocket, with acknowledgements and credit.

    GET /streams/{stream}/publish[?producer=sensor-7]     upgrade to a WebSocket

    server  {"credit": 64, "last": 41}                     at once
    client  {"id": 42, "events": {...} or [...]}           text frames
    server  {"ack": 42, "accepted": 1, "first": 7, "end": 8, "credit": 64}
    server  {"refused": 42, "error": "invalid", "message": "...", "problems": [...], "credit": 64}

An ack means durable. A client may have at most `credit` unanswered frames, by the last number the
server sent; a client that sends more than any answer so far allowed is closed with 1008. With
`producer` the ids are its sequence: they only grow, `last` is the highest the log has, and a frame
sent again is acknowledged and not appended (`"duplicate": true`). When a frame could not be
appended (it has `retry_after_s`), later ones are refused until it is sent again: else its number
would count as used. Without `producer` an id is any number that the client likes.

Used by `http`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs

import msgspec

from edgewise.errors import LogError, LogFull
from edgewise.gateway.admit import Admission, AdmittedEvents
from edgewise.gateway.append_queue import AppendQueue, CaptureClock, describe_append
from edgewise.gateway.producer import KEY_CHARS_MAX, SEQUENCE_MAX
from edgewise.gateway.quotas import RETRY_BUSY_S, CallerUse
from edgewise.gateway.refusal import Refusal
from edgewise.gateway.stats import ConnectorStats
from edgewise.log.api import LogWriter

CREDIT_MAX = 64
CREDIT_MIN = 1
PUBLISH = "/publish"
_POLICY, _MALFORMED = 1008, 1007
RETRY_FULL_S = 5


class _Frame(msgspec.Struct):
    id: int
    events: msgspec.Raw


_decode = msgspec.json.Decoder(_Frame).decode


@dataclass(frozen=True, slots=True)
class PublishTarget:
    """One stream, and what publishing to it needs."""

    stream: str
    writer: LogWriter
    admission: Admission
    append_queue: AppendQueue
    capture_clock: CaptureClock
    stats: ConnectorStats
    in_flight_bytes_max: int
    keyed: bool  # effectively once: every client must be a named producer


class PublishSession:
    """One connection of one client."""

    def __init__(
        self,
        target: PublishTarget,
        scope: dict[str, Any],
        receive: Callable[[], Awaitable[dict[str, Any]]],
        send: Callable[[dict[str, Any]], Awaitable[None]],
        *,
        use: CallerUse,
        check_caller: Callable[[], Refusal | None] = lambda: None,
    ) -> None:
        self._target = target
        self._use = use
        self._check_caller = check_caller  # for every frame: a token may expire meanwhile
        query = parse_qs(scope.get("query_string", b"").decode("latin-1"))
        self._producer = query.get("producer", [""])[0]
        self._receive = receive
        self._send = send
        self._received = self._answered = 0
        self._allowed = CREDIT_MAX  # frames since the start; never lowered
        self._closed = False
        self._resend_first = (
            SEQUENCE_MAX  # the lowest id that must be sent again before any later one
        )
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        await self._receive()  # websocket.connect
        needs_producer = self._target.keyed and not self._producer
        if needs_producer or len(self._producer) > KEY_CHARS_MAX or not self._producer.isascii():
            await self._send({"type": "websocket.close", "code": _POLICY})
            return
        await self._send({"type": "websocket.accept"})
        hello: dict[str, Any] = {"credit": CREDIT_MAX}
        if self._producer:
            hello["last"] = self._target.writer.last_sequence(self._producer)
        await self._answer(hello)
        while (message := await self._receive())["type"] == "websocket.receive":
            text = message.get("text")
            raw = text.encode() if text is not None else message.get("bytes") or b""
            if not await self._handle_frame(raw):
                return
        # The client disconnected: what it sent is appended all the same, without an answer.
        self._closed = True

    async def _handle_frame(self, raw: bytes) -> bool:
        """False when the connection was closed."""
        if (refusal := self._check_caller()) is not None:
            await self._close(_POLICY, refusal.message)
            return False
        try:
            frame = _decode(raw)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            await self._close(_MALFORMED, f"expected id and events: {error}")
            return False
        self._received += 1
        if self._received > self._allowed:
            waiting = self._received - 1 - self._answered
            await self._close(
                _POLICY, f"{waiting} frames wait for an answer already; wait for credit"
            )
            return False
        if self._producer and not 0 <= frame.id <= SEQUENCE_MAX:
            await self._close(_POLICY, "with a producer the id is its sequence: 0 or more")
            return False
        if self._producer and frame.id > self._resend_first:
            message = f"frame {self._resend_first} was not appended; send it again first"
            await self._refuse(frame.id, Refusal(409, "hole", message, retry_after_s=RETRY_BUSY_S))
            return True
        if (refusal := self._use.check_rates(asyncio.get_running_loop().time())) is not None:
            await self._refuse(frame.id, refusal)
            return True
        self._resend_first = SEQUENCE_MAX
        target, size = self._target, len(raw)
        target.stats.bytes_in += size
        at_us = target.capture_clock.now_us()
        events = target.admission.read(bytes(frame.events), "application/json", at_us)
        if isinstance(events, Refusal):
            await self._refuse(frame.id, events)
            return True
        full = target.stats.bytes_in_flight + size > target.in_flight_bytes_max
        if full or not self._use.reserve(size):
            message = "too many bytes on their way to the log"
            await self._refuse(frame.id, Refusal(429, "busy", message, retry_after_s=RETRY_BUSY_S))
            return True
        target.capture_clock.advance(at_us, events.count)
        target.stats.bytes_in_flight += size
        self._use.charge(events.count, size)
        task = asyncio.create_task(self._append(frame.id, events, size))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return True

    async def _append(self, number: int, events: AdmittedEvents, size: int) -> None:
        target = self._target
        sequence = number if self._producer else -1
        try:
            appended = await target.append_queue.append(
                events, producer=self._producer, sequence=sequence
            )
        except LogError as error:
            code = "full" if isinstance(error, LogFull) else "log"
            await self._refuse(number, Refusal(503, code, str(error), retry_after_s=RETRY_FULL_S))
            return
        finally:
            target.stats.bytes_in_flight -= size
            self._use.release(size)
        known = target.stats.count_appended(target.stream, events.count, appended)
        answer = {"ack": number, **describe_append(events.count, known, appended)}
        await self._answer({**answer, "credit": self._next_credit()})

    def _next_credit(self) -> int:
        """The credit of one more answer: the more bytes in flight, the less for each client."""
        used = self._target.stats.bytes_in_flight / self._target.in_flight_bytes_max
        credit = max(CREDIT_MIN, int(CREDIT_MAX * (1 - used)))
        self._answered += 1
        # A smaller number does not take back a larger one: frames may be on their way under it.
        self._allowed = max(self._allowed, self._answered + credit)
        return credit

    async def _refuse(self, number: int, why: Refusal) -> None:
        self._target.stats.refused[self._target.stream, why.code] += 1
        answer: dict[str, Any] = {
            "refused": number,
            **why.to_json(),
            "credit": self._next_credit(),
        }
        if why.retry_after_s:
            self._resend_first = min(self._resend_first, number)
            answer["retry_after_s"] = why.retry_after_s
        await self._answer(answer)

    async def _answer(self, answer: dict[str, Any]) -> None:
        if self._closed:
            return
        await self._send({"type": "websocket.send", "text": msgspec.json.encode(answer).decode()})

    async def _close(self, code: int, reason: str) -> None:
        self._closed = True
        self._target.stats.refused[self._target.stream, "protocol"] += 1
        await self._send({"type": "websocket.close", "code": code, "reason": reason[:120]})
