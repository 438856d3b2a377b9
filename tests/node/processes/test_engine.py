"""The engine as a process: it says what it does, and ends with its parent."""

import json
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.node_process import SOURCE

from edgewise.event.schema import Schema
from edgewise.log.segment_writer import SegmentWriter
from edgewise.node.config import NodeConfig
from edgewise.node.processes.children import encode_config
from edgewise.node.processes.engine import extract_reason


def start(tmp_path, text, *, begin=True):
    (tmp_path / "app.siddhi").write_text(text)
    config = NodeConfig(tmp_path / "app.siddhi", tmp_path / "data", engine="embedded")
    engine = subprocess.Popen(
        [sys.executable, "-m", "edgewise.node.processes.engine"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={"PYTHONPATH": SOURCE, "PATH": "/usr/bin:/bin"},
    )
    engine.stdin.write(encode_config(config) + (b"start\n" if begin else b""))
    engine.stdin.flush()
    return engine


def test_it_ends_when_its_parent_is_gone(tmp_path):
    SegmentWriter.open(tmp_path / "data/log/S", Schema.of("S", k="string")).close()
    engine = start(tmp_path, "define stream S (k string); from S select k insert into O;")
    assert json.loads(engine.stdout.readline())["ready"]
    engine.communicate(timeout=60)  # closes its stdin
    assert engine.returncode == 1


def test_a_prepared_engine_touches_no_log_before_it_is_told_to_start(tmp_path):
    SegmentWriter.open(tmp_path / "data/log/S", Schema.of("S", k="string")).close()
    app = "define stream S (k string); from S select k insert into O;"
    engine = start(tmp_path, app, begin=False)
    SegmentWriter.open(tmp_path / "data/log/O", Schema.of("O", k="string")).close()
    engine.stdin.write(b"start\n")
    engine.stdin.flush()
    assert json.loads(engine.stdout.readline())["ready"]
    engine.communicate(timeout=60)


def test_a_prepared_engine_ends_when_it_is_asked_to(tmp_path):
    engine = start(
        tmp_path, "define stream S (k string); from S select k insert into O;", begin=False
    )
    while not is_ready_to_wait(engine.pid):
        pass
    engine.terminate()
    assert engine.wait(60) == 0
    engine.communicate()


def is_ready_to_wait(pid):
    """Has it installed its handler of SIGTERM?"""
    status = Path(f"/proc/{pid}/status").read_text()
    caught = int(re.search(r"SigCgt:\s*(\w+)", status)[1], 16)
    return bool(caught >> (signal.SIGTERM - 1) & 1)


def test_an_app_that_cannot_run_is_told_and_the_code_is_two(tmp_path):
    engine = start(tmp_path, "define stream")
    assert "app.siddhi:1" in json.loads(engine.stdout.readline())["failed"]
    assert engine.wait(60) == 2
    engine.communicate()


SAID = """[STREAM_FAILED] Query [id = 3f] terminated with exception: Return Message: Traceback \
(most recent call last):
  File "state.py", line 61, in load
    _apply(state, self._read(step, "delta"))
                  ^^^^^^^^^^^^^^^^^^^^^^^^^
edgewise.errors.StateError: 24.delta is torn
and so on
{end}
Identifier: [id = 3f]
"""


@pytest.mark.parametrize(
    "end", ["\n=== Streaming Query ===", "=== Streaming Query ===", " SQLSTATE: 3"]
)
def test_of_a_failed_query_the_reason_is_told_and_not_how_spark_came_to_it(end):
    assert extract_reason(SAID.format(end=end)) == "StateError: 24.delta is torn\nand so on"


def test_an_error_of_java_is_told_without_the_plan():
    assert (
        extract_reason("[X] no memory\n=== Streaming Query ===\nIdentifier: 3f") == "[X] no memory"
    )
    assert (
        extract_reason("Traceback (most recent call last):\n")
        == "Traceback (most recent call last):"
    )
