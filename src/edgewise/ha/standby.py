"""Keep one node in the race for the lease: a thread that renews, asks, and passes on orders.

The lease is kept beside the logs (`log.lease`). The loop must never wait for the node, or its
renewals would stop: orders are handed over and answered later by `report`. Trade-off: a node whose
event loop hangs while this thread runs keeps its lease.

`node/run.py` uses it.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable

from edgewise.errors import LeaseError
from edgewise.event.position import Position
from edgewise.ha.election import (
    Action,
    Election,
    ElectionConfig,
    LeaseGone,
    LeaseKept,
    LeaseSeen,
    LeaseWon,
    Message,
    NodeOrder,
    Release,
    Renew,
    StopRequest,
    TryAcquire,
)
from edgewise.ha.fsm import Role
from edgewise.ha.status import RoleStatus
from edgewise.log.lease import EPOCH_NONE, Lease

logger = logging.getLogger(__name__)

TICK_S = 0.1  # how often the loop reads the clock
INBOX_MAX = 64  # reports of the node that wait for the loop
STOP_TIMEOUT_S = 30.0


def monotonic_ms() -> int:
    return time.monotonic_ns() // 1_000_000


def wall_ms() -> int:
    return time.time_ns() // 1_000_000


class StandbyLoop:
    """Passes time and the answers of the lease to the election, and orders to the node.

    `obey(order)` is called on the loop's thread, one order at a time, and returns at once; the
    node carries orders out in their order and answers each with `report(...)`. `checkpoint()`
    says where the node's state was last saved; it is called after each win. `on_change(status)`
    is called after each change of role.

    A node that cannot carry out an order calls `fail`: the loop ends and keeps the lease, because
    the node may still write. It must end its process; then the lease is free.
    """

    def __init__(
        self,
        lease: Lease,
        checkpoint: Callable[[], Position],
        obey: Callable[[NodeOrder], None],
        config: ElectionConfig | None = None,
        *,
        now_ms: Callable[[], int] = monotonic_ms,
        on_change: Callable[[RoleStatus], None] = lambda _status: None,
    ) -> None:
        self._lease = lease
        self._checkpoint = checkpoint
        self._obey = obey
        self._now_ms = now_ms
        self._on_change = on_change
        self._config = config or ElectionConfig()
        self._election = Election(self._config)
        self._inbox: queue.Queue[Message | BaseException] = queue.Queue(INBOX_MAX)
        self._thread = threading.Thread(target=self._run_and_keep_failure, daemon=True)
        self._turned_ms = now_ms()
        self._reached = False  # whether the lease has ever answered
        self._unreachable = ""
        self._holder = ""
        self.status = RoleStatus(Role.INITIAL, EPOCH_NONE, wall_ms(), "")
        self.ended = threading.Event()
        self.failure: BaseException | None = None

    @property
    def role(self) -> Role:
        return self._election.role

    @property
    def epoch(self) -> int:
        return self._election.epoch

    def start(self) -> None:
        self._thread.start()

    def report(self, message: Message) -> None:
        """From any thread: what the node has done, or StopRequest."""
        self._inbox.put_nowait(message)

    def fail(self, error: BaseException) -> None:
        """From any thread: the node cannot carry out an order."""
        self._inbox.put_nowait(error)

    def stop(self, timeout_s: float = STOP_TIMEOUT_S) -> bool:
        """Hand over and end. False if the node did not stop in time; raises its failure."""
        if not self.ended.is_set():
            self.report(StopRequest())
        ended = self.ended.wait(timeout_s)
        if self.failure is not None:
            raise self.failure
        return ended

    def run(self) -> None:
        """Until stopped for good, on this thread."""
        while not self._election.finished:
            self.turn()
            try:
                message = self._inbox.get(timeout=TICK_S)
            except queue.Empty:
                continue
            if isinstance(message, BaseException):
                raise message
            self.hear(message)

    def turn(self) -> None:
        """Read the clock and do what is due."""
        now_ms = self._now_ms()
        # A process that was stopped asks the lease before it judges by the clock.
        if self._lease.epoch != EPOCH_NONE and now_ms - self._turned_ms > self._config.renew_ms:
            self._renew(now_ms)
        self._turned_ms = now_ms
        self._carry_out(self._election.tick(self._now_ms()))

    def hear(self, message: Message) -> None:
        """Pass a message to the election."""
        self._carry_out(self._election.step(message))

    def _run_and_keep_failure(self) -> None:
        try:
            self.run()
        except BaseException as error:  # noqa: BLE001 - handed to whoever waits, by stop()
            self.failure = error
        finally:
            self.ended.set()

    def _carry_out(self, actions: tuple[Action, ...]) -> None:
        self._publish_status()
        for action in actions:
            match action:
                case TryAcquire(asked_ms):
                    self._try_acquire(asked_ms)
                case Renew(_, asked_ms):
                    self._renew(asked_ms)
                case Release():
                    self._release()
                case NodeOrder():
                    self._obey(action)

    def _publish_status(self) -> None:
        role, epoch = self._election.role, self._election.epoch
        old = self.status
        if (role, epoch, self._holder) == (old.role, old.epoch, old.holder):
            return
        since_ms = wall_ms() if role is not old.role else old.since_ms
        self.status = RoleStatus(role, epoch, since_ms, self._holder)
        if role is not old.role:
            self._on_change(self.status)

    def _try_acquire(self, asked_ms: int) -> None:
        try:
            won = self._lease.try_acquire()
            record = self._lease.read()
        except LeaseError as error:
            if not self._reached:
                raise
            self._warn(error)
            return
        self._reached, self._unreachable = True, ""
        self._holder = record.holder if record and not record.released else ""
        if won:
            self.hear(LeaseWon(self._lease.epoch, asked_ms, self._checkpoint()))
        else:
            self.hear(LeaseSeen(record.epoch if record else EPOCH_NONE))

    def _renew(self, asked_ms: int) -> None:
        """An unreachable lease is not a lost one: the election decides when it is too late."""
        epoch = self._lease.epoch
        try:
            kept = self._lease.renew()
        except LeaseError as error:
            self._warn(error)
            if self._lease.fails_with_logs:
                self.hear(LeaseKept(epoch, asked_ms))
            return
        self._unreachable = ""
        self.hear(LeaseKept(epoch, asked_ms) if kept else LeaseGone(epoch))

    def _release(self) -> None:
        try:
            self._lease.release()
        except LeaseError as error:  # then it is free when it has not been renewed for long
            self._warn(error)

    def _warn(self, error: LeaseError) -> None:
        if str(error) != self._unreachable:
            self._unreachable = str(error)
            logger.warning("the lease does not answer: %s", error)
