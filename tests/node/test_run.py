"""`edgewise run` as a person runs it: events in over HTTP, values out of topics, Ctrl-C."""

import signal
import time

import pytest
from tests.support.node_process import PATIENCE_S, NodeProcess, alive, children_of, post, topic

from edgewise.engines.state.migrate import CHECKPOINT_FILES
from edgewise.errors import SetupError
from edgewise.node.run import require_java

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
    assert topic(node.edge, "$sys/ha", lambda v: v["role"] == "active")["epoch"] == 1
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


TOPICS = """
@sink(type='topic', path='twice/{k}')
define stream Twice (k string, w int);
@sink(type='topic', path='seen')
define stream Seen (n long);
"""
QUERIES = """
from S select k, v * 2 as w insert into Twice;
from S select count() as n insert into Seen;
"""
MORE = APP.replace("from S", TOPICS + "from S") + QUERIES


def test_a_running_app_takes_a_new_file_and_goes_on_counting(start, tmp_path):
    node = start()
    post(f"{node.ingest}/streams/S", [{"k": "a", "v": 1}, {"k": "b", "v": 1}])
    topic(node.edge, "counts/b", lambda v: v["n"] == 1)
    (tmp_path / "app.siddhi").write_text("define stream S (k string; from S")
    node.process.send_signal(signal.SIGHUP)
    node.said("not changed, the old version keeps running")
    (tmp_path / "app.siddhi").write_text(APP.replace("v int", "v long"))
    node.process.send_signal(signal.SIGHUP)
    node.said("stream 'S' has other attributes now")
    (tmp_path / "app.siddhi").write_text(MORE)
    node.process.send_signal(signal.SIGHUP)
    node.said("the app changed. .*query query1")  # before it the old queries may get events
    post(f"{node.ingest}/streams/S", [{"k": "a", "v": 3}])
    assert topic(node.edge, "counts/a", lambda v: v["n"] == 2)["total"] == 4
    topic(node.edge, "twice/a", lambda v: v["w"] == 6)
    node.said("new: query query2, query query3")
    seen = topic(node.edge, "seen", lambda v: v is not None)["n"]
    post(f"{node.ingest}/streams/S", [{"k": "a", "v": 1}])
    topic(node.edge, "seen", lambda v: v["n"] == seen + 1)
    assert topic(node.edge, "counts/a", lambda v: v["n"] == 3)["total"] == 5
    assert node.stop() == 0


def test_a_watched_file_is_taken_when_it_changes(start, tmp_path):
    node = start("--watch")
    post(f"{node.ingest}/streams/S", [{"k": "a", "v": 1}])
    topic(node.edge, "counts/a", lambda v: v["n"] == 1)
    (tmp_path / "app.siddhi").write_text(APP.replace("count() as n", "count() + 100 as n"))
    node.said("changed, begins anew: query query1")
    post(f"{node.ingest}/streams/S", [{"k": "a", "v": 1}])
    topic(node.edge, "counts/a", lambda v: v["n"] in {101, 102})


def test_a_checkpoint_of_another_engine_stops_the_node_with_a_sentence(tmp_path):
    (tmp_path / "app.siddhi").write_text(APP)
    checkpoint = tmp_path / "data" / "checkpoint" / "counts"
    (checkpoint / CHECKPOINT_FILES["spark"]).mkdir(parents=True)
    options = ["--data", tmp_path / "data", "--engine", "embedded"]
    node = NodeProcess("run", tmp_path / "app.siddhi", *options, "--http-port", "0")
    assert node.process.wait(PATIENCE_S) == 2
    node.said("the engine cannot start: .* was written by --engine spark")
    node.stop()


def test_spark_without_java_is_refused_before_anything_starts(tmp_path):
    empty = tmp_path / "bin"
    empty.mkdir()
    with pytest.raises(SetupError, match=r"no `java` on the PATH.*--engine embedded"):
        require_java({"PATH": str(empty)})
    with pytest.raises(SetupError, match=r"jdk/bin/java does not exist"):
        require_java({"JAVA_HOME": str(tmp_path / "jdk"), "PATH": str(empty)})
    (empty / "java").touch(0o755)
    require_java({"PATH": str(empty)})
    require_java({"JAVA_HOME": str(tmp_path), "PATH": ""})
