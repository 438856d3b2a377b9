import pytest

from edgewise.ha.fsm import TRANSITIONS, IllegalTransition, Role, Signal, after


def test_every_role_has_a_way_out_and_every_signal_a_use():
    assert set(TRANSITIONS) == set(Role)
    assert all(TRANSITIONS.values())
    assert {signal for row in TRANSITIONS.values() for signal in row} == set(Signal)


def test_every_role_can_be_reached_from_standby():
    reached, before = {Role.STANDBY}, set()
    while reached != before:
        before = set(reached)
        reached |= {role for known in before for role in TRANSITIONS[known].values()}
    assert reached == set(Role)


def test_only_recovery_leads_to_active():
    origins = {role for role, row in TRANSITIONS.items() if Role.ACTIVE in row.values()}
    assert origins == {Role.RECOVERING}


def test_a_lost_lease_always_leads_through_the_fence():
    lost = {row[Signal.LEASE_LOST] for row in TRANSITIONS.values() if Signal.LEASE_LOST in row}
    assert lost == {Role.FENCED}
    assert TRANSITIONS[Role.FENCED] == {Signal.FLUSH_REFUSED: Role.STANDBY}


@pytest.mark.parametrize("role", Role)
@pytest.mark.parametrize("signal", Signal)
def test_what_the_table_does_not_say_is_an_error_that_names_what_it_says(role, signal):
    if signal in TRANSITIONS[role]:
        assert after(role, signal) is TRANSITIONS[role][signal]
    else:
        with pytest.raises(IllegalTransition, match=f"{signal.name} means nothing .*{role.name}"):
            after(role, signal)
