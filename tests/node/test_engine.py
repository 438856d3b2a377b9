"""The engine as a process: it says what it does, and ends with its parent."""

import json
import subprocess
import sys

from tests.node.nodes import SOURCE

from edgewise.event.schema import Schema
from edgewise.log.segment import SegmentWriter


def start(tmp_path, text):
    (tmp_path / "app.siddhi").write_text(text)
    command = [sys.executable, "-m", "edgewise.node.engine", str(tmp_path / "app.siddhi")]
    command += ["--data", str(tmp_path / "data"), "--engine", "embedded"]
    return subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={"PYTHONPATH": SOURCE, "PATH": "/usr/bin:/bin"},
    )


def test_it_ends_when_its_parent_is_gone(tmp_path):
    SegmentWriter.open(tmp_path / "data/log/S", Schema.of("S", k="string")).close()
    engine = start(tmp_path, "define stream S (k string); from S select k insert into O;")
    assert json.loads(engine.stdout.readline())["ready"]
    engine.communicate(timeout=60)  # closes its stdin
    assert engine.returncode == 1


def test_an_app_that_cannot_run_is_told_and_the_code_is_two(tmp_path):
    engine = start(tmp_path, "define stream")
    assert "app.siddhi:1" in json.loads(engine.stdout.readline())["failed"]
    assert engine.wait(60) == 2
    engine.communicate()
