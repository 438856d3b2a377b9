import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgewise.errors import RecoveryError
from edgewise.event.position import Position
from edgewise.event.repeat_level import RepeatLevel
from edgewise.ha.recovery import (
    STATEMENTS,
    Found,
    Recovery,
    parse_recovery,
    plan_recovery,
    why_not,
)


@st.composite
def found_on_disk(draw):
    earliest = draw(st.integers(0, 50))
    checkpoint = draw(st.none() | st.builds(Position, st.integers(1, 3), st.integers(0, 120)))
    return Found(
        earliest, Position(draw(st.integers(1, 3)), draw(st.integers(50, 100))), checkpoint
    )


@given(found_on_disk(), st.sampled_from(Recovery))
def test_each_event_is_in_the_state_replayed_or_skipped_and_never_two_of_these(found, kind):
    try:
        plan = plan_recovery(kind, found)
    except RecoveryError:
        assert kind is not Recovery.GAP, "gap must always be possible"
        return
    assert found.earliest <= plan.replay_start <= plan.replay_end == found.head.offset
    done = found.checkpoint.offset if found.checkpoint else 0
    if kind is Recovery.GAP:
        assert not plan.load_checkpoint
        assert plan.replay_start == plan.replay_end
    else:
        kept = found.checkpoint is not None and plan.load_checkpoint
        assert plan.load_checkpoint == (found.checkpoint is not None) or (
            kind is Recovery.CONVERGENT
        )
        assert plan.replay_start == (max(done, found.earliest) if kept else found.earliest)
        assert plan.skipped in ({0} if kept else {0, found.earliest - done})
    if kind is Recovery.PRECISE:
        assert plan.replay_start == done
        assert plan.repeats_dropped


@given(found_on_disk())
def test_rollback_replays_whatever_precise_replays(found):
    try:
        precise = plan_recovery(Recovery.PRECISE, found)
    except RecoveryError:
        return
    for kind in (Recovery.REPEATING, Recovery.CONVERGENT, Recovery.DIVERGENT):
        rollback = plan_recovery(kind, found)
        assert (rollback.replay_start, rollback.replay_end) == (
            precise.replay_start,
            precise.replay_end,
        )


@given(found_on_disk())
def test_convergent_begins_with_an_empty_state_where_the_old_one_is_of_no_use(found):
    plan = plan_recovery(Recovery.CONVERGENT, found)
    try:
        assert plan == plan_recovery(Recovery.DIVERGENT, found)
    except RecoveryError:
        assert (plan.load_checkpoint, plan.replay_start) == (False, found.earliest)
        assert plan.skipped == max(0, found.earliest - found.checkpoint.offset)


def test_every_kind_has_its_statement():
    assert set(STATEMENTS) == set(Recovery)


@pytest.mark.parametrize("repeat", RepeatLevel)
def test_a_better_query_can_keep_all_that_a_worse_one_can(repeat):
    assert why_not(Recovery.GAP, repeat) == why_not(Recovery.DIVERGENT, repeat) == ""
    for kind in (Recovery.PRECISE, Recovery.REPEATING):
        assert bool(why_not(kind, repeat)) == (repeat is RepeatLevel.ARBITRARY)
    assert bool(why_not(Recovery.CONVERGENT, repeat)) == (repeat < RepeatLevel.CONVERGENT)


def test_a_word_that_is_no_kind_is_answered_with_the_kinds():
    assert parse_recovery("gap") is Recovery.GAP
    assert parse_recovery("rollback") is Recovery.DIVERGENT
    with pytest.raises(RecoveryError, match="'precise', 'repeating', 'convergent', 'divergent'"):
        parse_recovery("Gap")
