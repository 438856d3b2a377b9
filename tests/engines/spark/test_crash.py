"""kill -9 at any moment, start again: every row is in the output once."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.engines.spark.test_engine import LOGINS

from edgewise.event.arrow import record_batch
from edgewise.event.event import Event
from edgewise.lang import compile_app
from edgewise.log.segment import SegmentReader, SegmentWriter
from edgewise.node.layout import Layout
from edgewise.node.replay import replay

pytestmark = pytest.mark.spark

EVENTS = 20_000
BATCH_ROWS = 500
PATIENCE_S = 240


def fill(layout, app):
    dice = random.Random(11)
    now, events = 0, []
    for _ in range(EVENTS):
        now += dice.choice([0, 50, 400])
        events.append(Event("login_stream", now, (f"ip{dice.randint(0, 300)}", "c")))
    schema = app.stream("login_stream").schema
    writer = SegmentWriter.open(layout.log("login_stream"), schema)
    columns = [list(c) for c in zip(*(e.data for e in events), strict=True)]
    ts = [e.ts for e in events]
    writer.append(record_batch(writer.schema, ts, list(range(EVENTS)), [0] * EVENTS, columns))
    writer.close()
    return [e.data for e in replay(app, events, "embedded")]


class Driver:
    """The engine process of a node, as a node starts it."""

    def __init__(self, app, layout, engine):
        command = [sys.executable, "-m", "edgewise.node.engine", str(app)]
        command += ["--data", str(layout.data), "--engine", engine, "--max-rows", str(BATCH_ROWS)]
        source = str(Path(__file__).parents[3] / "src")
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
            env=os.environ | {"PYTHONPATH": source},
        )

    def until_ready(self):
        for line in self.process.stdout:
            if json.loads(line).get("ready"):
                return
        raise AssertionError("the engine ended before it was ready")

    def kill(self):
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.communicate()


def output(layout):
    reader = SegmentReader.open(layout.log("login_attempt_repeatedly_stream"))
    try:
        return [
            tuple(row.values())[3:]
            for batch in reader.read(reader.earliest(), reader.head().offset)
            for row in batch.rows.to_pylist()
        ]
    finally:
        reader.close()


def crash_and_compare(tmp_path, engine, kills, seed):
    dice = random.Random(seed)
    app_file = tmp_path / "app.siddhi"
    app_file.write_text(LOGINS)
    app = compile_app(LOGINS).app
    layout = Layout(tmp_path / "data")
    expected = fill(layout, app)
    assert len(expected) > 1000
    for _ in range(kills):
        driver = Driver(app_file, layout, engine)
        driver.until_ready()
        time.sleep(dice.uniform(0.0, 4.0))  # a random moment is the point here
        driver.kill()
    driver = Driver(app_file, layout, engine)
    driver.until_ready()
    deadline = time.monotonic() + PATIENCE_S
    while len(output(layout)) < len(expected) and time.monotonic() < deadline:
        time.sleep(0.2)
    time.sleep(1.0)  # long enough for a row too many to show
    driver.kill()
    assert output(layout) == expected


@pytest.mark.timeout(600)
def test_spark_killed_three_times_gives_every_row_once(tmp_path):
    crash_and_compare(tmp_path, "spark", kills=3, seed=1)


@pytest.mark.timeout(600)
def test_the_embedded_engine_killed_three_times_gives_every_row_once(tmp_path):
    crash_and_compare(tmp_path, "embedded", kills=3, seed=2)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", range(10))
def test_ten_times_in_a_row(tmp_path, seed):
    crash_and_compare(tmp_path, "spark", kills=3, seed=100 + seed)
