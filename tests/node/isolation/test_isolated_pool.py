"""Functions of strangers in real processes."""

import pickle
import platform
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest
from tests.support.node_process import NodeProcess, alive, post, topic

from edgewise.errors import BadEvent
from edgewise.lang import compile_app
from edgewise.node.isolation.isolated_pool import (
    CallLimits,
    IsolatedPool,
    Isolation,
    isolate_functions,
)
from edgewise.plan.scripts import Script

FILTERED = sys.platform == "linux" and platform.machine() in {"x86_64", "aarch64"}
LIMITS = CallLimits(call_ms=500, memory_bytes=100 * 1024**2, answer_bytes_max=1000)
# By its argument: what it does, and what is said about it.
ATTACKS = {
    "loop": ("while True: pass", "no answer within 0.5 s"),
    "memory": ("return len(bytearray(3 * 1024**3))", "more memory than it may have"),
    "output": ("return 'x' * 5000", "the limit is 1000"),
    "write": ("open(data[1], 'w').write('x')", "Error"),
    "read": ("return open('/etc/passwd').read()", "Error"),
    "list": ("import os; return os.listdir('/')", "Error"),
    "network": ("import _socket; return _socket.socket().fileno()", "Error"),
    "fork": ("import os; return os.fork()", "Error"),
    "kill": ("import os; os.kill(os.getppid(), 0); return 1", "Error"),
    "remove": ("import os; os.unlink(data[1])", "Error"),
    "end": ("import os; os._exit(3)", "its process ended"),
    "forge": ("import os; os.write(1, b'abcd' * 1000)", "function 'f'"),
}
BODY = "\n".join(f"if data[0] == {k!r}:\n    {code}" for k, (code, _) in ATTACKS.items())


@pytest.fixture(scope="module")
def pool():
    pool = IsolatedPool("f", Script("f", f"{BODY}\nreturn data[0] + data[1]").source(), LIMITS)
    yield pool
    pool.close()


@pytest.mark.skipif(not FILTERED, reason="here the limits of resources alone hold")
@pytest.mark.parametrize("attack", ATTACKS)
def test_a_call_that_breaks_a_limit_is_a_fault_and_the_next_one_works(pool, attack, tmp_path):
    target = tmp_path / "target"
    if attack == "remove":
        target.write_text("kept")
    with pytest.raises(BadEvent, match=ATTACKS[attack][1]):
        pool.call([attack, str(target)])
    assert target.exists() == (attack == "remove")
    assert pool.call(["a", "b"]) == "ab"


def test_calls_of_many_threads_get_their_own_answers(pool):
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda n: pool.call([n, 1]), range(200)))
    assert found == list(range(1, 201))
    assert pool.call_many([[1, 2], [3, 4]]) == [3, 7]


def test_a_function_that_cannot_be_compiled_says_so_with_its_call():
    pool = IsolatedPool("f", "def body(data):\n    python is not is\n", LIMITS)
    with pytest.raises(BadEvent, match="SyntaxError"):
        pool.call([1])
    pool.close()


APP = """
@source(type='http', @map(type='json'))
define stream S (k string, v int);
define function f[python] return int {
    while data[0] == 1: pass
    return data[0] * 2
};
@sink(type='topic', path='out/{k}')
define stream O (k string, v int);
from S select k, f(v) as v insert into O;
"""


def test_the_functions_of_an_app_are_isolated_wherever_they_travel():
    app = compile_app(APP, "a.siddhi").app
    assert isolate_functions(app, LIMITS) == 1
    script = app.queries[0].select.items[1].expr.body
    shipped = pickle.loads(pickle.dumps(script))
    assert shipped.compile_with == Isolation(LIMITS)
    assert shipped == script
    assert shipped(4) == 8
    with pytest.raises(BadEvent, match="no answer"):
        shipped(1)


def test_an_endless_loop_is_a_fault_of_its_event_and_ends_with_its_node(tmp_path):
    app = tmp_path / "a.siddhi"
    app.write_text(APP)
    node = NodeProcess(
        "run", app, "--engine", "embedded", "--data", tmp_path / "data", "--isolate",
        "--call-ms", 300, "--http-port", 0, "--edge-port", 0,
    )  # fmt: skip
    try:
        node.said("1 functions of the app run isolated")
        post(f"{node.ingest}/streams/S", [{"k": "a", "v": 1}, {"k": "b", "v": 21}])
        assert topic(node.edge, "out/b", bool) == {"k": "b", "v": 42}
    finally:
        node.stop()
    deadline = time.monotonic() + 10
    while workers := _find_workers():
        assert time.monotonic() < deadline, workers
        time.sleep(0.05)


def _find_workers():
    """Workers whose parent is gone."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            command = (process / "cmdline").read_text()
            parent = (process / "stat").read_text().rsplit(")", 1)[1].split()[1]
            if "isolated_worker" in command and parent == "1" and alive(process.name):
                found.append(command)
    return found
