"""A fresh virtual environment with the base alone: what it runs, and how it names what it lacks.

The wheel is built and installed without extras, by the index that pip is configured with.
"""

import json
import os
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
EXTRAS = ("pyspark", "pandas", "confluent_kafka", "paho", "aio_pika", "zmq", "proton")
APP = "define stream S (k string, v int);\nfrom S[v > 1] select k, v insert into O;\n"
START_S, STOP_S = 60, 20

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    """The directory of the programs of the environment."""
    place = tmp_path_factory.mktemp("base")
    wheel = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", place, ROOT]
    subprocess.run(wheel, check=True, timeout=120)
    subprocess.run([sys.executable, "-m", "venv", place / "venv"], check=True, timeout=60)
    [built] = place.glob("edgewise-*.whl")
    pip = [place / "venv/bin/pip", "install", "--quiet", "--disable-pip-version-check", built]
    subprocess.run(pip, check=True, timeout=240)
    return place / "venv/bin"


@pytest.fixture
def app(tmp_path):
    path = tmp_path / "app.siddhi"
    path.write_text(APP)
    (tmp_path / "events.jsonl").write_text('{"stream": "S", "ts": 1, "data": ["a", 2]}\n')
    return path


def run(base, *arguments, cwd):
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "VIRTUAL_ENV"))}
    return subprocess.run(
        [base / arguments[0], *arguments[1:]],
        capture_output=True, text=True, timeout=60, cwd=cwd, env=clean, check=False,
    )  # fmt: skip


def test_no_package_of_an_extra_is_there(base, tmp_path):
    code = f"import importlib.util as u; print([p for p in {EXTRAS} if u.find_spec(p)])"
    assert run(base, "python", "-c", code, cwd=tmp_path).stdout == "[]\n"


def test_it_imports_and_runs_an_app_in_process(base, tmp_path):
    code = (
        f"import edgewise; from edgewise import *\nprint(App({APP!r}).send('S', ('a', 2)).data())"
    )
    found = run(base, "python", "-c", code, cwd=tmp_path)
    assert found.stdout == "[('a', 2)]\n", found.stderr


def test_it_checks_and_replays(base, app):
    checked = run(base, "edgewise", "check", app, cwd=app.parent)
    assert checked.stdout == f"{app}: ok, 2 streams, 1 queries\n", checked.stderr
    events = app.parent / "events.jsonl"
    replay = ("edgewise", "replay", app, "--events", events, "--engine", "embedded")
    replayed = run(base, *replay, cwd=app.parent)
    assert json.loads(replayed.stdout)["data"] == ["a", 2], replayed.stderr


@pytest.mark.parametrize(
    ("arguments", "extra"),
    [
        (("replay", "--events", "events.jsonl", "--engine", "batch"), "spark"),
        (("run", "--data", "d", "--http-port", "0", "--edge-port", "0"), "spark"),
    ],
)
def test_what_needs_an_extra_names_it(base, app, arguments, extra):
    found = run(base, "edgewise", arguments[0], app, *arguments[1:], cwd=app.parent)
    assert found.returncode == 2
    assert f"pip install 'edgewise[{extra}]'" in found.stderr


@pytest.mark.parametrize(
    ("source", "extra"),
    [
        ("type='kafka', servers='127.0.0.1:1', topic='t'", "kafka"),
        ("type='mqtt', url='mqtt://127.0.0.1:1', topic='t'", "mqtt"),
        ("type='amqp', url='amqp://127.0.0.1:1', queue='t'", "amqp"),
        ("type='zeromq', url='tcp://127.0.0.1:1'", "zeromq"),
    ],
)
def test_a_source_that_needs_an_extra_passes_check_and_names_it_when_run(base, app, source, extra):
    app.write_text(f"@source({source}, @map(type='json')) {APP}")
    assert run(base, "edgewise", "check", app, cwd=app.parent).returncode == 0
    ports = ("--http-port", "0", "--edge-port", "0", "--data", "d")
    found = run(base, "edgewise", "run", app, "--engine", "embedded", *ports, cwd=app.parent)
    assert found.returncode == 2
    assert f"pip install 'edgewise[{extra}]'" in found.stderr


WATCHER = """
import sys, edgewise
with edgewise.connect(sys.argv[1]) as edge:
    print(edge.subscribe("o/#").next(20.0).value)
"""


def test_a_node_runs_with_the_embedded_engine(base, app):
    """An event goes in over HTTP, and a client sees its row."""
    topic = "@sink(type='topic', path='o/{k}') define stream O (k string, v int);\n"
    app.write_text(APP.replace("from S", f"{topic}from S"))
    command = [base / "edgewise", "run", app, "--engine", "embedded", "--data", app.parent / "d",
               "--http-port", "0", "--edge-port", "0"]  # fmt: skip
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as node:
        try:
            urls = {}
            for line in node.stderr:
                _, what, *_, last = line.split()
                urls[what] = last
                if "engine running" in line:
                    break
            event = json.dumps({"k": "a", "v": 3}).encode()
            kind = {"Content-Type": "application/json"}
            request = urllib.request.Request(urls["ingest"], event, kind)
            with urllib.request.urlopen(request, timeout=START_S) as answer:
                assert json.load(answer)["accepted"] == 1
            edge = urls["edge"].replace("http:", "ws:") + "ws"
            found = run(base, "python", "-c", WATCHER, edge, cwd=app.parent)
            assert found.stdout == "{'k': 'a', 'v': 3}\n", found.stderr
        finally:
            node.terminate()
            node.wait(STOP_S)
