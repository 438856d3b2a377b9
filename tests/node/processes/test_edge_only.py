"""`edgewise edge`: further edges on the logs of a node, and what its clients see when one dies."""

import asyncio
import os
import signal
import time

import pytest
from tests.support.node_process import NodeProcess, post, topic

from edgewise.cli import main
from edgewise.client.aio import connect

APP = """
@app:name('counts')
define stream S (k string, v int);
@sink(type='topic', path='counts/{k}', conflate='off', recovery='precise', keep='1000')
define stream Counts (k string, n long);
from S select k, count() as n group by k insert into Counts;
"""
FREE = ["--http-port", "0", "--edge-port", "0"]
TOTAL, KILL_AT = 300, 100


@pytest.fixture
def started(tmp_path):
    running = []

    def start(command, *options):
        node = NodeProcess(command, app, "--data", tmp_path / "data", *options)
        running.append(node)
        return node

    app = tmp_path / "app.siddhi"
    app.write_text(APP)
    yield start
    for node in running:
        node.stop(signal.SIGKILL)


def test_a_killed_edge_costs_its_clients_nothing_precise_and_less_than_two_seconds(started):
    node = started("run", "--engine", "embedded", *FREE)
    post(f"{node.ingest}/streams/S", [{"k": "a", "v": 0}])
    topic(node.edge, "counts/a", lambda v: v["n"] == 1)
    edges = [started("edge", "--edge-port", "0") for _ in range(2)]
    urls = tuple(edge.edge.replace("http", "ws") + "/ws" for edge in edges)
    got, pauses = [], []

    async def watch():
        async with asyncio.timeout(60), connect(urls) as client:
            updates = client.subscribe("counts/#")
            got.append((await anext(updates)).value["n"])
            ingest = f"{node.ingest}/streams/S"
            posting = asyncio.to_thread(
                lambda: [post(ingest, [{"k": "a", "v": n}]) for n in range(1, TOTAL)]
            )
            task, before = asyncio.create_task(posting), time.monotonic()
            while got[-1] < TOTAL:
                got.append((await anext(updates)).value["n"])
                pauses.append(time.monotonic() - before)
                before = time.monotonic()
                if len(got) == KILL_AT:
                    os.kill(edges[0].process.pid, signal.SIGKILL)
            await task

    asyncio.run(watch())
    assert got == list(range(1, TOTAL + 1))
    assert edges[0].process.wait(10) == -signal.SIGKILL
    assert max(pauses) < 2.0
    assert edges[1].stop() == 0


def test_an_edge_of_logs_that_nobody_wrote_says_so(tmp_path, capsys):
    (tmp_path / "app.siddhi").write_text(APP)
    assert main(["edge", str(tmp_path / "app.siddhi"), "--data", str(tmp_path / "data")]) == 2
    said = capsys.readouterr().err
    assert "Counts" in said
    assert str(tmp_path / "data") in said
