"""Define the contract of a lease: the right of one node to write the logs of an app.

A lease is kept beside the logs that it protects, so that every node that can reach the logs asks
the same one. Each win has a higher epoch than all before it. A holder keeps its lease by renewing
it: one that does not renew for `ttl_ms` (dead, stopped, cut off) loses it. Nobody compares clocks:
a contender waits until it has seen no sign of life for longer than `ttl_ms` by its own clock, so
it never wins before the holder has given up by the holder's clock, if both run equally fast within
RATE_MARGIN.

`log/lease_laws.py` proves the contract; directories (`file_lease`) and Kafka (`kafka_lease`) keep
it. `ha/standby.py` holds the lease of a node.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

EPOCH_NONE = 0  # the first win is epoch 1
TTL_MS = 3_000
RATE_MARGIN = 1.2  # a contender waits so much longer than the holder relies on its lease


@dataclass(frozen=True, slots=True)
class LeaseRecord:
    """The last win: its epoch, who won (`host:pid`), when by the winner's clock, and whether it
    has been given back.
    """

    epoch: int
    holder: str
    since_ms: int = 0
    released: bool = False


class Lease(Protocol):
    """One node's access to a lease. Not thread-safe: one owner, one thread. LeaseError where the
    lease cannot be reached.
    """

    @property
    def epoch(self) -> int:
        """The epoch we won, EPOCH_NONE while we hold nothing."""
        ...

    @property
    def fails_with_logs(self) -> bool:
        """Is the lease unreachable only when the logs are? Then a holder that cannot renew goes
        on: it cannot write either, and the logs refuse it once another node has won.
        """
        ...

    def try_acquire(self) -> bool:
        """Win the lease if it is free or its holder has shown no sign of life for too long."""
        ...

    def renew(self) -> bool:
        """Show a sign of life. False if the lease is no longer ours."""
        ...

    def read(self) -> LeaseRecord | None:
        """The last win by anybody; None if there never was one."""
        ...

    def release(self) -> None:
        """Give the lease back, so that the next contender wins at once. Twice is fine."""
        ...
