"""Define the roles of a node and the only ways to change them.

Rule 1: every role change is a row of TRANSITIONS; a signal that is absent has no meaning there.
Rule 2: no clock and no I/O; `election` decides, `standby` carries out, the node obeys orders.

A transition may give the node an order (Boot, Sync, Switch, Activate, Stop, Fence); the node
answers with the done-signal of that order. Fencing is a transition: a node that loses its lease
goes through STOPPING, never straight back to waiting, because whatever it was about to write must
be refused first. docs/explanation/recovery.md draws this table.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple


class Role(enum.Enum):
    """What a node does now. The value is the sentence for people."""

    INITIAL = "takes no part"
    BOOTING = "loads its app and checks its configuration"
    SYNCING = "prepares what it needs for a takeover"
    STANDBY = "is ready, waits for the lease, writes nothing"
    SWITCHING = "holds the lease, fences the writer before it, opens the logs, opens its sources"
    ACTIVE = "holds the lease, writes and serves"
    STOPPING = "flushes or refuses its writes, then gives the lease back"


class Signal(enum.Enum):
    """Why a role changes."""

    BOOT = "the node is to take part"
    BOOT_DONE = "the app is loaded"
    SYNC_DONE = "the node can take over at any time"
    SWITCH = "the lease is ours, under a new epoch"
    SWITCH_DONE = "the logs are open under our epoch"
    ACTIVATE_DONE = "sources and engine run"
    FENCE = "another epoch was seen, or ours could not be confirmed in time"
    STOP = "asked to hand over or to end"
    STOP_DONE = "no write of our epoch can reach the log any more"


class RoleOrder(enum.Enum):
    """What the node has to do; it answers with the done-signal."""

    BOOT = "load the app"
    SYNC = "prepare a takeover"
    SWITCH = "open the logs under the new epoch and replay"
    ACTIVATE = "open the sources, start the engine, serve"
    STOP = "close the sources, flush and save"
    FENCE = "close the sources, drop what is not written"


class Transition(NamedTuple):
    role: Role
    order: RoleOrder | None = None


TRANSITIONS: Mapping[Role, Mapping[Signal, Transition]] = MappingProxyType(
    {
        Role.INITIAL: {Signal.BOOT: Transition(Role.BOOTING, RoleOrder.BOOT)},
        Role.BOOTING: {
            Signal.BOOT_DONE: Transition(Role.SYNCING, RoleOrder.SYNC),
            Signal.STOP: Transition(Role.STOPPING, RoleOrder.STOP),
        },
        Role.SYNCING: {
            Signal.SYNC_DONE: Transition(Role.STANDBY),
            Signal.STOP: Transition(Role.STOPPING, RoleOrder.STOP),
        },
        Role.STANDBY: {
            Signal.SWITCH: Transition(Role.SWITCHING, RoleOrder.SWITCH),
            Signal.STOP: Transition(Role.STOPPING, RoleOrder.STOP),
        },
        Role.SWITCHING: {
            Signal.SWITCH_DONE: Transition(Role.SWITCHING, RoleOrder.ACTIVATE),
            Signal.ACTIVATE_DONE: Transition(Role.ACTIVE),
            Signal.FENCE: Transition(Role.STOPPING, RoleOrder.FENCE),
            Signal.STOP: Transition(Role.STOPPING, RoleOrder.STOP),
        },
        Role.ACTIVE: {
            Signal.FENCE: Transition(Role.STOPPING, RoleOrder.FENCE),
            Signal.STOP: Transition(Role.STOPPING, RoleOrder.STOP),
        },
        Role.STOPPING: {Signal.STOP_DONE: Transition(Role.INITIAL)},
    }
)


class IllegalTransition(AssertionError):
    """A bug in `election`: nobody outside can send a signal."""


def find_transition(role: Role, signal: Signal) -> Transition:
    """The transition that `signal` causes, by the table and nothing else."""
    try:
        return TRANSITIONS[role][signal]
    except KeyError:
        legal = ", ".join(known.name for known in TRANSITIONS[role])
        raise IllegalTransition(
            f"{signal.name} means nothing to a node in {role.name}; it takes: {legal}"
        ) from None
