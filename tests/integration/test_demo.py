"""`edgewise demo`, as a newcomer sees it: the real command, the real page, a real browser."""

import os
import signal

import pytest
from tests.support.program import ROOT, Program
from tests.support.stalled_client import asleep

pytestmark = [pytest.mark.integration, pytest.mark.spark, pytest.mark.timeout(420)]

START_S_MAX = 180  # a JVM on a loaded machine
SHOW_S_MAX = 60
LOOK_MS = 8_000
STOP_S_MAX = 5.0  # the promise
PAGE_LINE = r"page +(http://127\.0\.0\.1:\d+/)"
DEMO = ("demo", "--http-port", "0", "--edge-port", "0")
NUMBER = "Number(document.getElementById('{}').textContent.replace(/[^0-9.]/g, ''))"
COUNTS = """Object.fromEntries([...document.querySelectorAll('#alerts tbody tr[data-topic]')]
    .map((row) => [row.dataset.topic, row.querySelector('.count').textContent]))"""


def stops_in_five_seconds(program, home):
    program.ctrl_c()
    assert program.all_gone_after_s(STOP_S_MAX + 5) < STOP_S_MAX, program.said
    assert program.process.wait() in {0, 130}, program.said
    assert "Traceback" not in program.said
    assert list(home.glob("edgewise*")) == [], "its data directory is still there"


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """One demo for all tests that only look; when they have, Ctrl-C ends it as promised."""
    home = tmp_path_factory.mktemp("demo")
    with Program.start(*DEMO, home=home) as program:
        program.url = program.wait_for_line(PAGE_LINE, START_S_MAX).group(1)
        yield program
        stops_in_five_seconds(program, home)


@pytest.fixture
def page(browser, demo):
    page = browser.open(demo.url)
    page.evaluate("window.not_reloaded = true")
    yield page
    assert page.evaluate("window.not_reloaded === true"), "the page was loaded again"
    assert page.complaints == []
    page.close()


def wait_for_an_update(page):
    """The topic and count of a row that was on the page with another count before.

    Bursts come and go, so each look compares with all earlier ones.
    """
    page.evaluate("window.counts_seen = {}")
    return page.wait_for(
        f"""(() => {{
            const now = {COUNTS}, before = window.counts_seen;
            window.counts_seen = {{...before, ...now}};
            return Object.entries(now).find(([topic, n]) => n !== (before[topic] ?? n));
        }})()""",
        SHOW_S_MAX,
    )


def test_an_alert_appears_and_changes_with_no_reload(page):
    topic, count = wait_for_an_update(page)
    assert topic.startswith("alerts/")
    assert int(count.replace(",", "")) > 10, "the query asks for more than ten logins"


@pytest.mark.slow
def test_the_wall_is_worth_a_picture(page):
    """With a few alerts and all figures there, it is saved for people to look at."""
    page.wait_for(f"{NUMBER.format('alert-count')} >= 5", 2 * SHOW_S_MAX)
    wait_for_an_update(page)
    page.wait_for("document.getElementById('age-p99').dataset.ms?.length > 0", SHOW_S_MAX)
    page.wait_for(f"performance.now() > {LOOK_MS}", SHOW_S_MAX)  # the curves need some length
    page.screenshot(ROOT / "artifacts" / "demo.png")


def test_two_thousand_events_a_second_come_in(page):
    page.wait_for(f"(n => n > 1500 && n < 2600)({NUMBER.format('events-in')})", SHOW_S_MAX)


def test_rows_go_out_and_their_age_is_shown(page):
    page.wait_for(f"{NUMBER.format('rows-out')} > 0", SHOW_S_MAX)
    for quantile in ("age-p50", "age-p99"):
        page.wait_for(f"document.getElementById('{quantile}').dataset.ms?.length > 0", SHOW_S_MAX)
    page.wait_for("document.getElementById('age-p50').dataset.ms < 2000", SHOW_S_MAX)


def test_a_client_that_never_reads_does_not_disturb_the_page(page, demo):
    with asleep(demo.url):
        for _ in range(3):
            wait_for_an_update(page)
        page.wait_for("document.getElementById('state').dataset.state === 'open'", SHOW_S_MAX)


def test_the_terminal_says_what_is_happening_step_by_step_with_elapsed_time(demo):
    steps = [line for line in demo.said.splitlines() if line.strip()]
    timed = [line.split()[0] for line in steps]
    assert all(text.endswith("s") and float(text[:-1]) >= 0 for text in timed), demo.said
    assert len(steps) >= 4, demo.said


def test_ctrl_c_while_it_starts_stops_everything_in_five_seconds(tmp_path):
    with Program.start(*DEMO, home=tmp_path) as program:
        program.wait_for_line("JVM", START_S_MAX)
        stops_in_five_seconds(program, tmp_path)


def test_kill_9_leaves_no_process_behind_either(tmp_path):
    with Program.start(*DEMO, home=tmp_path) as program:
        program.wait_for_line("Spark .* is up", START_S_MAX)
        os.kill(program.process.pid, signal.SIGKILL)
        program.all_gone_after_s(30)
