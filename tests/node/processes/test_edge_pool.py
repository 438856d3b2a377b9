"""`edgewise run --edge-processes 2`: one port, one picture, whichever process answers."""

import asyncio
import os
import signal
import socket
import time
from pathlib import Path

import pytest
from tests.support.node_process import NodeProcess, alive, children_of, post, topic

from edgewise.client.aio import connect
from edgewise.edge.server.server import Edge
from edgewise.errors import SetupError
from edgewise.node.config import NodeConfig
from edgewise.node.processes.edge_pool import EdgePool, require_free_port
from edgewise.node.terminal import Terminal

APP = """
@app:name('counts')
define stream S (k string, v int);
@sink(type='topic', path='counts/{k}')
define stream Counts (k string, n long);
from S select k, count() as n group by k insert into Counts;
"""
EDGE_WORKER = b"edgewise.node.processes.edge_worker"
WAIT_S = 60
CLIENTS = 12


@pytest.fixture
def node(tmp_path):
    (tmp_path / "app.siddhi").write_text(APP)
    options = ["--data", tmp_path / "data", "--engine", "embedded", "--edge-processes", "2"]
    ports = ["--http-port", "0", "--edge-port", "0"]
    started = NodeProcess("run", tmp_path / "app.siddhi", *options, *ports)
    yield started
    started.stop(signal.SIGKILL)


def edge_pids(node):
    return [
        pid
        for pid in children_of(node.process.pid)
        if EDGE_WORKER in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    ]


async def everybody_sees(url, published):
    """The log's topic, the node's own and what one client published, on all transports."""
    clients = []
    try:
        async with asyncio.timeout(WAIT_S):
            for i in range(CLIENTS):
                kind = ["websocket", "sse", "poll"][i % 3]
                clients.append(await connect(url, transports=[kind]).__aenter__())
            await clients[0].opened.wait()
            await clients[0].publish("said/by", {"v": published})
            for client in clients:
                seen = {}
                updates = [client.subscribe(s) for s in ("counts/a", "said/by", "$sys/app")]
                for subscription in updates:
                    update = await anext(subscription)
                    seen[update.path] = update.value
                assert seen["counts/a"]["n"] == 1
                app = seen["$sys/app"]
                assert (app["name"], app["engine"]) == ("counts", "embedded")
                if seen["said/by"]["v"] != published:
                    assert (await anext(updates[1])).value["v"] == published
    finally:
        for client in clients:
            await client.close()


def test_two_processes_show_one_picture_and_one_that_dies_comes_back(node):
    post(f"{node.ingest}/streams/S", [{"k": "a", "v": 2}])
    node.said("process 1 serves too")
    topic(node.edge, "counts/a", lambda v: v["n"] == 1)
    url = node.edge.replace("http", "ws") + "/ws"
    asyncio.run(everybody_sees(url, 1))
    (pid,) = edge_pids(node)
    os.kill(pid, signal.SIGKILL)
    node.said("process 1 ended")
    deadline = time.monotonic() + WAIT_S
    while sum("process 1 serves too" in line for line in list(node.lines)) < 2:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    asyncio.run(everybody_sees(url, 2))
    (pid,) = edge_pids(node)
    assert node.stop() == 0
    assert not alive(pid)


def test_a_port_of_somebody_else_is_not_shared():
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(SetupError, match="cannot listen"):
            require_free_port("127.0.0.1", taken.getsockname()[1])
    require_free_port("127.0.0.1", 0)


def test_one_process_needs_no_sockets():
    async def main():
        edges = EdgePool(Edge(), 1, Terminal())
        await edges.start()
        assert list(edges.keep(NodeConfig(Path(), Path()))) == []
        await edges.stop()

    asyncio.run(main())
