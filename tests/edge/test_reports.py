from tests.edge.test_session import Talk

from edgewise.edge.reports import TELL_MS, Reports
from edgewise.edge.routes import Stats
from edgewise.edge.telemetry import Telemetry
from edgewise.wire.paths import parse_selector

SECOND = TELL_MS * 1000


def an_edge(*selectors):
    talk = Talk()
    talk.session.number = 3
    reports = Reports(talk.fanout, Telemetry(), Stats, lambda: [(talk.session, lambda: 7)])
    for i, selector in enumerate(selectors):
        talk.fanout.subscribe(talk.session.outbox, 100 + i, parse_selector(selector))
    return talk, reports


def told(talk):
    return {topic.path for topic in talk.fanout.tree if topic.path.startswith("$sys")}


def test_only_what_somebody_looks_at_is_told_in_detail():
    talk, reports = an_edge()
    reports.tell(SECOND)
    assert told(talk) == {"$sys/edge"}
    talk, reports = an_edge("$sys/sessions/3", "$sys/topics/#")
    talk.fanout.publish("fx/eur", {"v": 1}, now_us=0, offset=0, at_us=0)
    reports.tell(SECOND)
    assert {"$sys/edge", "$sys/sessions/3", "$sys/topics/fx"} <= told(talk)
    assert talk.fanout.tree.get("$sys/sessions/3").head.value["bytes_below"] == 7
    assert talk.fanout.tree.get("$sys/topics/fx").head.value["topics"] == 1


def test_it_is_due_once_a_second():
    talk, reports = an_edge()
    for now in (SECOND, SECOND + 1, 2 * SECOND - 1, 2 * SECOND):
        if reports.due(now):
            reports.tell(now)
    assert talk.fanout.tree.get("$sys/edge").head.version == 2
