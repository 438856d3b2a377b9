"""State is saved when it pays."""

from hypothesis import given
from hypothesis import strategies as st

from edgewise.engines.state.save_schedule import REPLAY_ROWS_MAX, SHARE, SaveSchedule

times = st.floats(0, 1e6)


@given(times, times, times)
def test_saving_takes_at_most_its_share_of_the_time(interval_s, took_s, later_s):
    schedule = SaveSchedule(interval_s, last_s=0.0, took_s=took_s)
    if schedule.is_due(later_s, 1):
        assert later_s >= interval_s
        assert took_s <= (later_s + took_s) * SHARE * 1.001


@given(times)
def test_a_restart_never_has_more_to_feed_than_the_limit(took_s):
    assert SaveSchedule(1e9, 0.0, took_s).is_due(0.0, REPLAY_ROWS_MAX)


@given(times, times)
def test_without_events_nothing_is_saved(interval_s, later_s):
    assert not SaveSchedule(interval_s).is_due(later_s, 0)
