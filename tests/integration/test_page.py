"""The page in a real browser on a real edge; the alerts come from the test, so it is quick."""

import asyncio
import threading
import time

import pytest
import uvloop
from tests.support.program import ROOT
from tests.support.stalled_client import asleep

from edgewise.edge.config import EdgeConfig
from edgewise.edge.server.server import Edge
from edgewise.edge.topics.tree import Publication

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]

SHOW_S_MAX = 30
ASSETS = (
    ("/js/", ROOT / "clients" / "js"),
    ("/parts/", ROOT / "web" / "parts"),
    ("/", ROOT / "web" / "demo"),
)
ROW = "document.querySelector('#alerts tbody tr[data-topic=\"alerts/{}\"]')"
TOPICS, BYTES = 500, 2000  # far more than the buffers of a sleeping client hold


class Publisher:
    """An edge on a thread of its own, and a hand that publishes."""

    def __init__(self, new_loop, port: int = 0) -> None:
        self.edge = Edge(EdgeConfig(assets=ASSETS))
        self.new_loop = new_loop
        self.loop = new_loop()
        self.thread = threading.Thread(target=self.loop.run_forever)
        self.thread.start()
        self.port = self.on_loop(self.edge.start("127.0.0.1", port))
        self.url = f"http://127.0.0.1:{self.port}/"
        self.offset = 0

    def on_loop(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(SHOW_S_MAX)

    def publish(self, path, **value):
        self.offset += 1
        at_us = time.time_ns() // 1000
        done = self.edge.publish_threadsafe([Publication(path, value, self.offset, at_us)])
        assert done.wait(SHOW_S_MAX)

    def alert(self, ip, count):
        self.publish(f"alerts/{ip}", ip=ip, loginCount=count, cityId="riga")

    def stop(self):
        if self.loop.is_closed():
            return
        self.on_loop(self.edge.stop())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        self.loop.close()


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def publisher(request):
    started = Publisher(request.param)
    yield started
    started.stop()


@pytest.fixture
def page(browser, publisher):
    page = browser.open(publisher.url)
    page.evaluate("window.not_reloaded = true")
    yield page
    assert page.evaluate("window.not_reloaded === true"), "the page was loaded again"
    assert page.complaints == []
    page.close()


def shows(ip, count):
    return f"{ROW.format(ip)}?.querySelector('.count').textContent === '{count}'"


def test_the_current_value_comes_at_once_then_updates(browser, publisher):
    publisher.alert("10.0.0.1", 11)
    page = browser.open(publisher.url)
    page.wait_for(shows("10.0.0.1", 11), SHOW_S_MAX)
    publisher.alert("10.0.0.1", 12)
    page.wait_for(shows("10.0.0.1", 12), SHOW_S_MAX)
    page.close()


def test_an_alert_appears_changes_and_goes_with_no_reload(page, publisher):
    publisher.alert("10.0.0.2", 1234)
    page.wait_for(shows("10.0.0.2", "1,234"), SHOW_S_MAX)
    publisher.loop.call_soon_threadsafe(publisher.edge.remove, "alerts/10.0.0.2")
    page.wait_for(f"!{ROW.format('10.0.0.2')}", SHOW_S_MAX)


def test_rates_and_ages_are_shown(page, publisher):
    publisher.publish("$sys/rates", events_in_per_s=2000.4, rows_out_per_s=3.5)
    text = "document.getElementById('{}').textContent"
    page.wait_for(f"{text.format('events-in')} === '2,000'", SHOW_S_MAX)
    page.wait_for(f"{text.format('rows-out')} === '3.5'", SHOW_S_MAX)
    publisher.alert("10.0.0.3", 11)
    page.wait_for(shows("10.0.0.3", 11), SHOW_S_MAX)
    publisher.alert("10.0.0.3", 12)
    page.wait_for("document.getElementById('age-p50').dataset.ms?.length > 0", SHOW_S_MAX)


def test_a_client_that_never_reads_has_one_value_per_topic_waiting_and_disturbs_nobody(
    page, publisher
):
    with asleep(publisher.url):
        for round_ in range(5):
            for n in range(TOPICS):
                publisher.publish(f"noise/{n}", text="x" * BYTES, round=round_)
        publisher.alert("10.0.0.4", 99)
        page.wait_for(shows("10.0.0.4", 99), SHOW_S_MAX)
        stats = publisher.edge.stats
        in_the_page = 10  # it has a few topics of its own, and reads
        assert TOPICS / 2 < stats.pending <= stats.topics + in_the_page
        assert stats.conflated > TOPICS


def test_the_page_comes_back_by_itself_when_the_edge_does(browser, publisher):
    publisher.alert("10.0.0.5", 11)
    page = browser.open(publisher.url)
    page.wait_for(shows("10.0.0.5", 11), SHOW_S_MAX)
    page.evaluate("window.not_reloaded = true")
    publisher.stop()
    page.wait_for("document.getElementById('state').dataset.state !== 'open'", SHOW_S_MAX)
    again = Publisher(publisher.new_loop, publisher.port)
    again.offset = publisher.offset  # a log goes on where it was, and so do its topics
    try:
        again.alert("10.0.0.5", 50)
        page.wait_for(shows("10.0.0.5", 50), SHOW_S_MAX)
        assert page.evaluate("window.not_reloaded === true")
    finally:
        again.stop()
    page.close()


def test_text_from_outside_stays_text(page, publisher):
    publisher.publish(
        "alerts/x", ip="<img src=x onerror=document.title='bad'>", loginCount=11, cityId="<b>c</b>"
    )
    page.wait_for(shows("x", 11), SHOW_S_MAX)
    assert page.evaluate("document.querySelector('#alerts tbody img, #alerts tbody b')") is None
