from tests.edge.test_session import Talk

from edgewise.edge.conflate import Outbox
from edgewise.edge.fanout import Fanout
from edgewise.edge.histogram import Histogram
from edgewise.edge.telemetry import (
    GROUPS_MAX,
    Telemetry,
    pending_by_group,
    session_lines,
    session_record,
)
from edgewise.edge.topics import Policy, TopicTree

SECOND = 1_000_000


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
    telemetry.group_record(group, 0, SECOND)
    group.updates, group.bytes = 25, 100
    told = telemetry.group_record(group, 1, 3 * SECOND)
    assert (told["topics"], told["updates"], told["conflated"]) == (2, 25, 3)
    assert (told["pending"], told["updates_per_s"], told["bytes_per_s"]) == (1, 10.0, 50.0)
    assert 20 <= told["age_p50_ms"] <= 50


def test_labels_cannot_break_the_format():
    telemetry = Telemetry()
    telemetry.age('a"b\n', 1)
    assert any('topic="a\\"b "' in line for line in telemetry.lines(TopicTree(1)))


def test_a_session_is_described_without_its_secret_name():
    session = Talk().session
    told = session_record(session, 7)
    assert session.name not in str(told)
    assert told["bytes_below"] == 7


def test_sessions_are_told_to_prometheus_with_the_histogram_of_their_ages():
    talk = Talk()
    session = talk.session
    session.number, session.client, session.rtt_us = 4, 'a "wall"', 2_500
    session.ages = Histogram()
    session.ages.add(30)
    lines = [*session_lines([(session, lambda: 7)])]
    label = 'session="4",client="a \\"wall\\"",principal="anyone"'
    assert f"edgewise_edge_session_bytes_below{{{label}}} 7" in lines
    assert f"edgewise_edge_session_round_trip_seconds{{{label}}} 0.0025" in lines
    assert f'edgewise_edge_session_age_seconds_bucket{{{label},le="0.05"}} 1' in lines
    told = {line.split("_session_")[1].split("{")[0] for line in lines if not line.startswith("#")}
    wanted = {"updates_total", "bytes_total", "conflated_total", "pending"}
    assert wanted | {"drain_bytes_per_second"} <= told


def test_what_waits_is_counted_by_group():
    fanout = Fanout(TopicTree(10))
    for path in ("fx/eur", "fx/usd", "chat"):
        fanout.publish(path, {"v": 1}, now_us=0, offset=0, at_us=0)
    outboxes = [Outbox(10, 10_000, 10) for _ in range(2)]
    for outbox in outboxes:
        fanout.subscribe(outbox, 1, ("#",))
    outboxes[0].take(10**9, 0)
    assert pending_by_group(outboxes) == {"fx": 2, "chat": 1}
