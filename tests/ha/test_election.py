import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgewise.event.position import Position
from edgewise.ha.election import (
    CaughtUp,
    Drain,
    Election,
    ElectionConfig,
    LeaseGone,
    LeaseKept,
    LeaseSeen,
    LeaseWon,
    Promote,
    RefuseWrites,
    Release,
    Renew,
    Replay,
    StepDown,
    TryAcquire,
    WritesRefused,
)
from edgewise.ha.fsm import Role

CONFIG = ElectionConfig(attempt_ms=200, renew_ms=500, ttl_ms=2000)
START = Position(6, 4000)
EPOCHS = st.integers(1, 6)
TIMES = st.integers(0, 10_000)
MESSAGES = st.one_of(
    st.builds(LeaseWon, EPOCHS, TIMES, st.just(START)),
    st.builds(LeaseKept, EPOCHS, TIMES),
    st.builds(LeaseSeen, EPOCHS),
    st.builds(LeaseGone, EPOCHS),
    st.builds(CaughtUp, EPOCHS),
    st.builds(WritesRefused, EPOCHS),
    st.just(Drain()),
)


def active(epoch: int = 7, now_ms: int = 0) -> Election:
    election = Election(CONFIG)
    election.step(LeaseWon(epoch, now_ms, START))
    election.step(CaughtUp(epoch))
    assert election.role is Role.ACTIVE
    return election


@given(st.lists(MESSAGES | st.integers(0, 900), max_size=40))
def test_whatever_is_heard_the_orders_fit_the_role(heard):
    """No sequence breaks the table; Promote comes once per epoch, and epochs only grow."""
    election, now_ms, promoted = Election(CONFIG), 0, [0]
    for item in heard:
        before, epoch = election.role, election.epoch
        if isinstance(item, int):
            now_ms += item
            actions = election.tick(now_ms)
        else:
            actions = election.step(item)
        kinds = {type(action) for action in actions}
        assert (Promote in kinds) == (election.role is Role.ACTIVE is not before)
        assert (RefuseWrites in kinds) == (election.role is Role.FENCED is not before)
        assert (Replay in kinds) == (election.role is Role.RECOVERING is not before)
        assert (election.role is Role.STANDBY) == (election.epoch == 0)
        if StepDown in kinds:
            assert actions == (StepDown(epoch), Release(epoch))
        if Promote in kinds:
            assert election.epoch > promoted[-1]
            promoted.append(election.epoch)


@given(st.lists(MESSAGES, max_size=20))
def test_a_drained_node_never_asks_or_serves_again(heard):
    election = active()
    election.step(Drain())
    assert election.finished
    for message in heard:
        assert not {type(a) for a in election.step(message)} & {Replay, Promote}
    assert election.tick(10**9) == ()


def test_a_standby_asks_at_once_and_then_in_its_interval():
    election = Election(CONFIG)
    assert election.tick(1000) == (TryAcquire(1000),)
    assert election.tick(1100) == ()
    election.step(LeaseSeen(3))
    assert election.tick(1199) == ()
    assert election.tick(1200) == (TryAcquire(1200),)


def test_a_standby_has_one_question_out_and_forgets_it_after_the_lifetime_of_a_lease():
    election = Election(CONFIG)
    election.tick(0)
    assert election.tick(1999) == ()
    assert election.tick(2000) == (TryAcquire(2000),)


def test_a_holder_renews_in_its_interval_and_lives_as_long_as_it_is_confirmed():
    election = active(now_ms=0)
    for now_ms in range(500, 20_000, 500):
        assert election.tick(now_ms) == (Renew(7, now_ms),)
        election.step(LeaseKept(7, now_ms))
    assert election.role is Role.ACTIVE


def test_the_lease_counts_from_the_question_not_from_the_answer():
    election = active(now_ms=0)
    election.tick(500)
    election.tick(1900)
    election.step(LeaseKept(7, 500))
    assert election.tick(2499) != (RefuseWrites(7),)
    assert election.tick(2500) == (RefuseWrites(7),)


def test_an_unconfirmed_holder_fences_itself_and_frees_the_lease_when_writes_are_refused():
    election = active(now_ms=0)
    assert election.tick(2000) == (RefuseWrites(7),)
    assert election.tick(9000) == ()
    assert election.step(WritesRefused(7)) == (Release(7),)
    assert election.tick(9000) == (TryAcquire(9000),)


@pytest.mark.parametrize("message", [LeaseSeen(8), LeaseWon(8, 0, START), LeaseGone(7)])
def test_a_higher_epoch_or_a_lease_that_is_gone_ends_ours(message):
    election = active(7)
    assert election.step(message) == (RefuseWrites(7),)
    assert election.role is Role.FENCED


@pytest.mark.parametrize(
    "message", [LeaseSeen(7), LeaseSeen(3), LeaseGone(6), CaughtUp(6), WritesRefused(7)]
)
def test_late_messages_change_nothing(message):
    election = active(7)
    assert election.step(message) == ()
    assert election.role is Role.ACTIVE


def test_a_win_that_arrives_after_a_higher_epoch_was_seen_is_not_believed():
    election = Election(CONFIG)
    election.step(LeaseSeen(9))
    assert election.step(LeaseWon(8, 0, START)) == ()
    assert election.role is Role.STANDBY


def test_a_win_that_took_longer_than_the_lease_lasts_is_given_back():
    election = Election(CONFIG)
    election.tick(0)
    election.tick(1999)
    election.tick(2000)
    assert election.step(LeaseWon(1, 0, START)) == (Release(1),)
    assert election.role is Role.STANDBY


def test_a_fenced_node_that_is_drained_still_refuses_its_writes_first():
    election = active(7)
    election.step(LeaseSeen(8))
    election.step(Drain())
    assert not election.finished
    election.step(WritesRefused(7))
    assert election.finished


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"attempt_ms": 0}, "attempt_ms must be positive"),
        ({"renew_ms": 1500}, "must leave room for two renewals"),
        ({"renew_ms": 0}, "must leave room for two renewals"),
    ],
)
def test_settings_that_cannot_work_are_refused(settings, reason):
    with pytest.raises(ValueError, match=reason):
        ElectionConfig(**settings)
