"""A node on Spark, watched from outside: time, faults, figures, and what the terminal says."""

import json
import os
import signal
import time
from contextlib import suppress
from pathlib import Path

import pytest
from tests.support.program import Program, request, until

from edgewise.log.segment_reader import SegmentReader
from edgewise.node.data_dir import DataDirectory

pytestmark = [pytest.mark.integration, pytest.mark.spark, pytest.mark.timeout(300)]

START_S_MAX = 180  # a JVM on a loaded machine
SHOW_S_MAX = 60
APP = """
@app:name('walk')
@lateness('1 sec') @OnError(action='STREAM')
define stream S (k string, v int);
define stream T (k string, p string);
from S#window.time(5 sec) select k, sum(v) as n group by k insert into Sums;
from T[str:regexp(k, p)] select k insert into Matches;
from !S select k, v insert into Late;
from every e1=S -> not T[k == e1.k] for 3 sec select e1.k as k insert into Quiet;
"""


class Walk:
    def __init__(self, program, data):
        self.program = program
        self._layout = DataDirectory(data)
        door = program.wait_for_line(r"(http://\S+)/streams/S", START_S_MAX).group(1)
        self._door = door
        self._edge = program.wait_for_line(r"edge +(http://\S+:\d+)/", START_S_MAX).group(1)
        program.wait_for_line("query running", START_S_MAX)

    def post(self, stream, *events):
        body = [{"ts": ts, "data": data} for ts, data in events]
        url = f"{self._door}/streams/{stream}"
        assert request("POST", url, json.dumps(body).encode())[0] == 200

    def rows(self, stream):
        reader = SegmentReader.open(self._layout.log_directory(stream))
        try:
            batches = reader.read(reader.earliest(), reader.head().offset)
            return [list(r.values())[3:] for b in batches for r in b.rows.to_pylist()]
        finally:
            reader.close()

    def metric(self, name):
        _, text = request("GET", f"{self._door}/metrics")
        found = [line for line in text.decode().splitlines() if line.startswith(f"{name} ")]
        return float(found[0].rsplit(" ", 1)[1]) if found else None

    def topic(self, name):
        status, body = request("GET", f"{self._edge}/topics/{name}")
        return json.loads(body) if status == 200 else {}


@pytest.fixture
def walk(tmp_path):
    home = tmp_path
    (home / "app.siddhi").write_text(APP)
    run = ("run", str(home / "app.siddhi"), "--data", str(home / "data"), "--engine", "spark")
    ports = ("--master", "local[2]", "--http-port", "0", "--edge-port", "0")
    with Program.start(*run, *ports, home=home) as program:
        yield Walk(program, home / "data")


def test_what_people_watch(walk):
    now = time.time_ns() // 1_000_000
    walk.post("S", (now - 20_000, {"k": "a", "v": 1}), (now, {"k": "a", "v": 2}))
    walk.post("S", (now - 10_000, {"k": "late", "v": 3}))  # ten seconds behind, one is allowed
    # Nothing comes any more, T never spoke: the log carries time, and the timers fire.
    until(lambda: walk.rows("Quiet") == [["a"], ["a"]], SHOW_S_MAX)
    until(lambda: walk.rows("Sums") == [["a", 1], ["a", 2]], SHOW_S_MAX)
    assert walk.rows("Late") == [["late", 3]]
    until(lambda: walk.metric('edgewise_engine_late_total{stream="S"}') == 1, SHOW_S_MAX)
    # An event that breaks a query is told with its place, and the query goes on.
    walk.post("T", (now, {"k": "x", "p": "("}), (now, {"k": "y", "p": "y"}))
    until(lambda: walk.rows("Matches") == [["y"]], SHOW_S_MAX)
    until(lambda: len(walk.rows("$faults")) == 2, SHOW_S_MAX)
    [late, [stream, offset, error, event]] = walk.rows("$faults")
    assert late[0] == "S"
    assert json.loads(late[3]) == walk.rows("S")[late[1]] == ["late", 3]
    assert late[2].startswith("late by ")
    assert (stream, json.loads(event)) == ("T", ["x", "("])
    assert walk.rows("T")[offset] == ["x", "("]
    assert "no regular expression" in error
    until(lambda: walk.metric('edgewise_engine_faults_total{stream="T"}') == 1, SHOW_S_MAX)
    # The same figures for programs, for pages and for the person at the terminal.
    assert walk.metric("edgewise_engine_rows_in_total") == 5
    assert walk.metric("edgewise_engine_state_keys") > 0
    assert walk.metric('edgewise_engine_batch_seconds{phase="run"}') > 0
    assert walk.metric('edgewise_engine_batch_seconds{phase="write-ahead"}') > 0
    assert walk.metric("edgewise_engine_watermark_lag_seconds") < 60
    told = walk.topic("$sys/engine")
    assert told["counts"] == {"late": {"S": 1}, "faults": {"T": 1}}
    assert (told["restarts"], told["failed"]) == (0, "")
    said = r"spark +[\d,]+ events/s, batch \d+ ms \(.*\), backlog .*, event time .*, state .* keys"
    walk.program.wait_for_line(said, SHOW_S_MAX)


@pytest.mark.slow
def test_an_engine_that_fails_says_why_and_goes_on(walk):
    """Spark's JVM is killed: the driver cannot go on by itself."""
    [java] = [pid for pid in walk.program.alive() if _program(pid) == "java"]
    os.kill(java, signal.SIGKILL)
    walk.program.wait_for_line(r"engine +failed: Spark's JVM ended", SHOW_S_MAX)
    walk.program.wait_for_line(
        r"engine +ended with code .* starting again in [\d.]+ s", SHOW_S_MAX
    )
    now = time.time_ns() // 1_000_000
    walk.post("T", (now, {"k": "after", "p": "after"}))  # taken while nobody computes
    until(lambda: walk.rows("Matches") == [["after"]], START_S_MAX)
    until(lambda: walk.metric("edgewise_engine_restarts_total") == 1, SHOW_S_MAX)


def _program(pid):
    with suppress(OSError):
        return Path(f"/proc/{pid}/exe").readlink().name
    return ""
