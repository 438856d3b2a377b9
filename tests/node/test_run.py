"""`edgewise run` as a person runs it: events in over HTTP, values out of topics, Ctrl-C."""

import signal
import time

import pytest
from tests.node.nodes import NodeProcess, alive, children_of, post, topic

APP = """
@app:name('counts')
define stream S (k string, v int);
@sink(type='topic', path='counts/{k}')
define stream Counts (k string, n long, total long);
from S select k, count() as n, sum(v) as total group by k insert into Counts;
"""


@pytest.fixture
def start(tmp_path):
    (tmp_path / "app.siddhi").write_text(APP)
    nodes = []

    def start(*more):
        options = ["--data", tmp_path / "data", "--engine", "embedded"]
        ports = ["--http-port", "0", "--edge-port", "0"]
        nodes.append(NodeProcess("run", tmp_path / "app.siddhi", *options, *ports, *more))
        return nodes[-1]

    yield start
    for node in nodes:
        node.stop(signal.SIGKILL)


def test_an_event_goes_all_the_way_and_ctrl_c_leaves_nothing(start):
    node = start()
    answer = post(f"{node.ingest}/streams/S", [{"k": "a", "v": 2}, {"k": "a", "v": 3}])
    assert answer["accepted"] == 2
    assert topic(node.edge, "counts/a", lambda v: v["n"] == 2)["total"] == 5
    topic(node.edge, "$sys/rates", lambda v: v["events_in"] == 2)
    children = children_of(node.process.pid)
    assert children
    began = time.monotonic()
    assert node.stop() == 0
    assert time.monotonic() - began < 30  # five seconds when the machine is not busy
    assert not [pid for pid in children if alive(pid)]


def test_a_restart_goes_on_counting_where_it_stopped(start):
    node = start()
    post(f"{node.ingest}/streams/S", [{"k": "a", "v": 1}])
    topic(node.edge, "counts/a", lambda v: v["n"] == 1)
    node.stop()
    node = start()
    assert topic(node.edge, "counts/a", lambda v: v is not None)["n"] == 1
    post(f"{node.ingest}/streams/S", [{"k": "a", "v": 1}])
    topic(node.edge, "counts/a", lambda v: v["n"] == 2)


def test_a_second_node_stands_by_and_takes_over_from_a_killed_one(start):
    first = start()
    post(f"{first.ingest}/streams/S", [{"k": "a", "v": 1}])
    topic(first.edge, "counts/a", lambda v: v["n"] == 1)
    second = start()
    second.said("standing by")
    first.stop(signal.SIGKILL)
    post(f"{second.ingest}/streams/S", [{"k": "a", "v": 1}])
    topic(second.edge, "counts/a", lambda v: v["n"] == 2)


def test_a_port_that_is_taken_is_said_and_the_node_ends(start, tmp_path):
    first = start()
    port = first.edge.rsplit(":", 1)[1]
    second = start("--edge-port", port, "--data", tmp_path / "elsewhere")
    second.said(f"{port}.*choose another")
    assert second.process.wait(60) == 2
