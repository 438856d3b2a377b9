"""Limit one session to bytes and updates per second, by token buckets. Time is an argument.

A budget is declared by the client, granted by its principal, or learned: when bytes pile up
unsent, in the kernel or in a proxy, what leaves is what the link can carry, and we hand over a
little less than that. The pile goes, and what waits does so in the outbox, where it is conflated.
Sessions set budgets, outboxes spend them.
"""

from __future__ import annotations

BURST_S = 0.1  # how much of a second's budget may go out at once
BYTES_BURST_MIN = 1024.0
FRAMES_BURST_MIN = 1.0
UNSENT_MAX = 8 * 1024  # bytes below us from which on the link is what limits
LEARNED_MIN = 1024  # bytes/s: however slow, a session goes on
FORGET_S = 1.0  # measurements further apart say nothing about the link
EASE, PROBE, LIFT = 0.8, 1.25, 4.0  # of what leaves; of the last limit; unused by so much: none
UNLIMITED = 1 << 60


class Bucket:
    """May be overdrawn by one spend; then it waits until there is one whole unit again."""

    __slots__ = ("_at_us", "_left", "_most", "per_s")

    def __init__(self, per_s: float, burst_min: float, now_us: int) -> None:
        self.per_s = per_s
        self._most = max(per_s * BURST_S, burst_min)
        self._left = self._most
        self._at_us = now_us

    def left(self, now_us: int) -> float:
        if now_us > self._at_us:
            self._left = min(
                self._most, self._left + self.per_s * (now_us - self._at_us) / 1_000_000
            )
            self._at_us = now_us
        return self._left

    def spend(self, amount: float) -> None:
        self._left -= amount

    def retune(self, per_s: float, burst_min: float, now_us: int) -> None:
        """Another rate from now on; what is left or owed stays."""
        self.left(now_us)
        self.per_s = per_s
        self._most = max(per_s * BURST_S, burst_min)
        self._left = min(self._left, self._most)

    def ready_us(self) -> int:
        """When there is something to spend again."""
        if self._left >= 1:
            return self._at_us
        return self._at_us + int((1 - self._left) / self.per_s * 1_000_000) + 1


class Budget:
    """What a session may send now. 0 means no limit."""

    __slots__ = ("_bytes", "_updates")

    def __init__(self, bytes_per_s: int, updates_per_s: int, now_us: int) -> None:
        self._bytes: Bucket | None = None
        self._updates: Bucket | None = None
        self.retune(bytes_per_s, updates_per_s, now_us)

    def retune(self, bytes_per_s: int, updates_per_s: int, now_us: int) -> None:
        self._bytes = _retune(self._bytes, bytes_per_s, BYTES_BURST_MIN, now_us)
        self._updates = _retune(self._updates, updates_per_s, FRAMES_BURST_MIN, now_us)

    @property
    def limited(self) -> bool:
        return self._bytes is not None or self._updates is not None

    def bytes_left(self, now_us: int) -> int:
        """0 when either bucket is empty."""
        if self._updates is not None and self._updates.left(now_us) < 1:
            return 0
        if self._bytes is None:
            return UNLIMITED
        return max(0, int(self._bytes.left(now_us)))

    def updates_left(self, now_us: int) -> int:
        if self._updates is None:
            return UNLIMITED
        return max(0, int(self._updates.left(now_us)))

    def spend(self, size: int, updates: int) -> None:
        if self._bytes is not None:
            self._bytes.spend(size)
        if self._updates is not None:
            self._updates.spend(updates)

    def ready_us(self) -> int:
        buckets = [b for b in (self._bytes, self._updates) if b is not None]
        return max((b.ready_us() for b in buckets), default=0)


def _retune(bucket: Bucket | None, per_s: int, burst_min: float, now_us: int) -> Bucket | None:
    if per_s <= 0:
        return None
    if bucket is None:
        return Bucket(per_s, burst_min, now_us)
    bucket.retune(per_s, burst_min, now_us)
    return bucket


class LinkRate:
    """What a link carries, learned from what leaves; `bytes_per_s` is 0 while nothing limits."""

    __slots__ = ("_at_us", "_left", "bytes_per_s", "measured_bytes_per_s")

    def __init__(self, now_us: int) -> None:
        self.bytes_per_s = 0
        self.measured_bytes_per_s = 0  # what left between the last two measurements
        self._at_us = now_us
        self._left = 0

    def observe(self, written: int, unsent: int, now_us: int) -> None:
        """`written` bytes so far, of which `below` have not reached the peer yet."""
        seconds = (now_us - self._at_us) / 1_000_000
        if seconds <= 0:
            return
        left = written - unsent
        if seconds > FORGET_S:
            # The first measurement, or one after a rest: the next one will know the rate.
            self._left, self._at_us = left, now_us
            return
        rate = max(0.0, (left - self._left) / seconds)
        self._left, self._at_us = left, now_us
        self.measured_bytes_per_s = int(rate)
        if unsent > UNSENT_MAX:
            self.bytes_per_s = max(LEARNED_MIN, int(rate * EASE))
        elif self.bytes_per_s > LIFT * rate:
            self.bytes_per_s = 0
        elif self.bytes_per_s:
            self.bytes_per_s = int(self.bytes_per_s * PROBE)
