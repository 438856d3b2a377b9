"""On-demand queries over real sockets; the node's part is a function here."""

import http.client
import json
import threading

import pytest
from tests.support.loop_thread import LoopThread
from tests.support.memory_log import MemoryLog

from edgewise.errors import AppError, Problem, SetupError, Span
from edgewise.event.clock import ManualClock
from edgewise.event.schema import Schema
from edgewise.gateway.http import IngestServer
from edgewise.gateway.ingest_config import IngestConfig
from edgewise.gateway.query_endpoint import QUERIES_MAX, QUERY_BYTES_MAX, QueryEndpoint
from edgewise.gateway.quotas import Publisher
from edgewise.gateway.tokens import refuse_stream

SCHEMA = Schema.of("S", v="int")


def authorize(token, stream):
    if stream and token != stream:
        return refuse_stream(f"'{token}' may not do '{stream}'")
    return Publisher(token)


class Node:
    def __init__(self, answer, **config):
        log = MemoryLog(SCHEMA)
        self.server = IngestServer({"S": log}, ManualClock(1), IngestConfig(**config))
        if answer is not None:
            self.server.queries = QueryEndpoint(answer)
        self.loop = LoopThread()
        self.port = self.loop.call(self.server.start())

    def ask(self, text, method="POST", token=""):
        client = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        headers = {"authorization": f"Bearer {token}"} if token else {}
        client.request(method, "/query", text, headers)
        answer = client.getresponse()
        found = answer.status, json.loads(answer.read() or b"null")
        client.close()
        return found

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.loop.call(self.server.stop())
        self.loop.close()


def test_a_query_is_answered():
    with Node(lambda text: json.dumps({"asked": text}).encode()) as node:
        assert node.ask("from Té select v".encode()) == (200, {"asked": "from Té select v"})


@pytest.mark.parametrize(
    ("text", "method", "status"),
    [(b"x", "GET", 405), (b"x" * (QUERY_BYTES_MAX + 1), "POST", 413), (b"\xff", "POST", 400)],
)
def test_what_is_no_query_is_refused(text, method, status):
    with Node(lambda _: b"null") as node:
        assert node.ask(text, method)[0] == status


@pytest.mark.parametrize(
    ("error", "status"),
    [(AppError((Problem(Span(1, 1), "no table 'X'"),)), 400), (SetupError("no state"), 409)],
)
def test_the_reason_of_a_failure_is_told(error, status):
    def fail(_):
        raise error

    with Node(fail) as node:
        found, body = node.ask(b"from X select v")
        assert found == status
        assert ("no table" in body["message"]) or ("no state" in body["message"])


def test_a_token_needs_the_right():
    with Node(lambda _: b"[]", authorizer=authorize) as node:
        assert node.ask(b"x", token="S")[0] == 403
        assert node.ask(b"x", token="$query") == (200, [])


def test_only_a_few_run_at_a_time():
    held, begun = threading.Event(), threading.Semaphore(0)

    def answer(_):
        begun.release()
        held.wait(10)
        return b"1"

    with Node(answer) as node:
        found = []
        threads = [
            threading.Thread(target=lambda: found.append(node.ask(b"x")))
            for _ in range(QUERIES_MAX)
        ]
        for thread in threads:
            thread.start()
        for _ in threads:
            begun.acquire()
        assert node.ask(b"x")[0] == 503
        held.set()
        for thread in threads:
            thread.join()
        assert found == [(200, 1)] * QUERIES_MAX


def test_a_node_that_holds_nothing_has_no_such_page():
    with Node(None) as node:
        assert node.ask(b"x")[0] == 404
