"""kill -9 at any moment, start again: every row is in the output once.

A driver takes its JVM and workers with it. A Python worker is killed alone: Spark does its task
again, from the state before the batch. Batches are so small that there is always work left when
something is killed; a kill after the last row would prove nothing and fails the test. 51 of both,
35 drivers and 16 workers, over queries of every kind:

    python -m pytest -m slow -s tests/spark/test_crash.py
"""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from tests.spark.test_execution import LOGINS

from edgewise.event.event import Event
from edgewise.lang import compile_app
from edgewise.log.segment_reader import SegmentReader
from edgewise.node.commands.replay import load_logs, replay
from edgewise.node.config import NodeConfig
from edgewise.node.data_dir import DataDirectory
from edgewise.node.processes.children import encode_config

pytestmark = pytest.mark.spark

# Spark: forty batches, each of 0.2 s and more. Embedded: four thousand steps, each with its append
# to the log; a kill comes within the first tenth of a second after a row.
EVENTS = {"spark": 6_000, "embedded": 24_000}
ROWS_MAX = {"spark": 150, "embedded": 6}
KILL_WITHIN_S = {"spark": 1.0, "embedded": 0.1}
PATIENCE_S = 240
MASTER = "local[2,4]"  # a task may fail three times
BOTH = "define stream S (k string, v int); define stream T (k string, v int);"
APPS = {
    "window": f"{BOTH} from S#window.time(20 sec) select k, sum(v) as n group by k insert into O;",
    "tumbling": f"{BOTH} from S#window.timeBatch(5 sec) select k, count() as n group by k "
    "insert into O;",
    "pattern": f"{BOTH} from every a=S[v > 5] -> b=T[k == a.k] within 10 sec "
    "select a.k as k, a.v as n, b.v as m insert into O;",
    "sequence": f"{BOTH} from every a=S[v > 5], b=S[v < 3] select a.k as k, b.k as n "
    "insert into O;",
    "join": f"{BOTH} from S#window.time(3 sec) join T#window.time(3 sec) on S.k == T.k "
    "select S.k as k, S.v as n, T.v as m insert into O;",
    "table": f"{BOTH} define table Seen (k string, v int); "
    "from S[v > 6] update or insert into Seen set Seen.v = v on Seen.k == k; "
    "from T join Seen on T.k == Seen.k "
    "select T.k as k, Seen.v as n insert into O;",
    "filter": f"{BOTH} from S[v > 2] select k, v * 2 as n insert into M; "
    "from M[n < 16] select k, n + 1 as n insert into O;",
}


def fill(layout, app, count):
    """Events for every input, in the logs; answers the rows they make."""
    dice = random.Random(11)
    now, events = 0, []
    streams = [s.name for s in app.inputs]
    for _ in range(count):
        now += dice.choice([0, 5, 40])
        key = f"k{dice.randint(0, 300)}"
        row = (key, "c") if streams == ["login_stream"] else (key, dice.randint(0, 9))
        events.append(Event(dice.choice(streams), now, row))
    load_logs(app, events, layout)
    rows = {s.name: [] for s in app.outputs}
    for event in replay(app, events, "embedded"):
        rows[event.stream].append(event.data)
    return rows


class Driver:
    """The engine process of a node, as a node starts it."""

    def __init__(self, app, layout, engine, **more):
        config = NodeConfig(app, layout.data, engine=engine, rows_max=ROWS_MAX[engine], **more)
        source = str(Path(__file__).parents[2] / "src")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "edgewise.node.processes.engine"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
            env=os.environ | {"PYTHONPATH": source},
        )
        self.process.stdin.write(encode_config(config) + b"start\n")
        self.process.stdin.flush()

    def until_ready(self):
        said = ""
        for line in self.process.stdout:
            said = json.loads(line)
            if said.get("ready"):
                return
        raise AssertionError(f"the engine ended before it was ready: {said}")

    def kill(self):
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.communicate()

    def workers(self):
        """Python workers of the tasks: what the daemon has forked."""
        parents, names = {}, {}
        for path in Path("/proc").glob("[0-9]*"):
            try:
                names[int(path.name)] = (path / "cmdline").read_text()
                parents[int(path.name)] = int(
                    (path / "stat").read_text().rsplit(")")[1].split()[1]
                )
            except OSError:
                continue
        daemons = {
            p
            for p, name in names.items()
            if "edgewise.spark.worker_daemon\0pyspark.worker" in name
        }
        ours = [p for p in daemons if parents[p] in daemons]
        return [p for p in ours if self._is_below(p, parents)]

    def _is_below(self, pid, parents):
        while pid > 1:
            if pid == self.process.pid:
                return True
            pid = parents.get(pid, 0)
        return False


