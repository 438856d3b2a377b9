import asyncio
import io
import os
import string
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgewise.errors import SetupError
from edgewise.log.api import LogConfig
from edgewise.node.config import NodeConfig
from edgewise.node.processes import children
from edgewise.node.processes.children import (
    BACKOFF_S,
    Child,
    backoff_s,
    encode_config,
    read_config,
)
from edgewise.node.upkeep.archiver import ArchiveConfig

PATH_LETTERS = string.ascii_letters + " é"


def alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_waiting_grows_and_stays_bounded():
    assert [backoff_s(n) for n in (1, 2, 3)] == list(BACKOFF_S[:3])
    assert backoff_s(1000) == BACKOFF_S[-1]


def test_a_child_that_ignores_the_request_is_killed_with_its_children(monkeypatch, tmp_path):
    (tmp_path / "stubborn.py").write_text(
        "import json, os, signal, subprocess, sys, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "inner = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
        "print('not json', flush=True)\n"
        "print(json.dumps({'pids': [os.getpid(), inner.pid]}), flush=True)\n"
        "time.sleep(60)\n"
    )
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), *sys.path]))
    monkeypatch.setattr(children, "STOP_S", 0.2)
    heard = []

    async def scenario():
        child = Child("stubborn", None)
        await child.start()
        spoken = asyncio.Event()

        def hear(message):
            heard.append(message)
            spoken.set()

        listening = asyncio.create_task(child.receive(hear))
        await spoken.wait()
        await child.stop()
        await listening

    asyncio.run(scenario())
    pids = heard[0]["pids"]
    deadline = time.monotonic() + 5
    while any(alive(pid) for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not alive(pids[0])


def test_a_child_ends_with_its_parent():
    code = "import time; from edgewise.node.processes.children import exit_with_parent as e; e(); "
    child = subprocess.Popen(
        [sys.executable, "-c", code + "print('up', flush=True); time.sleep(60)"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    with child:
        assert child.stdout.readline() == b"up\n"
        child.stdin.close()
        assert child.wait(30) == 1


@dataclass(frozen=True)
class Outer:
    node: NodeConfig
    directory: Path


configs = st.builds(
    NodeConfig,
    app=st.text(PATH_LETTERS, min_size=1).map(Path),
    data=st.just(Path("data directory")),
    http_port=st.integers(0, 65535),
    log=st.builds(LogConfig, retain_ms=st.integers(0, 2**40)),
    archive=st.builds(ArchiveConfig, age_ms=st.none() | st.integers(0, 2**40)),
    assets=st.lists(st.tuples(st.text(), st.just(Path("web")))).map(tuple),
    origins=st.lists(st.text()).map(tuple),
    tls=st.none() | st.just((Path("chain"), Path("key"))),
    small_batch_rows=st.none() | st.integers(0, 9),
)


@given(configs)
def test_a_child_reads_the_config_that_its_parent_encoded(config):
    line = encode_config(Outer(config, Path("sockets")))
    assert line.count(b"\n") == 1
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(line)))
        assert read_config(Outer) == Outer(config, Path("sockets"))


@pytest.mark.parametrize("line", ["", "{}\n", "[]\n", '{"node": 1, "directory": "x"}\n', "\xff\n"])
def test_a_config_of_another_kind_is_refused_with_its_name(monkeypatch, line):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(line.encode("latin-1"))))
    with pytest.raises(SetupError, match="must be a Outer as JSON"):
        read_config(Outer)


def test_a_config_has_only_values_that_json_has(monkeypatch):
    with pytest.raises(NotImplementedError, match="range"):
        encode_config({"x": range(3)})
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"[1]\n")))
    with pytest.raises(NotImplementedError, match="range"):
        read_config(list[range])
