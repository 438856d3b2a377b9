from hypothesis import given
from hypothesis import strategies as st
from tests.edge.test_session import Talk

from edgewise.edge.telemetry import BOUNDS_MS, GROUPS_MAX, Histogram, Telemetry, session_record
from edgewise.edge.topics import Policy, TopicTree

SECOND = 1_000_000


@given(st.lists(st.floats(0, 59_000), min_size=1), st.floats(0.01, 0.99))
def test_a_quantile_lies_in_the_bucket_of_the_true_one(values, q):
    histogram = Histogram()
    for value in values:
        histogram.add(value)
    true = sorted(values)[min(len(values) - 1, int(q * len(values) - 1e-9))]
    low = max((b for b in (0, *BOUNDS_MS) if b < true), default=0)
    high = next(b for b in BOUNDS_MS if b >= true)
    assert low <= histogram.quantile(q) + 1e-6
    assert histogram.quantile(q) <= high + 1e-6
    assert histogram.count == len(values)


def test_rates_are_since_the_last_look():
    telemetry = Telemetry()
    telemetry.look({"published": 100, "sessions": 1}, SECOND)
    telemetry.age("a", 30_000)
    told = telemetry.look({"published": 150, "sessions": 2}, 2 * SECOND)
    assert (told["published_per_s"], told["sessions"]) == (50.0, 2)
    assert 20 <= told["age_p50_ms"] <= 50


def test_groups_are_bounded():
    telemetry = Telemetry()
    for i in range(2 * GROUPS_MAX):
        telemetry.age(f"g{i}", 1)
    assert len(telemetry.ages) == GROUPS_MAX + 1
    tree = TopicTree(1000)
    for i in range(2 * GROUPS_MAX):
        tree.create(f"g{i}/x", Policy()).group.updates += 1
        tree.remove(f"g{i}/x")
    lines = [line for line in telemetry.lines(tree) if "topic_updates_total{" in line]
    assert len(lines) == GROUPS_MAX + 1
    assert lines[0].endswith(f" {GROUPS_MAX}")


def test_a_group_of_topics_is_told_with_its_ages():
    telemetry, tree = Telemetry(), TopicTree(10)
    group = tree.create("fx/eur", Policy()).group
    assert tree.create("fx/usd", Policy()).group is group
    group.updates, group.conflated = 5, 3
    telemetry.age("fx", 30_000)
    told = telemetry.group_record(group)
    assert (told["topics"], told["updates"], told["conflated"]) == (2, 5, 3)
    assert 20 <= told["age_p50_ms"] <= 50


def test_labels_cannot_break_the_format():
    telemetry = Telemetry()
    telemetry.age('a"b\n', 1)
    assert any('topic="a\\"b "' in line for line in telemetry.lines(TopicTree(1)))


def test_a_session_is_described_without_its_secret_name():
    session = Talk().session
    assert session.name not in str(session_record(session, 7, SECOND))
    assert session_record(session, 7, SECOND)["bytes_below"] == 7
