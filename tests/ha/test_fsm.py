import pytest

from edgewise.ha.fsm import (
    TRANSITIONS,
    IllegalTransition,
    Role,
    RoleOrder,
    Signal,
    find_transition,
)


def test_every_role_has_a_way_out_and_every_signal_a_use():
    assert set(TRANSITIONS) == set(Role)
    assert all(TRANSITIONS.values())
    assert {signal for row in TRANSITIONS.values() for signal in row} == set(Signal)


def test_every_order_is_given():
    given = {step.order for row in TRANSITIONS.values() for step in row.values()}
    assert given == {*RoleOrder, None}


def test_every_role_can_be_reached_from_the_start():
    reached, before = {Role.INITIAL}, set()
    while reached != before:
        before = set(reached)
        reached |= {step.role for known in before for step in TRANSITIONS[known].values()}
    assert reached == set(Role)


def test_only_switching_leads_to_active():
    origins = {
        role
        for role, row in TRANSITIONS.items()
        if Role.ACTIVE in {step.role for step in row.values()}
    }
    assert origins == {Role.SWITCHING}


def test_a_holder_can_be_fenced_and_refuses_its_writes_before_it_takes_part_again():
    fenced = {role for role, row in TRANSITIONS.items() if Signal.FENCE in row}
    assert fenced == {Role.SWITCHING, Role.ACTIVE}
    assert {TRANSITIONS[role][Signal.FENCE] for role in fenced} == {
        (Role.STOPPING, RoleOrder.FENCE)
    }
    assert TRANSITIONS[Role.STOPPING] == {Signal.STOP_DONE: (Role.INITIAL, None)}


def test_every_role_that_takes_part_can_be_stopped():
    stoppable = {role for role, row in TRANSITIONS.items() if Signal.STOP in row}
    assert stoppable == set(Role) - {Role.INITIAL, Role.STOPPING}


@pytest.mark.parametrize("role", Role)
@pytest.mark.parametrize("signal", Signal)
def test_what_the_table_does_not_say_is_an_error_that_names_what_it_says(role, signal):
    if signal in TRANSITIONS[role]:
        assert find_transition(role, signal) is TRANSITIONS[role][signal]
    else:
        with pytest.raises(IllegalTransition, match=f"{signal.name} means nothing .*{role.name}"):
            find_transition(role, signal)
