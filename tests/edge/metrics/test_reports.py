from tests.edge.sessions.test_session import Talk

from edgewise.edge.metrics.reports import PUBLISH_MS, SystemTopics
from edgewise.edge.metrics.telemetry import EdgeStats, Telemetry
from edgewise.edge.topics.tree import Publication
from edgewise.wire.paths import parse_selector

SECOND = PUBLISH_MS * 1000


def an_edge(*selectors):
    talk = Talk()
    talk.session.number = 3
    reports = SystemTopics(
        talk.fanout, Telemetry(), EdgeStats, lambda: [(talk.session, lambda: 7)]
    )
    for i, selector in enumerate(selectors):
        talk.fanout.subscribe(talk.session.outbox, 100 + i, parse_selector(selector))
    return talk, reports


def reported(talk):
    return {topic.path for topic in talk.fanout.tree if topic.path.startswith("$sys")}


def test_only_what_somebody_looks_at_is_told_in_detail():
    talk, reports = an_edge()
    reports.publish(SECOND)
    assert reported(talk) == {"$sys/edge"}
    talk, reports = an_edge("$sys/sessions/3", "$sys/topics/#")
    talk.fanout.publish(Publication("fx/eur", {"v": 1}, 0, 0), 0)
    reports.publish(SECOND)
    assert {"$sys/edge", "$sys/sessions/3", "$sys/topics/fx"} <= reported(talk)
    assert talk.fanout.tree.get("$sys/sessions/3").head.value["bytes_below"] == 7
    assert talk.fanout.tree.get("$sys/topics/fx").head.value["topics"] == 1


def test_it_is_due_once_a_second():
    talk, reports = an_edge()
    for now in (SECOND, SECOND + 1, 2 * SECOND - 1, 2 * SECOND):
        if reports.due(now):
            reports.publish(now)
    assert talk.fanout.tree.get("$sys/edge").head.version == 2
