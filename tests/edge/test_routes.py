import json

import pytest

from edgewise.edge.config import EdgeConfig
from edgewise.edge.fanout import Fanout
from edgewise.edge.gate import Gate
from edgewise.edge.routes import Routes, Stats
from edgewise.edge.telemetry import Telemetry
from edgewise.edge.topics import Policy, TopicTree
from edgewise.edge.transports.http import Request
from edgewise.wire.frames import TopicKind


@pytest.fixture
def routes(tmp_path):
    (tmp_path / "index.html").write_text("<p>hi</p>")
    fanout = Fanout(TopicTree(10))
    telemetry = Telemetry()
    telemetry.age("fx", 3000)
    fanout.publish("fx/eur", {"bid": 1.5}, now_us=0, offset=41, at_us=7, epoch=2)
    fanout.publish("fx/usd", {"bid": 2}, now_us=0, offset=42, at_us=8, epoch=2)
    return Routes(
        EdgeConfig(assets=(("/", tmp_path),)),
        fanout.tree,
        Gate(),
        telemetry,
        lambda: Stats(sessions=3),
    )


def get(routes, path, method="GET", **query):
    return routes.answer(Request(method=method, path=path, query=query))


def test_a_topic_answers_its_value_and_position(routes):
    response = get(routes, "/topics/fx/eur")
    assert json.loads(response.body) == {"bid": 1.5}
    assert ("x-edgewise-position", "2:42") in response.headers


def test_a_merged_topic_answers_what_clients_see_and_a_blob_its_bytes():
    fanout = Fanout(TopicTree(10))
    for v in (1, 3):
        fanout.publish(
            "m", {"v": v}, now_us=0, offset=v, at_us=1, policy=Policy(conflate="merge(stats)")
        )
    fanout.publish("b", b"\0\xff", now_us=0, offset=0, at_us=1, policy=Policy(TopicKind.BLOB))
    routes = Routes(EdgeConfig(), fanout.tree, Gate(), Telemetry(), Stats)
    value = json.loads(get(routes, "/topics/m").body)["v"]
    assert (value["mean"], value["max"]) == (2.0, 3)
    assert "m2" not in value
    assert json.loads(get(routes, "/topics", select="m").body)["m"]["v"] == value
    blob = get(routes, "/topics/b")
    assert (blob.body, blob.content_type) == (b"\0\xff", "application/octet-stream")


def test_a_selector_answers_all_it_names(routes):
    assert set(json.loads(get(routes, "/topics", select="fx/+").body)) == {"fx/eur", "fx/usd"}
    assert get(routes, "/topics", select="#/x").status == 400


def test_health_metrics_assets_and_what_is_not_there(routes):
    assert json.loads(get(routes, "/healthz").body)["status"] == "ok"
    assert b"edgewise_edge_sessions 3" in get(routes, "/metrics").body
    assert b'age_seconds_bucket{topic="fx",le="0.005"} 1' in get(routes, "/metrics").body
    assert b"edgewise_edge_published_total 0" in get(routes, "/metrics").body
    assert get(routes, "/").body == b"<p>hi</p>"
    assert get(routes, "/nothing").status == 404
    assert get(routes, "/topics/none").status == 404
    assert get(routes, "/", method="DELETE").status == 405


def test_a_value_without_a_json_form_is_said(routes):
    routes._tree.get("fx/eur").head.value = {"x": object()}
    assert get(routes, "/topics/fx/eur").status == 406
