"""The JavaScript client in a real browser on bad networks."""

import asyncio
import threading
import time
from http import HTTPStatus

import pytest
from tests.support.program import ROOT
from tests.support.slow_link import Pipe

from edgewise.edge.config import EdgeConfig
from edgewise.edge.server.server import Edge
from edgewise.edge.topics.tree import Policy, Publication
from edgewise.edge.transports.http import problem_response

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]

SHOW_S = 30
ASSETS = (("/js/", ROOT / "clients" / "js"),)
START = """(async () => {
  const { connect, here } = await import("/js/edgewise.js");
  window.seen = [];
  window.ew = connect(here());
  ew.subscribe("t/#", (topic, value, meta) => seen.push([topic, value.v, meta.how, meta.count]));
})()"""


class Blocked(Edge):
    """Behind a proxy that knows no WebSockets, and maybe no streams."""

    streams = True

    def upgrade_refused(self, headers):
        if "upgrade" in headers:
            return problem_response(HTTPStatus.BAD_GATEWAY, "no WebSockets here")
        return None

    def request(self, connection, request):
        if request.path == "/sse" and not self.streams:
            connection.respond(problem_response(HTTPStatus.BAD_GATEWAY, "no streams here"))
        else:
            super().request(connection, request)


class Net:
    """An edge and a pipe to it on a thread of their own."""

    def __init__(self, kind=Edge):
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever)
        self.thread.start()
        self.edge, self.offset = kind(EdgeConfig(assets=ASSETS)), 0
        self.port = self.run(self.edge.start())
        self.pipe = Pipe(self.port)
        self.run(self.pipe.start())
        self.url = f"http://127.0.0.1:{self.pipe.port}/js/edgewise.d.ts"

    def run(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(SHOW_S)

    def call(self, function, *args):
        async def now():
            return function(*args)

        return self.run(now())

    def put(self, path, v, policy=None):
        self.offset += 1
        at = time.time_ns() // 1000
        publication = Publication(path, {"v": v}, self.offset, at, epoch=1, policy=policy)
        assert self.edge.publish_threadsafe([publication]).wait(SHOW_S)

    def stop(self):
        self.run(self.pipe.stop())
        self.run(self.edge.stop())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        self.loop.close()


@pytest.fixture
def net():
    started = Net()
    yield started
    started.stop()


def shown(page, path, v, how=""):
    page.wait_for(
        f"window.seen?.some(([t, x, h]) => t === '{path}' && x === {v} && h.includes('{how}'))",
        SHOW_S,
    )


@pytest.mark.parametrize(("streams", "transport"), [(True, "sse"), (False, "poll")])
def test_the_browser_finds_a_way_around_a_proxy(browser, streams, transport):
    net = Net(Blocked)
    net.edge.streams = streams
    try:
        net.put("t/a", 1)
        page = browser.open(net.url)
        page.evaluate(START)
        shown(page, "t/a", 1, "snapshot")
        net.put("t/a", 2)
        shown(page, "t/a", 2, "update")
        assert page.evaluate("ew.transport") == transport
    finally:
        net.stop()


def test_a_cut_network_is_resumed_by_position(browser, net):
    precise = Policy(recovery="precise", keep=100)
    net.put("t/state", 1)
    net.put("t/exact", 1, precise)
    page = browser.open(net.url)
    page.evaluate(START)
    shown(page, "t/exact", 1)
    shown(page, "t/state", 1)
    net.call(net.pipe.cut)
    page.wait_for("ew.state === 'waiting' || ew.state === 'connecting'", SHOW_S)
    for v in (2, 3, 4):
        net.put("t/state", v)
        net.put("t/exact", v)
    net.call(net.pipe.mend)
    shown(page, "t/exact", 4, "replay")
    shown(page, "t/state", 4, "catch-up")
    seen = page.evaluate("seen")
    assert [v for t, v, *_ in seen if t == "t/exact"] == [1, 2, 3, 4]
    assert [v for t, v, *_ in seen if t == "t/state"] == [1, 4]


def test_a_server_that_restarts_is_found_again(browser, net):
    net.put("t/a", 1)
    page = browser.open(net.url)
    page.evaluate(START)
    shown(page, "t/a", 1)
    net.run(net.edge.stop())
    net.edge = Edge(EdgeConfig(assets=ASSETS))
    net.run(net.edge.start("127.0.0.1", net.port))
    net.put("t/a", 2)
    shown(page, "t/a", 2)
    assert page.evaluate("ew.state") == "open"


def test_a_throttled_link_gets_fewer_and_newer_values(browser, net):
    page = browser.open(net.url)
    page.evaluate(START)
    page.wait_for("ew.state === 'open'", SHOW_S)
    net.pipe.bytes_per_s = 60_000
    last = 20_000
    for v in range(0, last + 1, 100):
        at = time.time_ns() // 1000
        batch = [
            Publication(f"t/{i}", {"v": v, "filler": f"{v}" + "x" * 300}, v, at) for i in range(20)
        ]
        assert net.edge.publish_threadsafe(batch).wait(SHOW_S)
    for i in range(20):
        shown(page, f"t/{i}", last)
    seen = page.evaluate("seen")
    assert len(seen) < 20 * last / 100 / 2
    assert max(count for *_, count in seen) > 1
