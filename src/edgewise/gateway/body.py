"""The body of one HTTP request: read, unpacked and paid for, within limits.

All bodies of a door share one budget of bytes in flight; a body holds its share until its events
are durable.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from edgewise.gateway.inflate import TooLarge, gunzip
from edgewise.gateway.refusal import Refused, refused_body
from edgewise.gateway.stats import DoorStats

Receive = Callable[[], Awaitable[dict[str, Any]]]
RETRY_BUSY_S = 1
LINGER_BYTES_MAX = 16 * 1024 * 1024
LINGER_S = 1.0


class Gone(Exception):
    """The sender closed the connection in the middle of its body."""


@dataclass(frozen=True, slots=True)
class BodyLimits:
    bytes_max: int
    in_flight_bytes_max: int
    timeout_s: float


class Body:
    """Reads one request body within the limits, and holds its share of the bytes in flight."""

    def __init__(self, limits: BodyLimits, stats: DoorStats, receive: Receive) -> None:
        self._limits = limits
        self._stats = stats
        self._receive = receive
        self._reserved = 0

    async def read(self, headers: Mapping[bytes, bytes]) -> bytes | Refused:
        limit = self._limits.bytes_max
        coding = headers.get(b"content-encoding", b"identity").strip().lower()
        if coding not in {b"identity", b"gzip"}:
            reason = f"'{coding.decode('latin-1')}' is not supported; send gzip or none"
            return refused_body(415, "encoding", reason, at="Content-Encoding")
        length = headers.get(b"content-length", b"")
        if length.isdigit() and int(length) > limit:
            return _too_large(limit)
        if length.isdigit() and not self._reserve(int(length)):
            return _busy()
        raw = await self._in_time(limit)
        if isinstance(raw, Refused):
            return raw
        self._stats.bytes_in += len(raw)
        return self._unpack(raw, limit) if coding == b"gzip" else raw

    async def _in_time(self, limit: int) -> bytes | Refused:
        """As `asyncio.timeout` does it, in a third of the time: most bodies are there already."""
        task = asyncio.current_task()
        assert task is not None
        asked, late = task.cancelling(), False

        def expire() -> None:
            nonlocal late
            late = True
            task.cancel()

        timer = asyncio.get_running_loop().call_later(self._limits.timeout_s, expire)
        try:
            return await self._chunks(limit)
        except asyncio.CancelledError:
            if not late or task.uncancel() > asked:
                raise
            reason = f"did not arrive within {self._limits.timeout_s:g} s"
            return refused_body(408, "slow", reason)
        finally:
            timer.cancel()

    async def _chunks(self, limit: int) -> bytes | Refused:
        chunks: list[bytes] = []
        size = 0
        while True:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise Gone
            chunk = message.get("body", b"")
            size += len(chunk)
            if size > limit:
                return _too_large(limit)
            if size > self._reserved and not self._reserve(size - self._reserved):
                return _busy()
            chunks.append(chunk)
            if not message.get("more_body", False):
                return chunks[0] if len(chunks) == 1 else b"".join(chunks)

    def _unpack(self, raw: bytes, limit: int) -> bytes | Refused:
        try:
            body = gunzip(raw, limit)
        except TooLarge as bad:
            return refused_body(413, "too_large", str(bad))
        except ValueError as bad:
            return refused_body(400, "encoding", str(bad))
        return body if self._reserve(len(body)) else _busy()

    def _reserve(self, size: int) -> bool:
        if self._stats.bytes_in_flight + size > self._limits.in_flight_bytes_max:
            return False
        self._stats.bytes_in_flight += size
        self._reserved += size
        return True

    def release(self) -> None:
        self._stats.bytes_in_flight -= self._reserved
        self._reserved = 0


def _too_large(limit: int) -> Refused:
    reason = f"larger than the limit of {limit} bytes; send smaller batches"
    return refused_body(413, "too_large", reason)


def _busy() -> Refused:
    message = "too many bytes on their way to the log; send again a little later"
    return Refused(429, "busy", message, retry_after_s=RETRY_BUSY_S)


async def linger(receive: Receive) -> None:
    """Let a sender that writes first and reads later finish: closing at once would reset it."""
    dropped = 0
    with suppress(TimeoutError):
        async with asyncio.timeout(LINGER_S):
            while dropped < LINGER_BYTES_MAX:
                message = await receive()
                dropped += len(message.get("body", b""))
                if message["type"] == "http.disconnect" or not message.get("more_body", False):
                    return
