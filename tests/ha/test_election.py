import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgewise.event.position import Position
from edgewise.ha.election import (
    Election,
    ElectionConfig,
    LeaseGone,
    LeaseKept,
    LeaseSeen,
    LeaseWon,
    NodeOrder,
    OrderDone,
    Release,
    Renew,
    StopRequest,
    TryAcquire,
)
from edgewise.ha.fsm import Role, RoleOrder

CONFIG = ElectionConfig(attempt_ms=200, renew_ms=500, ttl_ms=2000)
START = Position(6, 4000)
EPOCHS = st.integers(1, 6)
TIMES = st.integers(0, 10_000)
MESSAGES = st.one_of(
    st.builds(LeaseWon, EPOCHS, TIMES, st.just(START)),
    st.builds(LeaseKept, EPOCHS, TIMES),
    st.builds(LeaseSeen, EPOCHS),
    st.builds(LeaseGone, EPOCHS),
    st.builds(OrderDone, st.sampled_from(RoleOrder), st.integers(0, 6)),
    st.sampled_from([StopRequest(), StopRequest(500)]),
)


def standby(now_ms: int = 0) -> Election:
    election = Election(CONFIG)
    election.tick(now_ms)
    election.step(OrderDone(RoleOrder.BOOT, 0))
    election.step(OrderDone(RoleOrder.SYNC, 0))
    assert election.role is Role.STANDBY
    return election


def active(epoch: int = 7, now_ms: int = 0) -> Election:
    election = standby(now_ms)
    election.step(LeaseWon(epoch, now_ms, START))
    election.step(OrderDone(RoleOrder.SWITCH, epoch))
    election.step(OrderDone(RoleOrder.ACTIVATE, epoch))
    assert election.role is Role.ACTIVE
    return election


def orders_in(actions):
    return [action.order for action in actions if isinstance(action, NodeOrder)]


@given(st.lists(MESSAGES | st.integers(0, 900), max_size=60))
def test_whatever_is_heard_the_orders_fit_the_role(heard):
    """No sequence breaks the table; a node switches once per epoch, and epochs only grow."""
    election, now_ms, switched = Election(CONFIG), 0, [0]
    for item in heard:
        before, epoch = election.role, election.epoch
        if isinstance(item, int):
            now_ms += item
            actions = election.tick(now_ms)
        else:
            actions = election.step(item)
        orders = orders_in(actions)
        assert len(orders) <= 1
        assert (RoleOrder.SWITCH in orders) == (election.role is Role.SWITCHING is not before)
        stops = election.role is Role.STOPPING is not before
        assert bool({RoleOrder.FENCE, RoleOrder.STOP} & set(orders)) == stops
        if RoleOrder.FENCE in orders:
            assert before in {Role.SWITCHING, Role.ACTIVE}
        if before is Role.STOPPING and election.role is Role.INITIAL:
            assert actions == ((Release(epoch),) if epoch else ())
        if election.role in {Role.SWITCHING, Role.ACTIVE}:
            assert election.epoch > 0
        if RoleOrder.SWITCH in orders:
            assert election.epoch > switched[-1]
            switched.append(election.epoch)


@given(st.lists(MESSAGES, max_size=20))
def test_a_node_that_was_stopped_never_asks_or_serves_again(heard):
    election = active()
    election.step(StopRequest())
    election.step(OrderDone(RoleOrder.STOP, 7))
    assert election.finished
    for message in heard:
        assert not orders_in(election.step(message))
    assert election.tick(10**9) == ()


def test_a_node_boots_and_syncs_before_it_asks_for_the_lease():
    election = Election(CONFIG)
    assert orders_in(election.tick(0)) == [RoleOrder.BOOT]
    assert election.tick(5000) == ()
    assert orders_in(election.step(OrderDone(RoleOrder.BOOT, 0))) == [RoleOrder.SYNC]
    assert election.tick(5000) == ()
    assert election.step(OrderDone(RoleOrder.SYNC, 0)) == ()
    assert election.tick(5000) == (TryAcquire(5000),)


