import json

import pytest

from edgewise.edge.access.auth import AccessControl, Principal, parse_selectors
from edgewise.edge.config import EdgeConfig
from edgewise.edge.metrics.telemetry import EdgeStats, Telemetry
from edgewise.edge.server.routes import HttpRoutes
from edgewise.edge.sessions.fanout import Fanout
from edgewise.edge.topics.tree import Policy, Publication, TopicTree
from edgewise.edge.transports.http import HttpRequest
from edgewise.errors import ProtocolError
from edgewise.wire.codes import ProtocolCode
from edgewise.wire.frames import TopicKind


@pytest.fixture
def routes(tmp_path):
    (tmp_path / "index.html").write_text("<p>hi</p>")
    fanout = Fanout(TopicTree(10))
    telemetry = Telemetry()
    telemetry.record_age(1, "fx", 3000)
    fanout.publish(Publication("fx/eur", {"bid": 1.5}, 41, 7, epoch=2), 0)
    fanout.publish(Publication("fx/usd", {"bid": 2}, 42, 8, epoch=2), 0)
    return HttpRoutes(
        EdgeConfig(assets=(("/", tmp_path),)),
        fanout.tree,
        AccessControl(),
        telemetry,
        lambda: EdgeStats(sessions=3),
    )


def get(routes, path, method="GET", **query):
    return routes.answer(HttpRequest(method=method, path=path, query=query))


def test_a_topic_answers_its_value_and_position(routes):
    response = get(routes, "/topics/fx/eur")
    assert json.loads(response.body) == {"bid": 1.5}
    assert ("x-edgewise-position", "2:42") in response.headers


def test_a_merged_topic_answers_what_clients_see_and_a_blob_its_bytes():
    fanout = Fanout(TopicTree(10))
    for v in (1, 3):
        fanout.publish(Publication("m", {"v": v}, v, 1, policy=Policy(conflate="merge(stats)")), 0)
    fanout.publish(Publication("b", b"\0\xff", 0, 1, policy=Policy(TopicKind.BLOB)), 0)
    routes = HttpRoutes(EdgeConfig(), fanout.tree, AccessControl(), Telemetry(), EdgeStats)
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


class Names:
    """In place of a verifier: a token is the name, and 'operator' may read the metrics."""

    def verify(self, token):
        if not token:
            raise ProtocolError(ProtocolCode.UNAUTHENTICATED, "a token is needed")
        read = parse_selectors(["$sys/#"] if token == "operator" else ["#"])
        return Principal(token, read=read)


@pytest.mark.parametrize(
    ("token", "status"), [("", 401), ("Bearer wall", 403), ("Bearer operator", 200)]
)
def test_metrics_of_a_node_with_tokens_need_one_that_may_read_them(token, status):
    routes = HttpRoutes(
        EdgeConfig(), TopicTree(10), AccessControl(Names()), Telemetry(), EdgeStats
    )
    request = HttpRequest("GET", "/metrics", headers={"authorization": token})
    assert routes.answer(request).status == status
    assert routes.answer(HttpRequest("GET", "/healthz")).status == 200


@pytest.mark.parametrize("path", ["/", "/topics/fx/eur", "/metrics", "/healthz"])
def test_a_foreign_host_is_refused_without_tokens(routes, path):
    for host, status in (("localhost:1", 200), ("evil.example:1", 403)):
        assert routes.answer(HttpRequest("GET", path, headers={"host": host})).status == status


def test_a_listed_page_may_load_the_client_and_another_may_not_read_it(tmp_path):
    (tmp_path / "client.js").write_text("")
    access = AccessControl(origins=("https://good.example",))
    assets = EdgeConfig(assets=(("/js/", tmp_path),))
    routes = HttpRoutes(assets, TopicTree(10), access, Telemetry(), EdgeStats)
    for origin, allowed in (("https://good.example", True), ("https://evil.example", False)):
        request = HttpRequest("GET", "/js/client.js", headers={"origin": origin})
        headers = dict(routes.answer(request).headers)
        assert ("access-control-allow-origin" in headers) == allowed
