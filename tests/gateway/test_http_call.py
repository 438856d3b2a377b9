"""Rows as requests, answers as events, joined by `sink.id` and the status of the answer."""

import asyncio
import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.async_until import until
from tests.support.memory_log import MemoryLog

from edgewise.event.arrow import record_batch, to_arrow
from edgewise.event.clock import ManualClock
from edgewise.event.schema import Schema
from edgewise.gateway.connectors import check_sink, check_source
from edgewise.gateway.http_call import HttpCallSink, HttpCallSource, add_properties
from edgewise.gateway.sink_reader import FileCursor
from edgewise.gateway.spec import BadSpec, MapSpec, SinkSpec, SourceSpec
from edgewise.log.memory import MemoryLog as SinkLog

LOAN = Schema.of("Loan", who="string", amount="long")
ANSWER = Schema.of("Answer", who="string", ok="bool")
FAULT = Schema.of("Fault", text="string")


class Service(BaseHTTPRequestHandler):
    """Grants up to 100, refuses more with 400."""

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        granted = asked["amount"] <= 100
        body = json.dumps({"granted": True}).encode() if granted else b"too much"
        self.send_response(200 if granted else 400)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_arguments):
        pass


@contextmanager
def serving():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Service)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/loans"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_answers_become_events_of_the_sources_for_their_status(tmp_path):
    log, cursor = SinkLog(), FileCursor(tmp_path / "at")
    log.writer(LOAN)
    zeros, rows = [0] * 3, [["a", "b", "c"], [50, 500, 100]]
    log.owner.append(record_batch(to_arrow(LOAN), zeros, zeros, zeros, rows))
    granted, refused = MemoryLog(ANSWER), MemoryLog(FAULT)
    picked = MapSpec("json", {}, {"who": "trp:who", "ok": "$.granted"})

    async def scenario(url):
        specs = [
            SourceSpec("Answer", "http-response", {"sink.id": "loans"}, picked),
            SourceSpec(
                "Fault",
                "http-call-response",
                {"sink.id": "loans", "http.status.code": "4\\d+"},
                MapSpec("text"),
            ),
        ]
        sources = [
            HttpCallSource(check_source(spec), schema, writer, ManualClock(1))
            for spec, schema, writer in zip(
                specs, (ANSWER, FAULT), (granted, refused), strict=True
            )
        ]
        options = {"publisher.url": url, "sink.id": "loans"}
        sink_spec = check_sink(SinkSpec("Loan", "http-request", options))
        for _ in range(2):  # the second time every row is sent again, as after a crash
            cursor.save(0)
            sink = HttpCallSink(sink_spec, LOAN, log.reader(), cursor)
            for each in (*sources, sink):
                await each.start()
            await until(lambda: cursor.load() == 3)
            await sink.stop()
        for source in sources:
            await source.stop()

    with serving() as url:
        asyncio.run(scenario(url))
    assert [(r["who"], r["ok"]) for r in granted.rows()] == [("a", True), ("c", True)]
    assert [r["text"] for r in refused.rows()] == ["too much"]


@given(st.dictionaries(st.text(), st.integers()), st.dictionaries(st.text(), st.integers()))
def test_properties_stand_beside_the_answer(answer, properties):
    named = {f"trp:{name}": value for name, value in properties.items()}
    payload = json.dumps(answer).encode()
    assert json.loads(add_properties(payload, properties)) == {**answer, **named}
    assert json.loads(add_properties(b"[" + payload + b"]", properties)) == [{**answer, **named}]


@pytest.mark.parametrize("payload", [b"not json", b"[1]", b"3"])
def test_an_answer_that_is_no_object_stays_as_it_is(payload):
    assert add_properties(payload, {"a": 1}) == payload


def test_options_are_checked():
    with pytest.raises(BadSpec, match=r"sink\.id"):
        check_sink(SinkSpec("S", "http-call", {"url": "http://h"}))
    with pytest.raises(BadSpec, match=r"http\.status\.code"):
        check_source(SourceSpec("S", "http-response", {"sink.id": "x", "http.status.code": "("}))