def test_a_node_is_active_when_its_sources_are_open():
    election = standby()
    assert orders_in(election.step(LeaseWon(3, 0, START))) == [RoleOrder.SWITCH]
    assert orders_in(election.step(OrderDone(RoleOrder.SWITCH, 3))) == [RoleOrder.ACTIVATE]
    assert election.role is Role.SWITCHING
    assert election.step(OrderDone(RoleOrder.ACTIVATE, 3)) == ()
    assert election.role is Role.ACTIVE


def test_a_node_confirms_its_lease_while_it_flushes():
    election = active(now_ms=0)
    assert orders_in(election.step(StopRequest())) == [RoleOrder.STOP]
    assert election.tick(500) == (Renew(7, 500),)
    assert election.step(OrderDone(RoleOrder.STOP, 7)) == (Release(7),)


def test_a_node_that_hands_over_takes_part_again_later():
    election = active(now_ms=0)
    election.tick(100)
    election.step(StopRequest(rejoin_ms=1000))
    election.step(OrderDone(RoleOrder.STOP, 7))
    assert not election.finished
    assert election.tick(1099) == ()
    assert orders_in(election.tick(1100)) == [RoleOrder.BOOT]


def test_a_standby_asks_at_once_and_then_in_its_interval():
    election = standby()
    assert election.tick(1000) == (TryAcquire(1000),)
    assert election.tick(1100) == ()
    election.step(LeaseSeen(3))
    assert election.tick(1199) == ()
    assert election.tick(1200) == (TryAcquire(1200),)


def test_a_standby_has_one_question_out_and_forgets_it_after_the_lifetime_of_a_lease():
    election = standby()
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
    assert election.tick(2499) != (NodeOrder(RoleOrder.FENCE, 7),)
    assert election.tick(2500) == (NodeOrder(RoleOrder.FENCE, 7),)


def test_an_unconfirmed_holder_fences_itself_and_frees_the_lease_when_writes_are_refused():
    election = active(now_ms=0)
    assert election.tick(2000) == (NodeOrder(RoleOrder.FENCE, 7),)
    assert election.tick(9000) == ()
    assert election.step(OrderDone(RoleOrder.STOP, 7)) == (Release(7),)
    assert orders_in(election.tick(9000)) == [RoleOrder.BOOT]


@pytest.mark.parametrize("message", [LeaseSeen(8), LeaseWon(8, 0, START), LeaseGone(7)])
def test_a_higher_epoch_or_a_lease_that_is_gone_ends_ours(message):
    election = active(7)
    assert election.step(message) == (NodeOrder(RoleOrder.FENCE, 7),)
    assert election.role is Role.STOPPING


@pytest.mark.parametrize(
    "message",
    [
        LeaseSeen(7),
        LeaseSeen(3),
        LeaseGone(6),
        OrderDone(RoleOrder.SWITCH, 6),
        OrderDone(RoleOrder.STOP, 7),
    ],
)
def test_late_messages_change_nothing(message):
    election = active(7)
    assert election.step(message) == ()
    assert election.role is Role.ACTIVE


def test_a_win_that_arrives_after_a_higher_epoch_was_seen_is_not_believed():
    election = standby()
    election.step(LeaseSeen(9))
    assert election.step(LeaseWon(8, 0, START)) == ()
    assert election.role is Role.STANDBY


def test_a_win_that_took_longer_than_the_lease_lasts_is_given_back():
    election = standby()
    election.tick(0)
    election.tick(1999)
    election.tick(2000)
    assert election.step(LeaseWon(1, 0, START)) == (Release(1),)
    assert election.role is Role.STANDBY


def test_a_fenced_node_that_is_stopped_still_refuses_its_writes_first():
    election = active(7)
    election.step(LeaseSeen(8))
    election.step(StopRequest())
    assert not election.finished
    election.step(OrderDone(RoleOrder.STOP, 7))
    assert election.finished


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"attempt_ms": 0}, "attempt_ms must be positive"),
        ({"renew_ms": 1501}, "must leave room for two renewals"),
        ({"renew_ms": 0}, "must leave room for two renewals"),
    ],
)
def test_settings_that_cannot_work_are_refused(settings, reason):
    with pytest.raises(ValueError, match=reason):
        ElectionConfig(**settings)