def output(layout, stream):
    if not layout.log_directory(stream).exists():
        return []
    reader = SegmentReader.open(layout.log_directory(stream))
    try:
        return [
            tuple(row.values())[3:]
            for batch in reader.read(reader.earliest(), reader.head().offset)
            for row in batch.rows.to_pylist()
        ]
    finally:
        reader.close()


class Crash:
    """An app with events in its logs, an engine over it, and what must come out."""

    def __init__(self, tmp_path, text, engine, **options):
        self.app_file = tmp_path / "app.siddhi"
        self.app_file.write_text(text)
        self.layout = DataDirectory(tmp_path / "data")
        self.engine, self.options = engine, options
        self.killed = Counter()
        self.expected = fill(self.layout, compile_app(text).app, EVENTS[engine])
        assert sum(map(len, self.expected.values())) > 100

    def start(self):
        driver = Driver(self.app_file, self.layout, self.engine, **self.options)
        driver.until_ready()
        return driver

    def kill_driver(self, dice):
        """At a random moment, mostly after it has written something."""
        before = self._written()
        driver = self.start()
        deadline = time.monotonic() + PATIENCE_S
        while dice.random() < 0.98 and self._written() == before and time.monotonic() < deadline:
            time.sleep(0.05)
        # A random moment is the point here.
        time.sleep(dice.uniform(0.0, KILL_WITHIN_S[self.engine]))
        driver.kill()
        self._count("drivers")

    def _count(self, what):
        assert not self._is_complete(), "all was done before the kill: make the input longer"
        self.killed[what] += 1

    def _written(self):
        return sum(len(output(self.layout, s)) for s in self.expected)

    def kill_workers(self, dice, count):
        """One after another, in a driver that lives."""
        driver = self.start()
        deadline = time.monotonic() + PATIENCE_S
        left = count
        while left and time.monotonic() < deadline and driver.process.poll() is None:
            time.sleep(dice.uniform(0.2, 1.5))
            if found := driver.workers():
                os.kill(dice.choice(found), signal.SIGKILL)
                self._count("workers")
                left -= 1
        assert driver.process.poll() is None, "a killed worker took the driver with it"
        driver.kill()

    def finish(self):
        driver = self.start()
        deadline = time.monotonic() + PATIENCE_S
        while not self._is_complete() and time.monotonic() < deadline:
            time.sleep(0.2)
        time.sleep(1.0)  # long enough for a row too many to show
        driver.kill()
        found = {s: output(self.layout, s) for s in self.expected}
        assert found == self.expected
        print(f"killed {dict(self.killed)}, {sum(map(len, found.values()))} rows, each once")

    def _is_complete(self):
        return all(len(output(self.layout, s)) >= len(r) for s, r in self.expected.items())


@pytest.mark.timeout(600)
def test_spark_killed_while_it_works_gives_every_row_once(tmp_path):
    crash = Crash(tmp_path, LOGINS, "spark")
    crash.kill_driver(random.Random(1))
    crash.finish()
    assert crash.killed == {"drivers": 1}


@pytest.mark.timeout(600)
def test_the_embedded_engine_killed_three_times_gives_every_row_once(tmp_path):
    crash, dice = Crash(tmp_path, LOGINS, "embedded"), random.Random(2)
    for _ in range(3):
        crash.kill_driver(dice)
    crash.finish()
    assert crash.killed == {"drivers": 3}


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_python_workers_that_are_killed_lose_no_row_and_double_none(tmp_path):
    in_tasks = {"small_batch_rows": 0, "master": MASTER}
    crash = Crash(tmp_path, APPS["window"], "spark", **in_tasks)
    crash.kill_workers(random.Random(3), 2)
    crash.finish()
    assert crash.killed == {"workers": 2}


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kind", APPS)
def test_drivers_and_workers_killed_over_every_kind_of_query(tmp_path, kind):
    """Two drivers and two workers of each, with another number of partitions in between."""
    dice = random.Random(kind)
    crash = Crash(tmp_path, APPS[kind], "spark", small_batch_rows=0, master=MASTER)
    crash.kill_driver(dice)
    crash.kill_workers(dice, 2)
    crash.options["partitions"] = dice.randint(3, 4)
    crash.kill_driver(dice)
    crash.finish()
    assert crash.killed == {"drivers": 2, "workers": 2}


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kind", APPS)
def test_drivers_killed_over_every_kind_of_query(tmp_path, kind):
    """Three drivers of each, small batches in the driver itself."""
    dice = random.Random(kind)
    crash = Crash(tmp_path, APPS[kind], "spark")
    for _ in range(3):
        crash.kill_driver(dice)
    crash.finish()
    assert crash.killed == {"drivers": 3}
