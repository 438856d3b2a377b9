"""Limit what one caller of the ingest endpoints may send and have in flight. Pure.

A caller is a principal, or an address where the node has no tokens. Without limits of its own one
publisher could take all bytes in flight, and others would get 429 for as long as it sends.

    rates        events and bytes a second, a token bucket each. A request is admitted before its
                 body is read, while nobody knows how many events it has: so a caller may go into
                 debt by one request, and waits until the debt is paid.
    in flight    requests (open WebSockets too), and a share of the server's bytes in flight

Used by `http` and `websocket`.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from dataclasses import dataclass

from edgewise.gateway.refusal import Refusal

CALLERS_MAX = 10_000  # remembered; those longest silent are forgotten first
BURST_S = 2.0  # a caller that was silent may send as much as in so many seconds at once
RETRY_BUSY_S = 1


@dataclass(frozen=True, slots=True)
class Publisher:
    """Who sends. 0: the server's own limit holds."""

    name: str
    events_per_s: int = 0
    bytes_per_s: int = 0


@dataclass(frozen=True, slots=True)
class QuotaConfig:
    """Of one caller. 0: no limit."""

    events_per_s: int = 0
    bytes_per_s: int = 0
    requests_max: int = 1024
    in_flight_share: float = 0.5  # of the server's bytes in flight


class TokenBucket:
    """`rate` a second; 0: without limit. The level is negative while a debt is paid."""

    __slots__ = ("_filled_s", "_level", "rate")

    def __init__(self, rate: int, now_s: float) -> None:
        self.rate = rate
        self._level, self._filled_s = rate * BURST_S, now_s

    def measure_wait_s(self, now_s: float) -> float:
        """How long until something may be taken; 0 where it may be now."""
        if not self.rate:
            return 0.0
        passed_s = max(0.0, now_s - self._filled_s)
        self._level = min(self.rate * BURST_S, self._level + passed_s * self.rate)
        self._filled_s = now_s
        return 0.0 if self._level > 0 else (1 - self._level) / self.rate

    def take(self, count: int) -> None:
        if self.rate:
            self._level -= count


class CallerUse:
    """What one caller uses now."""

    __slots__ = ("bytes", "bytes_in_flight", "bytes_max", "events", "requests")

    def __init__(self, events: TokenBucket, size: TokenBucket, bytes_max: int) -> None:
        self.events, self.bytes = events, size
        self.requests = 0
        self.bytes_in_flight, self.bytes_max = 0, bytes_max

    def reserve(self, size: int) -> bool:
        """Whether so many bytes more may be in flight; `release` gives them back."""
        if self.bytes_in_flight + size > self.bytes_max:
            return False
        self.bytes_in_flight += size
        return True

    def release(self, size: int) -> None:
        self.bytes_in_flight -= size

    def charge(self, events: int, size: int) -> None:
        self.events.take(events)
        self.bytes.take(size)

    def check_rates(self, now_s: float) -> Refusal | None:
        for what, bucket in (("events", self.events), ("bytes", self.bytes)):
            if wait_s := bucket.measure_wait_s(now_s):
                message = f"you may send {bucket.rate:,} {what} a second; send again later"
                return Refusal(429, "quota", message, retry_after_s=math.ceil(wait_s))
        return None


class Quotas:
    """The use of all callers, by name."""

    def __init__(
        self, config: QuotaConfig, in_flight_bytes_max: int, body_bytes_max: int = 0
    ) -> None:
        """`body_bytes_max`: a caller may always have one body of this size in flight."""
        self._config = config
        share = int(in_flight_bytes_max * config.in_flight_share)
        self._bytes_max = max(share, min(body_bytes_max, in_flight_bytes_max))
        self._uses: OrderedDict[str, CallerUse] = OrderedDict()

    def __len__(self) -> int:
        return len(self._uses)

    def begin(self, caller: Publisher, now_s: float) -> CallerUse | Refusal:
        """Admit a request before its body is read; `end` follows where it is admitted."""
        use = self._find(caller, now_s)
        if self._config.requests_max and use.requests >= self._config.requests_max:
            message = f"you have {use.requests} requests and WebSockets open; wait for an answer"
            return Refusal(429, "quota", message, retry_after_s=RETRY_BUSY_S)
        if (refusal := use.check_rates(now_s)) is not None:
            return refusal
        use.requests += 1
        return use

    @staticmethod
    def end(use: CallerUse) -> None:
        use.requests -= 1

    def _find(self, caller: Publisher, now_s: float) -> CallerUse:
        events_per_s = caller.events_per_s or self._config.events_per_s
        bytes_per_s = caller.bytes_per_s or self._config.bytes_per_s
        use = self._uses.get(caller.name)
        if use is None:
            use = self._uses[caller.name] = CallerUse(
                TokenBucket(events_per_s, now_s),
                TokenBucket(bytes_per_s, now_s),
                self._bytes_max,
            )
            self._forget()
        elif (use.events.rate, use.bytes.rate) != (events_per_s, bytes_per_s):  # a new token
            use.events = TokenBucket(events_per_s, now_s)
            use.bytes = TokenBucket(bytes_per_s, now_s)
        self._uses.move_to_end(caller.name)
        return use

    def _forget(self) -> None:
        """The longest silent ones; not those with a request in flight."""
        for _ in range(len(self._uses) - CALLERS_MAX):
            name, use = self._uses.popitem(last=False)
            if use.requests:
                self._uses[name] = use
