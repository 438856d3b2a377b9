"""State the laws of a lease as one suite that every implementation must pass.

A test calls each law with a fresh place to keep a lease (`LeaseSubject`). The clock belongs to the
subject: a directory is tested with a manual clock, a broker with the real one.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Protocol

from edgewise.log.lease import EPOCH_NONE, RATE_MARGIN, Lease

CONTENDERS = 6
_STEPS = 10


class LeaseSubject(Protocol):
    """One lease; `open` gives another node's access to it."""

    @property
    def ttl_ms(self) -> int: ...
    def open(self, holder: str) -> Lease: ...
    def wait(self, ms: int) -> None:
        """Let time pass, for all nodes."""
        ...


def _acquire(subject: LeaseSubject, lease: Lease) -> None:
    """Ask until the lease is won, at most for twice the time that a silent holder keeps it."""
    step_ms = subject.ttl_ms // _STEPS
    for _ in range(3 * _STEPS):
        if lease.try_acquire():
            return
        subject.wait(step_ms)
    raise AssertionError("the lease was never free")


def each_win_has_a_higher_epoch_and_names_its_holder(subject: LeaseSubject) -> None:
    assert subject.open("a").read() is None
    epochs = []
    for holder in ("a", "b", "c"):
        lease = subject.open(holder)
        assert lease.epoch == EPOCH_NONE
        _acquire(subject, lease)
        epochs.append(lease.epoch)
        seen = subject.open("reader").read()
        assert seen is not None
        assert (seen.epoch, seen.holder, seen.released) == (lease.epoch, holder, False)
        lease.release()
        assert lease.epoch == EPOCH_NONE
    assert epochs == sorted(set(epochs))


def a_holder_that_renews_keeps_the_lease(subject: LeaseSubject) -> None:
    holder, contender = subject.open("a"), subject.open("b")
    _acquire(subject, holder)
    for _ in range(4 * _STEPS):
        subject.wait(subject.ttl_ms // _STEPS)
        assert holder.renew()
        assert not contender.try_acquire()
    assert contender.epoch == EPOCH_NONE


def a_released_lease_is_won_at_once(subject: LeaseSubject) -> None:
    holder, contender = subject.open("a"), subject.open("b")
    _acquire(subject, holder)
    assert not contender.try_acquire()
    holder.release()
    holder.release()
    assert contender.try_acquire()
    assert not holder.renew()
    assert contender.renew()


def a_silent_holder_loses_the_lease_after_the_bound(subject: LeaseSubject) -> None:
    holder, contender = subject.open("a"), subject.open("b")
    _acquire(subject, holder)
    assert not contender.try_acquire()
    subject.wait(subject.ttl_ms // 2)
    assert not contender.try_acquire(), "too early: the holder still relies on its lease"
    subject.wait(int(subject.ttl_ms * RATE_MARGIN))
    assert contender.try_acquire()
    assert not holder.renew(), "it must find itself replaced when it wakes"
    assert contender.renew()


def a_replaced_holder_changes_nothing(subject: LeaseSubject) -> None:
    old, new = subject.open("a"), subject.open("b")
    _acquire(subject, old)
    new.try_acquire()
    subject.wait(int(2 * subject.ttl_ms))
    _acquire(subject, new)
    assert not old.renew()
    old.release()
    assert new.renew()
    third = subject.open("c")
    assert not third.try_acquire()
    seen = third.read()
    assert seen is not None
    assert (seen.epoch, seen.holder) == (new.epoch, "b")


def one_of_many_contenders_wins(subject: LeaseSubject) -> None:
    leases = [subject.open(f"n{number}") for number in range(CONTENDERS)]
    start = threading.Barrier(CONTENDERS)
    won: list[int] = []

    def contend(lease: Lease) -> None:
        start.wait()
        if lease.try_acquire():
            won.append(lease.epoch)

    threads = [threading.Thread(target=contend, args=(lease,)) for lease in leases]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    holders = [lease for lease in leases if lease.epoch != EPOCH_NONE and lease.renew()]
    assert len(holders) <= 1
    assert len(won) == len(set(won))
    if holders:
        assert holders[0].epoch == max(won)


LAWS: tuple[Callable[[LeaseSubject], None], ...] = (
    each_win_has_a_higher_epoch_and_names_its_holder,
    a_holder_that_renews_keeps_the_lease,
    a_released_lease_is_won_at_once,
    a_silent_holder_loses_the_lease_after_the_bound,
    a_replaced_holder_changes_nothing,
    one_of_many_contenders_wins,
)
