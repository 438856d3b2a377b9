"""Roles of a node and the only ways to change them.

Rule 1: every role change is a row of TRANSITIONS; a signal that is absent has no meaning there.
Rule 2: no clock and no I/O; `election` calls us, `node` obeys.

A node that loses its lease goes through FENCED, never straight to STANDBY: whatever it was about
to write must be refused first. A node that gives its lease up (DRAIN) has flushed before, so it
needs no fence. docs/ha.md draws this table.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from types import MappingProxyType


class Role(enum.Enum):
    """What a node does now. The value is the sentence for people."""

    STANDBY = "waits for the lease, writes nothing"
    RECOVERING = "holds the lease, replays the log, serves nothing yet"
    ACTIVE = "holds the lease, writes and serves"
    FENCED = "lost the lease, refuses its own unfinished writes"


class Signal(enum.Enum):
    """Why a role changes."""

    LEASE_WON = "the lease is ours, under a new epoch"
    CAUGHT_UP = "everything that had to be replayed is replayed"
    LEASE_LOST = "another epoch was seen, or ours could not be confirmed in time"
    FLUSH_REFUSED = "no write of the lost epoch can reach the log any more"
    DRAIN = "asked to hand over: writes are flushed, the lease is given back"


TRANSITIONS: Mapping[Role, Mapping[Signal, Role]] = MappingProxyType(
    {
        Role.STANDBY: {Signal.LEASE_WON: Role.RECOVERING},
        Role.RECOVERING: {
            Signal.CAUGHT_UP: Role.ACTIVE,
            Signal.LEASE_LOST: Role.FENCED,
            Signal.DRAIN: Role.STANDBY,
        },
        Role.ACTIVE: {Signal.LEASE_LOST: Role.FENCED, Signal.DRAIN: Role.STANDBY},
        Role.FENCED: {Signal.FLUSH_REFUSED: Role.STANDBY},
    }
)


class IllegalTransition(AssertionError):
    """A bug in `election`: nobody outside can send a signal."""


def after(role: Role, signal: Signal) -> Role:
    """The role that `signal` leads to, by the table and nothing else."""
    try:
        return TRANSITIONS[role][signal]
    except KeyError:
        legal = ", ".join(known.name for known in TRANSITIONS[role])
        raise IllegalTransition(
            f"{signal.name} means nothing to a node in {role.name}; it takes: {legal}"
        ) from None
