"""Decide who may write: one node's conclusions about the lease, without a clock or I/O.

The lease is kept beside the logs (`log.lease`) and grants each win a higher epoch. Here is what a
node concludes from what it hears. `tick` and `step` return actions, in the order in which they
must be carried out; nothing is done here, so failover is tested in milliseconds.

- A node holds its epoch until `asked_ms + ttl_ms` on its own clock, where `asked_ms` is when it
  sent the question, not when the answer came: others count from later, so a holder gives up before
  anybody else can win, however slow the messages are.
- A node that slept through its own end (a stopped process) may believe in an old epoch until its
  next tick. So epochs are also checked where writes arrive: a lower one is refused.
- Messages that speak of another epoch than ours are late and change nothing, except one that
  shows a higher epoch: then ours is over.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from edgewise.event.position import Position
from edgewise.ha.fsm import TRANSITIONS, Role, RoleOrder, Signal, find_transition
from edgewise.log.lease import EPOCH_NONE, TTL_MS


@dataclass(frozen=True, slots=True)
class ElectionConfig:
    """A standby notices a free lease within `attempt_ms`; a holder that cannot confirm its lease
    stops within `ttl_ms`, and has several tries (`renew_ms`) before that.
    """

    attempt_ms: int = 200
    renew_ms: int = 500
    ttl_ms: int = TTL_MS

    def __post_init__(self) -> None:
        if self.attempt_ms <= 0:
            raise ValueError(f"attempt_ms must be positive, not {self.attempt_ms}")
        if not 0 < 2 * self.renew_ms <= self.ttl_ms:
            raise ValueError(
                f"ttl_ms ({self.ttl_ms}) must leave room for two renewals "
                f"(renew_ms is {self.renew_ms}): one lost answer is no reason to stop"
            )


@dataclass(frozen=True, slots=True)
class _OfEpoch:
    epoch: int

    def __str__(self) -> str:
        return f"{type(self).__name__}(epoch={self.epoch})"


@dataclass(frozen=True, slots=True)
class LeaseWon:
    """We asked at `asked_ms` and won; `checkpoint` is where our state was last saved."""

    epoch: int
    asked_ms: int
    checkpoint: Position


@dataclass(frozen=True, slots=True)
class LeaseKept:
    """The lease was still ours after `asked_ms`."""

    epoch: int
    asked_ms: int


@dataclass(frozen=True, slots=True)
class LeaseSeen(_OfEpoch):
    """Somebody else holds the lease under this epoch."""


@dataclass(frozen=True, slots=True)
class LeaseGone(_OfEpoch):
    """`epoch` holds no longer, whether or not somebody has the lease now."""


@dataclass(frozen=True, slots=True)
class OrderDone:
    """The node has carried out an order."""

    order: RoleOrder
    epoch: int


@dataclass(frozen=True, slots=True)
class StopRequest:
    """Hand over. The node takes part again after `rejoin_ms`; None: never."""

    rejoin_ms: int | None = None


Message: TypeAlias = LeaseWon | LeaseKept | LeaseSeen | LeaseGone | OrderDone | StopRequest


@dataclass(frozen=True, slots=True)
class TryAcquire:
    """To the lease: ask for it; the answer names `asked_ms`."""

    asked_ms: int

    def __str__(self) -> str:
        return "TryAcquire"


@dataclass(frozen=True, slots=True)
class Renew(_OfEpoch):
    """To the lease: is it still ours?"""

    asked_ms: int


@dataclass(frozen=True, slots=True)
class Release(_OfEpoch):
    """To the lease: we are done with it."""


@dataclass(frozen=True, slots=True)
class NodeOrder:
    """To the node: what to do, under which epoch; a switch replays from `start`."""

    order: RoleOrder
    epoch: int
    start: Position | None = None

    def __str__(self) -> str:
        name = self.order.name.capitalize()
        if self.start is not None:
            return f"{name}(epoch={self.epoch}, from={self.start})"
        return f"{name}(epoch={self.epoch})" if self.epoch != EPOCH_NONE else name


LeaseAction: TypeAlias = TryAcquire | Renew | Release
Action: TypeAlias = NodeOrder | LeaseAction

_DONE = {
    RoleOrder.BOOT: Signal.BOOT_DONE,
    RoleOrder.SYNC: Signal.SYNC_DONE,
    RoleOrder.SWITCH: Signal.SWITCH_DONE,
    RoleOrder.ACTIVATE: Signal.ACTIVATE_DONE,
    RoleOrder.STOP: Signal.STOP_DONE,
    RoleOrder.FENCE: Signal.STOP_DONE,
}
_HOLDERS = frozenset({Role.SWITCHING, Role.ACTIVE})


class Election:
    """One node in the race. Only `_change_role` writes its role."""

    def __init__(self, config: ElectionConfig) -> None:
        self._config = config
        self._role = Role.INITIAL
        self._willing = True
        self._epoch = EPOCH_NONE  # the one we hold or give back
        self._epoch_seen = EPOCH_NONE  # the highest anybody held; never falls
        self._fenced = False  # in STOPPING: the lease is not ours any more
        self._now_ms = 0  # as of the last tick
        self._held_until_ms = 0
        self._asked_ms: int | None = None  # an unanswered TryAcquire
        self._next_ask_ms: int | None = None  # None: at the next tick
        self._rejoin_at_ms = 0

    @property
    def role(self) -> Role:
        return self._role

    @property
    def epoch(self) -> int:
        return self._epoch

    @property
    def finished(self) -> bool:
        """Stopped for good, with nothing left to refuse or to give back."""
        return not self._willing and self._role is Role.INITIAL

    @property
    def _confirming(self) -> bool:
        """Does the lease have to be confirmed? Also while writes are flushed."""
        flushing = self._role is Role.STOPPING and self._epoch != EPOCH_NONE and not self._fenced
        return self._role in _HOLDERS or flushing

    def tick(self, now_ms: int) -> tuple[Action, ...]:
        """Time passed. `now_ms` is this node's own clock and never runs backwards."""
        self._now_ms = now_ms
        if self._role is Role.INITIAL:
            joins = self._willing and now_ms >= self._rejoin_at_ms
            return self._change_role(Signal.BOOT) if joins else ()
        if self._role is Role.STANDBY:
            return self._tick_standby(now_ms)
        return self._tick_holder(now_ms) if self._confirming else ()

    def step(self, message: Message) -> tuple[Action, ...]:
        """Something was heard."""
        match message:
            case LeaseWon():
                return self._step_won(message)
            case LeaseKept(epoch, asked_ms):
                if epoch == self._epoch:
                    held_until_ms = asked_ms + self._config.ttl_ms
                    self._held_until_ms = max(self._held_until_ms, held_until_ms)
                return ()
            case LeaseSeen(epoch):
                return self._step_seen(epoch)
            case LeaseGone(epoch):
                return self._lose_lease() if epoch == self._epoch else ()
            case OrderDone(order, epoch):
                return self._step_done(_DONE[order], epoch)
            case StopRequest(rejoin_ms):
                return self._step_stop(rejoin_ms)

    def _tick_standby(self, now_ms: int) -> tuple[Action, ...]:
        if self._next_ask_ms is not None and now_ms < self._next_ask_ms:
            return ()
        # One question at a time: two wins of one node would fence each other. An answer that
        # takes longer than the lease lasts is useless, so then we may ask again.
        if self._asked_ms is not None and now_ms < self._asked_ms + self._config.ttl_ms:
            return ()
        self._asked_ms = now_ms
        self._next_ask_ms = now_ms + self._config.attempt_ms
        return (TryAcquire(now_ms),)

    def _tick_holder(self, now_ms: int) -> tuple[Action, ...]:
        if now_ms >= self._held_until_ms:
            return self._lose_lease()
        if self._next_ask_ms is not None and now_ms < self._next_ask_ms:
            return ()
        self._next_ask_ms = now_ms + self._config.renew_ms
        return (Renew(self._epoch, now_ms),)

    def _step_won(self, won: LeaseWon) -> tuple[Action, ...]:
        if won.epoch <= self._epoch_seen:
            return ()  # an answer from the past: somebody has been here since
        if self._role in _HOLDERS:
            return self._step_seen(won.epoch)
        self._epoch_seen = won.epoch
        self._asked_ms = None
        expired = self._now_ms >= won.asked_ms + self._config.ttl_ms
        if expired or self._role is not Role.STANDBY:
            return (Release(won.epoch),)
        self._epoch = won.epoch
        self._fenced = False
        self._held_until_ms = won.asked_ms + self._config.ttl_ms
        self._next_ask_ms = won.asked_ms + self._config.renew_ms
        return self._change_role(Signal.SWITCH, won.checkpoint)

    def _step_seen(self, epoch: int) -> tuple[Action, ...]:
        self._asked_ms = None
        self._epoch_seen = max(self._epoch_seen, epoch)
        return self._lose_lease() if epoch > self._epoch else ()

    def _step_done(self, signal: Signal, epoch: int) -> tuple[Action, ...]:
        if signal not in TRANSITIONS[self._role] or epoch != self._epoch:
            return ()  # the order is out of date
        if signal is not Signal.STOP_DONE:
            return self._change_role(signal)
        self._change_role(signal)
        self._epoch = EPOCH_NONE
        self._asked_ms = None
        self._next_ask_ms = None
        # A lease that only we believed lost is free at once; releasing a lost one does nothing.
        return (Release(epoch),) if epoch != EPOCH_NONE else ()

    def _step_stop(self, rejoin_ms: int | None) -> tuple[Action, ...]:
        self._willing = self._willing and rejoin_ms is not None
        self._rejoin_at_ms = self._now_ms + (rejoin_ms or 0)
        if self._role in {Role.INITIAL, Role.STOPPING}:
            return ()
        return self._change_role(Signal.STOP)

    def _lose_lease(self) -> tuple[Action, ...]:
        if not self._confirming:
            return ()
        self._fenced = True
        # In STOPPING the node flushes already; the log refuses what comes too late.
        return () if self._role is Role.STOPPING else self._change_role(Signal.FENCE)

    def _change_role(self, signal: Signal, start: Position | None = None) -> tuple[Action, ...]:
        self._role, order = find_transition(self._role, signal)
        return () if order is None else (NodeOrder(order, self._epoch, start),)
