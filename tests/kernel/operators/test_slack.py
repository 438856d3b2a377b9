import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.kernel_runs import data, play

from edgewise.kernel.operators import slack

HEAD = "define stream A (t long, v double);"


def events(times):
    return [("A", 1000 + i, t, float(t % 7)) for i, t in enumerate(times)]


@given(st.lists(st.integers(1, 60), max_size=25))
def test_events_come_out_in_order_once_the_largest_disorder_is_known(times):
    warm = [100, 40, 200, 300]
    later = [400 + t for t in times]
    query = "from A#reorder:kslack(t) select t insert into O;"
    found = [row[0] for row in data(query, events([*warm, *later, 900, 1000]), HEAD)]
    assert [t for t in found if t > 400] == sorted(t for t in found if t > 400)


def test_a_late_event_is_discarded_where_it_is_asked_for():
    times = [10, 20, 30, 5]
    for flag, found in (("true", [10, 20, 30]), ("false", [10, 20, 30])):
        query = f"from A#reorder:kslack(t, {flag}) select t insert into O;"
        assert [row[0] for row in data(query, events(times), HEAD)] == found


def test_a_timeout_lets_held_events_out():
    query = "from A#reorder:kslack(t, 100L) select t insert into O;"
    found = play(query, [*events([100, 90, 200]), 3500], HEAD)
    assert sorted(row[2] for row in found) == [90, 100, 200]


def test_the_adaptive_slack_lets_all_events_out_at_last():
    query = "from A#reorder:akslack(t, v, 5L, 100L) select t insert into O;"
    times = [10 * i - 25 * (i % 3 == 0) for i in range(3, 20)]
    found = play(query, [*events(times), 5000], HEAD)
    assert sorted(row[2] for row in found) == sorted(times)


def test_the_coverage_of_a_window():
    assert slack.runtime_coverage([1, 2, 3], 3, 0) == pytest.approx(2 / 3)
    assert slack.runtime_coverage([], 3, 0) == 1.0
    assert 0 < slack.coverage_threshold([1.0, 2.0, 3.0], 0.03, 1.96) < 1
    assert slack.coverage_threshold([0.0], 0.03, 1.96) == 0.0
    assert slack.critical_value(0.95) == pytest.approx(1.959964, abs=1e-6)
