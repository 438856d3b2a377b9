import asyncio
import os
import subprocess
import sys
import time

from edgewise.node import children
from edgewise.node.children import BACKOFF_S, Child, backoff_s


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
        child = Child("stubborn", [])
        await child.start()
        spoken = asyncio.Event()

        def hear(message):
            heard.append(message)
            spoken.set()

        listening = asyncio.create_task(child.messages(hear))
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
    code = "import time; from edgewise.node.children import end_with_parent as e; e(); "
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
