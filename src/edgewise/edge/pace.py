"""Budgets of one session: bytes and updates per second, as token buckets. Time is an argument."""

from __future__ import annotations

BURST_S = 0.1  # how much of a second's budget may go out at once
FRAMES_BURST_MIN = 1.0
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

    def ready_us(self) -> int:
        """When there is something to spend again."""
        if self._left >= 1:
            return self._at_us
        return self._at_us + int((1 - self._left) / self.per_s * 1_000_000) + 1


class Budget:
    """What a session may send now. 0 means no limit."""

    __slots__ = ("_bytes", "_updates")

    def __init__(self, bytes_per_s: int, updates_per_s: int, now_us: int) -> None:
        self._bytes = Bucket(bytes_per_s, 1024.0, now_us) if bytes_per_s > 0 else None
        self._updates = (
            Bucket(updates_per_s, FRAMES_BURST_MIN, now_us) if updates_per_s > 0 else None
        )

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
