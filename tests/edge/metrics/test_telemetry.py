from tests.edge.sessions.test_session import Talk

from edgewise.edge.metrics.telemetry import (
    GROUPS_MAX,
    Telemetry,
    count_pending_by_group,
)
from edgewise.edge.sessions.fanout import Fanout
from edgewise.edge.sessions.outbox import Outbox
from edgewise.edge.topics.tree import Policy, Publication, TopicTree

SECOND = 1_000_000


def test_rates_are_since_the_last_look():
    telemetry = Telemetry()
    telemetry.measure_rates({"published": 100, "sessions": 1}, SECOND)
    telemetry.record_age(1, "a", 30_000)
    reported = telemetry.measure_rates({"published": 150, "sessions": 2}, 2 * SECOND)
    assert (reported["published_per_s"], reported["sessions"]) == (50.0, 2)
    assert 20 <= reported["age_p50_ms"] <= 50


def test_groups_are_bounded():
    telemetry = Telemetry()
    for i in range(2 * GROUPS_MAX):
        telemetry.record_age(1, f"g{i}", 1)
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
    telemetry.record_age(1, "fx", 30_000)
    telemetry.describe_group(group, 0, SECOND)
    group.updates, group.bytes = 25, 100
    reported = telemetry.describe_group(group, 1, 3 * SECOND)
    assert (reported["topics"], reported["updates"], reported["conflated"]) == (2, 25, 3)
    assert (reported["pending"], reported["updates_per_s"], reported["bytes_per_s"]) == (
        1,
        10.0,
        50.0,
    )
    assert 20 <= reported["age_p50_ms"] <= 50


def test_labels_cannot_break_the_format():
    telemetry = Telemetry()
    telemetry.record_age(1, 'a"b\n', 1)
    assert any('topic="a\\"b "' in line for line in telemetry.lines(TopicTree(1)))


def test_a_session_is_described_without_its_secret_name():
    session = Talk().session
    reported = Telemetry().describe_session(session, 7)
    assert session.name not in str(reported)
    assert reported["bytes_below"] == 7


def test_sessions_are_told_to_prometheus_with_the_histogram_of_their_ages():
    talk = Talk()
    session = talk.session
    session.number, session.client, session.rtt_us = 4, 'a "wall"', 2_500
    telemetry = Telemetry()
    telemetry.record_age(session.number, "a", 30_000)
    lines = [*telemetry.format_session_lines([(session, lambda: 7)])]
    label = 'session="4",client="a \\"wall\\"",principal="anyone"'
    assert f"edgewise_edge_session_bytes_below{{{label}}} 7" in lines
    assert f"edgewise_edge_session_round_trip_seconds{{{label}}} 0.0025" in lines
    assert f'edgewise_edge_session_age_seconds_bucket{{{label},le="0.05"}} 1' in lines
    reported = {
        line.split("_session_")[1].split("{")[0] for line in lines if not line.startswith("#")
    }
    wanted = {"updates_total", "bytes_total", "conflated_total", "pending"}
    assert wanted | {"drain_bytes_per_second"} <= reported


def test_what_waits_is_counted_by_group():
    fanout = Fanout(TopicTree(10))
    for path in ("fx/eur", "fx/usd", "chat"):
        fanout.publish(Publication(path, {"v": 1}, 0, 0), 0)
    outboxes = [Outbox(10, 10_000, 10) for _ in range(2)]
    for outbox in outboxes:
        fanout.subscribe(outbox, 1, ("#",))
    outboxes[0].take(10**9, 0)
    assert count_pending_by_group(outboxes) == {"fx": 2, "chat": 1}
