"""Who may write: one node's view of the lease, decided without a clock.

The lease lives elsewhere (a file, a table, a broker) and grants each win a higher epoch. Here is
what a node concludes from what it hears. `tick` and `step` answer with actions, in the order in
which they must be carried out; nothing is done here.

- A node holds its epoch until `asked_ms + ttl_ms` on its own clock, where `asked_ms` is when it
  sent the question, not when the answer came: the home of the lease counts from later, so a
  holder gives up before anybody else can win, however slow the messages are.
- A node that slept through its own end (a paused process) may believe in an old epoch until its
  next tick. So epochs are also checked where writes arrive: a lower one is refused.
- Messages that speak of another epoch than ours are late and change nothing, except one that
  shows a higher epoch: then ours is over.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from edgewise.event.position import Position
from edgewise.ha.fsm import Role, Signal, after

EPOCH_NONE = 0  # the first win is epoch 1


@dataclass(frozen=True, slots=True)
class ElectionConfig:
    """A standby notices a free lease within `attempt_ms`; a holder that cannot confirm its lease
    stops within `ttl_ms`, and has several tries (`renew_ms`) before that.
    """

    attempt_ms: int = 200
    renew_ms: int = 500
    ttl_ms: int = 2_000

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
class CaughtUp(_OfEpoch):
    """The node has replayed what it was told to."""


@dataclass(frozen=True, slots=True)
class WritesRefused(_OfEpoch):
    """The node has made sure that no write of `epoch` reaches the log any more."""


@dataclass(frozen=True, slots=True)
class Drain:
    """Hand over, and stay out from now on."""


Message: TypeAlias = (
    LeaseWon | LeaseKept | LeaseSeen | LeaseGone | CaughtUp | WritesRefused | Drain
)


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
class Replay:
    """To the node: open the logs under `epoch`, compute again from `start`, say CaughtUp."""

    epoch: int
    start: Position

    def __str__(self) -> str:
        return f"Replay(from={self.start})"


@dataclass(frozen=True, slots=True)
class Promote(_OfEpoch):
    """To the node: open the doors, write and serve."""


@dataclass(frozen=True, slots=True)
class RefuseWrites(_OfEpoch):
    """To the node: close the doors, drop what is not written, then say WritesRefused."""


@dataclass(frozen=True, slots=True)
class StepDown(_OfEpoch):
    """To the node: close the doors, flush and save. The lease goes when this is done."""


NodeAction: TypeAlias = Replay | Promote | RefuseWrites | StepDown
LeaseAction: TypeAlias = TryAcquire | Renew | Release
Action: TypeAlias = NodeAction | LeaseAction


class Election:
    """One node in the race. Only the `_become_*` methods write its role."""

    def __init__(self, config: ElectionConfig) -> None:
        self._config = config
        self._role = Role.STANDBY
        self._willing = True
        self._epoch = EPOCH_NONE  # the one we hold; EPOCH_NONE in STANDBY
        self._epoch_seen = EPOCH_NONE  # the highest anybody held; never falls
        self._now_ms = 0  # as of the last tick
        self._held_until_ms = 0
        self._asked_ms: int | None = None  # an unanswered TryAcquire
        self._next_ask_ms: int | None = None  # None: at the next tick

    @property
    def role(self) -> Role:
        return self._role

    @property
    def epoch(self) -> int:
        return self._epoch

    @property
    def finished(self) -> bool:
        """Drained, with nothing left to refuse or to give back."""
        return not self._willing and self._role is Role.STANDBY

    @property
    def _holding(self) -> bool:
        return self._role in {Role.RECOVERING, Role.ACTIVE}

    def tick(self, now_ms: int) -> tuple[Action, ...]:
        """Time passed. `now_ms` is this node's own clock and never runs backwards."""
        self._now_ms = now_ms
        match self._role:
            case Role.STANDBY:
                return self._tick_standby(now_ms)
            case Role.RECOVERING | Role.ACTIVE:
                return self._tick_holder(now_ms)
            case Role.FENCED:
                return ()

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
                current = epoch == self._epoch and self._holding
                return self._become_fenced() if current else ()
            case CaughtUp(epoch):
                current = epoch == self._epoch and self._role is Role.RECOVERING
                return self._become_active() if current else ()
            case WritesRefused(epoch):
                current = epoch == self._epoch and self._role is Role.FENCED
                return self._become_standby(Signal.FLUSH_REFUSED) if current else ()
            case Drain():
                return self._step_drain()

    def _tick_standby(self, now_ms: int) -> tuple[Action, ...]:
        if not self._willing or (self._next_ask_ms is not None and now_ms < self._next_ask_ms):
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
            return self._become_fenced()
        if self._next_ask_ms is not None and now_ms < self._next_ask_ms:
            return ()
        self._next_ask_ms = now_ms + self._config.renew_ms
        return (Renew(self._epoch, now_ms),)

    def _step_won(self, won: LeaseWon) -> tuple[Action, ...]:
        if won.epoch <= self._epoch_seen:
            return ()  # an answer from the past: somebody has been here since
        if self._role is not Role.STANDBY:
            return self._step_seen(won.epoch)
        self._epoch_seen = won.epoch
        expired = self._now_ms >= won.asked_ms + self._config.ttl_ms
        if expired or not self._willing:
            self._asked_ms = None
            return (Release(won.epoch),)
        return self._become_recovering(won)

    def _step_seen(self, epoch: int) -> tuple[Action, ...]:
        self._asked_ms = None
        lost = self._holding and epoch > self._epoch
        self._epoch_seen = max(self._epoch_seen, epoch)
        return self._become_fenced() if lost else ()

    def _step_drain(self) -> tuple[Action, ...]:
        self._willing = False
        if not self._holding:
            return ()  # nothing to hand over; a FENCED node still refuses its writes first
        return (StepDown(self._epoch), *self._become_standby(Signal.DRAIN))

    def _become_recovering(self, won: LeaseWon) -> tuple[Action, ...]:
        self._role = after(self._role, Signal.LEASE_WON)
        self._epoch = won.epoch
        self._held_until_ms = won.asked_ms + self._config.ttl_ms
        self._asked_ms = None
        self._next_ask_ms = won.asked_ms + self._config.renew_ms
        return (Replay(won.epoch, won.checkpoint),)

    def _become_active(self) -> tuple[Action, ...]:
        self._role = after(self._role, Signal.CAUGHT_UP)
        return (Promote(self._epoch),)

    def _become_fenced(self) -> tuple[Action, ...]:
        self._role = after(self._role, Signal.LEASE_LOST)
        return (RefuseWrites(self._epoch),)

    def _become_standby(self, signal: Signal) -> tuple[Action, ...]:
        epoch = self._epoch
        self._role = after(self._role, signal)
        self._epoch = EPOCH_NONE
        self._asked_ms = None
        self._next_ask_ms = None
        # A lease that only we believed lost is free at once; releasing a lost one does nothing.
        return (Release(epoch),)
