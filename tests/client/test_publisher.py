"""A publisher against a real log, behind servers that die, lose answers and hang."""

import http.client
import itertools
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.loop_thread import LoopThread

from edgewise.client import publisher as publishers
from edgewise.client.publisher import publisher
from edgewise.errors import BadEvent, SetupError
from edgewise.event.schema import Schema
from edgewise.gateway.http import IngestServer
from edgewise.log.segment_reader import SegmentReader
from edgewise.log.segment_writer import SegmentWriter

SCHEMA = Schema.of("S", n="int")


class WallClock:
    def now_us(self):
        return time.time_ns() // 1000


class FaultyServer:
    """Passes requests on to a node; what happens to each is the next of `faults`."""

    def __init__(self, node_port):
        self.faults = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                fault = outer.faults.pop(0) if outer.faults else ""
                if fault == "dead":
                    self.close_connection = True
                    return
                if fault == "standing by":
                    self.send_response(503)
                    self.send_header("Content-Length", "0")
                    self.end_headers()
                    return
                node = http.client.HTTPConnection("127.0.0.1", node_port, timeout=10)
                node.request("POST", self.path, body, dict(self.headers))
                answer = node.getresponse()
                content = answer.read()
                node.close()
                if fault == "answer lost":
                    self.close_connection = True
                    return
                self.send_response(answer.status)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()


class Nodes:
    """Two addresses of one log."""

    def __init__(self, directory):
        self.directory = directory
        self.writer = SegmentWriter.open(directory, SCHEMA)
        self.thread = LoopThread()
        self.server = IngestServer({"S": self.writer}, WallClock())
        port = self.thread.call(self.server.start())
        self.fronts = [FaultyServer(port), FaultyServer(port)]
        self.urls = [front.url for front in self.fronts]
        self.names = itertools.count()

    def numbers(self, first=0):
        reader = SegmentReader.open(self.directory)
        try:
            batches = reader.read(first, reader.head().offset)
            return [n for b in batches for n in b.rows.column("n").to_pylist()]
        finally:
            reader.close()

    def close(self):
        for front in self.fronts:
            front.close()
        self.thread.call(self.server.stop())
        self.thread.close()
        self.writer.close()


@pytest.fixture(scope="module")
def nodes(tmp_path_factory):
    found = Nodes(tmp_path_factory.mktemp("log") / "S")
    yield found
    found.close()


@pytest.fixture(autouse=True)
def _without_waiting(monkeypatch):
    monkeypatch.setattr(publishers, "backoff_s", lambda *_: 0.0)


FAULTS = st.lists(st.sampled_from(["", "dead", "standing by", "answer lost"]), max_size=6)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(FAULTS, FAULTS)
def test_every_event_is_appended_once_and_in_order_whatever_fails(nodes, first, second):
    for front, faults in zip(nodes.fronts, (first, second), strict=True):
        front.faults = [*faults]
    begin = nodes.writer.head.offset
    with publisher(nodes.urls, producer=f"p{next(nodes.names)}", patience_s=20) as out:
        for start in (0, 10, 20):
            assert out.send("S", [{"n": n} for n in range(start, start + 10)]) == 10
    assert nodes.numbers(begin) == list(range(30))


def test_batches_that_a_producer_sent_before_are_not_appended_again(nodes):
    for front in nodes.fronts:
        front.faults = []
    begin = nodes.writer.head.offset
    for _ in range(2):
        with publisher(nodes.urls, producer="again") as out:
            assert out.send("S", [{"n": 1}, {"n": 2}]) == 2
    with publisher(nodes.urls, producer="again", first=1) as out:
        out.send("S", [{"n": 3}])
    assert nodes.numbers(begin) == [1, 2, 3]


def test_a_refused_event_is_no_reason_to_try_again(nodes):
    with publisher(nodes.urls) as out:
        with pytest.raises(BadEvent, match="'n'"):
            out.send("S", [{"n": "x"}])
        assert out.retries == 0
        assert out.send("S", [{"n": 1}]) == 1


def test_a_batch_that_no_node_takes_is_given_up_with_its_key(nodes):
    nodes.fronts[0].faults = ["standing by"] * 1000
    try:
        with (
            publisher(nodes.urls[:1], producer="p", first=7, patience_s=0.05) as out,
            pytest.raises(SetupError, match=r"answered 503.* with the key p/7"),
        ):
            out.send("S", [{"n": 1}])
    finally:
        nodes.fronts[0].faults = []


def test_a_publisher_without_an_address_is_refused():
    with pytest.raises(SetupError, match="needs the address"):
        publisher([])
