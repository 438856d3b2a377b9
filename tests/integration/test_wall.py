"""The page that every app has, and a page of one's own, in a real browser on a real node."""

import pytest
from tests.support.node_process import NodeProcess, post

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]

SHOW_S_MAX = 30
APP = """
@app:name('fleet')
@source(type='http', @map(type='json'))
define stream Fix (car string, lat double, lon double, speed double);

@sink(type='topic', path='cars/{car}')
define stream Cars (car string, lat double, lon double, speed double);

@sink(type='topic', path='fleet')
define stream Fleet (cars long, fastest double);

@sink(type='topic', path='speeds', kind='series', keep='50')
define stream Speeds (speed double);

@sink(type='topic', path='by-car', kind='table', key='{car}')
define stream ByCar (car string, fixes long);

from Fix select car, lat, lon, speed insert into Cars;
from Fix select distinctCount(car) as cars, max(speed) as fastest insert into Fleet;
from Fix select speed insert into Speeds;
from Fix select car, count() as fixes group by car insert into ByCar;
"""
FIXES = [
    {"car": car, "lat": 56.9 + n / 100, "lon": 24.1 + n / 50, "speed": 40.0 + n}
    for n in range(5)
    for car in ("a", "<b>")
]
SECTION = "document.querySelector('section[aria-label={}]')"


@pytest.fixture
def start(tmp_path):
    """A node of the app above; `start(--option, value)`."""
    (tmp_path / "app.siddhi").write_text(APP)
    started = []

    def run(*options):
        ports = ("--http-port", 0, "--edge-port", 0)
        data = ("--data", tmp_path / "data")
        app = ("run", tmp_path / "app.siddhi", "--engine", "embedded")
        started.append(NodeProcess(*app, *ports, *data, *options))
        return started[-1]

    yield run
    for node in started:
        node.stop()


def test_the_wall_shows_each_sink_as_fits_its_topics(browser, start):
    node = start()
    page = browser.open(node.edge + "/")
    post(f"{node.ingest}/streams/Fix", FIXES)
    cars = SECTION.format("Cars")
    page.wait_for(f"{cars}?.querySelectorAll('tbody tr').length === 2", SHOW_S_MAX)
    assert page.evaluate(f"{cars}.querySelector('.map').getAttribute('aria-label')") == (
        "map of 2 rows"
    )
    assert page.evaluate(f"{cars}.querySelector('tbody b')") is None  # text stays text
    figures = (
        f"[...{SECTION.format('Fleet')}.querySelectorAll('.figure b')].map(b => b.textContent)"
    )
    page.wait_for(f"{figures}.join() === '2,44'", SHOW_S_MAX)
    page.wait_for(f"{SECTION.format('Speeds')}.querySelector('.figure b').textContent === '44'", 9)
    page.wait_for(f"{SECTION.format('ByCar')}.querySelectorAll('tbody tr').length === 2", 9)
    page.wait_for("document.getElementById('state').textContent === 'live'", SHOW_S_MAX)
    assert page.evaluate("document.title") == "fleet"
    assert page.complaints == []
    page.close()


def test_a_page_of_ones_own_follows_a_topic_in_three_lines(browser, start, tmp_path):
    (tmp_path / "web").mkdir()
    (tmp_path / "web" / "index.html").write_text(
        """<!doctype html><p id=fastest></p><script type=module>
        import { connect, here } from "/js/edgewise.js";
        const show = (topic, value) => { fastest.textContent = value.fastest; };
        connect(here()).subscribe("fleet", show);
        </script>"""
    )
    node = start("--web", tmp_path / "web")
    page = browser.open(node.edge + "/")
    post(f"{node.ingest}/streams/Fix", FIXES)
    page.wait_for("document.getElementById('fastest').textContent === '44'", SHOW_S_MAX)
    page.close()
