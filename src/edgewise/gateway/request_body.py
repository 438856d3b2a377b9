"""Read the body of one HTTP request within its limits, and unpack it.

All bodies of an ingest server share one budget of bytes in flight, and each caller has a part of
it: a body holds its bytes until its events are durable, so slow disks turn into 429 and not into
memory. Used by `http`.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from edgewise.gateway.quotas import RETRY_BUSY_S, CallerUse
from edgewise.gateway.refusal import Refusal, refuse_request
from edgewise.gateway.stats import ConnectorStats

Receive = Callable[[], Awaitable[dict[str, Any]]]
LINGER_BYTES_MAX = 16 * 1024 * 1024
LINGER_S = 1.0
_GZIP_WINDOW = 31  # zlib's number for: a gzip header and trailer are expected
MEMBERS_MAX = 64  # of one gzip body; a file of many tiny members is an attack


class Disconnected(Exception):
    """The sender closed the connection before its body was complete."""


@dataclass(frozen=True, slots=True)
class BodyLimits:
    bytes_max: int
    in_flight_bytes_max: int
    timeout_s: float


class RequestBody:
    """Reads one request body within the limits, and holds its part of the bytes in flight."""

    def __init__(
        self, limits: BodyLimits, stats: ConnectorStats, use: CallerUse, receive: Receive
    ) -> None:
        self._limits = limits
        self._use = use
        self._stats = stats
        self._receive = receive
        self._reserved = 0

    async def read(self, headers: Mapping[bytes, bytes]) -> bytes | Refusal:
        limit = self._limits.bytes_max
        coding = headers.get(b"content-encoding", b"identity").strip().lower()
        if coding not in {b"identity", b"gzip"}:
            reason = f"'{coding.decode('latin-1')}' is not supported; send gzip or none"
            return refuse_request(415, "encoding", reason, at="Content-Encoding")
        length = headers.get(b"content-length", b"")
        if length.isdigit() and int(length) > limit:
            return _refuse_too_large(limit)
        if length.isdigit() and not self._reserve(int(length)):
            return _refuse_busy()
        raw = await self._read_in_time(limit)
        if isinstance(raw, Refusal):
            return raw
        self._stats.bytes_in += len(raw)
        return self._unpack(raw, limit) if coding == b"gzip" else raw

    async def _read_in_time(self, limit: int) -> bytes | Refusal:
        """As `asyncio.timeout`, in a third of the time: most bodies have already arrived."""
        task = asyncio.current_task()
        assert task is not None
        asked, late = task.cancelling(), False

        def expire() -> None:
            nonlocal late
            late = True
            task.cancel()

        timer = asyncio.get_running_loop().call_later(self._limits.timeout_s, expire)
        try:
            return await self._read_chunks(limit)
        except asyncio.CancelledError:
            if not late or task.uncancel() > asked:
                raise
            reason = f"did not arrive within {self._limits.timeout_s:g} s"
            return refuse_request(408, "slow", reason)
        finally:
            timer.cancel()

    async def _read_chunks(self, limit: int) -> bytes | Refusal:
        chunks: list[bytes] = []
        size = 0
        while True:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise Disconnected
            chunk = message.get("body", b"")
            size += len(chunk)
            if size > limit:
                return _refuse_too_large(limit)
            if size > self._reserved and not self._reserve(size - self._reserved):
                return _refuse_busy()
            chunks.append(chunk)
            if not message.get("more_body", False):
                return chunks[0] if len(chunks) == 1 else b"".join(chunks)

    def _unpack(self, raw: bytes, limit: int) -> bytes | Refusal:
        try:
            body = gunzip(raw, limit)
        except TooLarge as bad:
            return refuse_request(413, "too_large", str(bad))
        except ValueError as bad:
            return refuse_request(400, "encoding", str(bad))
        return body if self._reserve(len(body)) else _refuse_busy()

    def _reserve(self, size: int) -> bool:
        if self._stats.bytes_in_flight + size > self._limits.in_flight_bytes_max:
            return False
        if not self._use.reserve(size):
            return False
        self._stats.bytes_in_flight += size
        self._reserved += size
        return True

    def release(self) -> None:
        self._stats.bytes_in_flight -= self._reserved
        self._use.release(self._reserved)
        self._reserved = 0


def _refuse_too_large(limit: int) -> Refusal:
    reason = f"larger than the limit of {limit} bytes; send smaller batches"
    return refuse_request(413, "too_large", reason)


def _refuse_busy() -> Refusal:
    message = "too many bytes on their way to the log; send again later"
    return Refusal(429, "busy", message, retry_after_s=RETRY_BUSY_S)


async def drain_request(receive: Receive) -> None:
    """Read and drop the rest of a refused body, for a moment.

    A sender that writes all before it reads would get a reset instead of the answer.
    """
    dropped = 0
    with suppress(TimeoutError):
        async with asyncio.timeout(LINGER_S):
            while dropped < LINGER_BYTES_MAX:
                message = await receive()
                dropped += len(message.get("body", b""))
                if message["type"] == "http.disconnect" or not message.get("more_body", False):
                    return


class TooLarge(ValueError):
    """Unpacked, the body is larger than the limit."""


def gunzip(body: bytes, bytes_max: int) -> bytes:
    """The content of a gzip body; TooLarge beyond the limit, ValueError where it is not whole."""
    out = b""
    for _ in range(MEMBERS_MAX):
        member = zlib.decompressobj(_GZIP_WINDOW)
        try:
            out += member.decompress(body, bytes_max - len(out) + 1)
        except zlib.error as bad:
            raise ValueError(f"not gzip: {bad}") from None
        if len(out) > bytes_max:
            raise TooLarge(f"larger than {bytes_max} bytes when unpacked; send smaller batches")
        if not member.eof:
            raise ValueError("gzip body ends too early")
        body = member.unused_data
        if not body:
            return out
    raise ValueError(f"more than {MEMBERS_MAX} gzip members")
