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
        assert plan.skipped == 0
        assert plan.load_checkpoint == (found.checkpoint is not None)
        assert plan.replay_start == max(done, found.earliest)
    if kind is Recovery.PRECISE:
        assert plan.replay_start == done
        assert plan.repeats_dropped


@given(found_on_disk())
def test_rollback_replays_whatever_precise_replays(found):
    try:
        precise = plan_recovery(Recovery.PRECISE, found)
    except RecoveryError:
        return
    rollback = plan_recovery(Recovery.ROLLBACK, found)
    assert (rollback.replay_start, rollback.replay_end) == (
        precise.replay_start,
        precise.replay_end,
    )


def test_every_kind_has_its_statement():
    assert set(STATEMENTS) == set(Recovery)


@pytest.mark.parametrize("repeat", RepeatLevel)
def test_only_precise_asks_something_of_the_query(repeat):
    assert why_not(Recovery.GAP, repeat) == why_not(Recovery.ROLLBACK, repeat) == ""
    assert bool(why_not(Recovery.PRECISE, repeat)) == (repeat is RepeatLevel.ARBITRARY)


def test_a_word_that_is_no_kind_is_answered_with_the_kinds():
    assert parse_recovery("gap") is Recovery.GAP
    with pytest.raises(RecoveryError, match="'precise', 'rollback', 'gap'"):
        parse_recovery("Gap")
