"""The ingest endpoints over real sockets, with the standard library's client on the other side."""

import asyncio
import gzip
import http.client
import json
import socket
import ssl
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
from tests.support.certificate import certificate
from tests.support.loop_thread import LoopThread
from tests.support.memory_log import MemoryLog

from edgewise.errors import SetupError
from edgewise.event.clock import ManualClock
from edgewise.event.schema import Schema
from edgewise.gateway.admit import AdmissionLimits
from edgewise.gateway.http import IngestServer
from edgewise.gateway.ingest_config import IngestConfig
from edgewise.gateway.quotas import Publisher, QuotaConfig
from edgewise.gateway.spec import MapSpec
from edgewise.gateway.tokens import refuse_caller, refuse_stream

LOGIN = Schema.of("login_stream", ip="string", tries="int")
EVENT = {"ip": "10.0.0.1", "tries": 1}


class Open:
    """A endpoint on a loop of its own thread, and a client."""

    def __init__(self, **config):
        self.log = MemoryLog(LOGIN)
        self.clock = ManualClock(1_000_000)
        self.server = IngestServer({"login_stream": self.log}, self.clock, IngestConfig(**config))
        self.loop = LoopThread()
        self.call = self.loop.call
        self.port = self.call(self.server.start())

    def close(self):
        self.log.open.set()
        self.call(self.server.stop())
        self.loop.close()

    @contextmanager
    def client(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            yield connection
        finally:
            connection.close()

    def request(self, method, path, body=None, **headers):
        with self.client() as client:
            names = {k.replace("_", "-"): v for k, v in headers.items()}
            client.request(method, path, body, names)
            answer = client.getresponse()
            return answer, json.loads(answer.read() or b"null")

    def post(self, body, path="/streams/login_stream", content_type="application/json", **headers):
        return self.request("POST", path, body, content_type=content_type, **headers)


@pytest.fixture
def opened():
    endpoints = []

    def make(**config):
        endpoints.append(Open(**config))
        return endpoints[-1]

    yield make
    for endpoint in endpoints:
        endpoint.close()


def test_events_are_answered_with_their_offsets(opened):
    endpoint = opened()
    assert endpoint.post(json.dumps(EVENT))[1] == {"accepted": 1, "first": 0, "end": 1}
    two = json.dumps([{"ts": 5, "data": EVENT}, {"ts": 6, "data": ["b", None]}])
    assert endpoint.post(two)[1] == {"accepted": 2, "first": 1, "end": 3}
    lines = "\n".join([json.dumps(EVENT)] * 3)
    answer, got = endpoint.post(lines, content_type="application/x-ndjson")
    assert (answer.status, got) == (200, {"accepted": 3, "first": 3, "end": 6})
    rows = endpoint.log.rows()
    assert rows[0] == {"_ts": 1000, "_at": 1_000_000, "_kind": 0, "ip": "10.0.0.1", "tries": 1}
    assert [r["_ts"] for r in rows] == [1000, 5, 6, 1000, 1000, 1000]
    assert [r["_at"] for r in rows] == list(range(1_000_000, 1_000_006))
    assert endpoint.server.stats.accepted_total == 6


def test_a_bad_event_refuses_the_request_and_says_which(opened):
    endpoint = opened()
    answer, got = endpoint.post(json.dumps([EVENT, {"ip": "a", "tries": "x"}]))
    assert answer.status == 400
    assert got["accepted"] == 0
    assert got["problems"] == [
        {"event": 1, "field": "tries", "reason": "expected int, got a string"}
    ]
    assert endpoint.log.rows() == []
    assert endpoint.server.stats.refused == {("login_stream", "invalid"): 1}


def test_a_request_that_is_sent_again_gets_its_first_answer(opened):
    endpoint = opened()
    first = endpoint.post(json.dumps(EVENT), idempotency_key="sensor/1")[1]
    assert first == {"accepted": 1, "first": 0, "end": 1}
    again = endpoint.post(json.dumps(EVENT), idempotency_key="sensor/1")[1]
    assert again == {"accepted": 1, "first": 0, "end": 1, "duplicate": True}
    endpoint.post(json.dumps(EVENT), idempotency_key="one-request")
    assert endpoint.post(json.dumps(EVENT), idempotency_key="one-request")[1]["duplicate"]
    assert len(endpoint.log.rows()) == 2
    assert endpoint.server.stats.duplicates["login_stream"] == 2
    answer, got = endpoint.post(json.dumps(EVENT), idempotency_key="/1")
    assert (answer.status, got["problems"][0]["field"]) == (400, "Idempotency-Key")


def test_a_stream_that_is_delivered_effectively_once_asks_for_a_key(opened):
    endpoint = opened(keyed=frozenset({"login_stream"}))
    answer, got = endpoint.post(json.dumps(EVENT))
    assert (answer.status, got["problems"][0]["field"]) == (400, "Idempotency-Key")
    assert endpoint.post(json.dumps(EVENT), idempotency_key="a/1")[0].status == 200


def test_an_address_with_a_mapping_reads_bodies_its_way(opened):
    endpoint = opened(paths={"/csv": "login_stream"}, maps={"/csv": MapSpec("csv")})
    answer, got = endpoint.post("10.0.0.1,5\n10.0.0.2,\n", path="/csv", content_type="text/csv")
    assert (answer.status, got["accepted"]) == (200, 2)
    assert [r["tries"] for r in endpoint.log.rows()] == [5, None]
    answer, got = endpoint.post("a,b\n", path="/csv", content_type="text/csv")
    assert (answer.status, got["problems"][0]["field"]) == (400, "tries")
    answer, got = endpoint.post(
        "a,1", path="/csv", content_type="text/plain", origin="http://evil"
    )
    assert (answer.status, got["problems"][0]["field"]) == (403, "Origin")


def test_gzip_bodies_are_taken_within_the_limit(opened):
    endpoint = opened(limits=AdmissionLimits(body_bytes_max=10_000))
    packed = gzip.compress(json.dumps([EVENT] * 50).encode())
    assert endpoint.post(packed, content_encoding="gzip")[1]["accepted"] == 50
    bomb, got = endpoint.post(gzip.compress(bytes(1_000_000)), content_encoding="gzip")
    assert (bomb.status, got["problems"][0]["field"]) == (413, "body")
    torn, _ = endpoint.post(packed[:-4], content_encoding="gzip")
    assert torn.status == 400
    other, _ = endpoint.post(packed, content_encoding="br")
    assert other.status == 415


def test_an_unknown_stream_gets_404_with_the_nearest_name(opened):
    answer, got = opened().post(json.dumps(EVENT), path="/streams/login_steam")
    assert answer.status == 404
    assert "did you mean 'login_stream'?" in got["message"]


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/streams/login_stream", 405),
        ("POST", "/streams", 405),
        ("DELETE", "/healthz", 405),
        ("GET", "/nowhere", 404),
        ("GET", "/", 404),
        ("OPTIONS", "/streams/login_stream", 405),
    ],
)
def test_other_methods_and_paths_are_refused(opened, method, path, status):
    answer, got = opened().request(method, path)
    assert answer.status == status
    assert got["problems"][0]["reason"]
    assert status != 405 or answer.getheader("allow")


def test_the_pages_for_people_and_machines(opened):
    endpoint = opened(paths={"/logins": "login_stream"})
    endpoint.post(json.dumps(EVENT), path="/logins")
    for page in ("/livez", "/readyz", "/healthz"):
        assert endpoint.request("GET", page)[1] == {"status": "ok"}
    attributes = [{"name": "ip", "type": "string"}, {"name": "tries", "type": "int"}]
    assert endpoint.request("GET", "/streams")[1] == {
        "streams": [{"stream": "login_stream", "attributes": attributes}]
    }
    with endpoint.client() as client:
        client.request("GET", "/metrics")
        text = client.getresponse().read().decode()
    assert 'edgewise_gateway_events_total{connector="http",stream="login_stream"} 1' in text


def test_a_body_of_ten_megabytes_gets_413_that_the_sender_can_read(opened):
    endpoint = opened()
    answer, got = endpoint.post(b"x" * 10_000_000)
    assert answer.status == 413
    assert "8388608 bytes" in got["message"]
    chunks = (b"x" * 100_000 for _ in range(100))
    assert endpoint.post(chunks)[0].status == 413
    assert endpoint.server.stats.bytes_in_flight == 0


def test_an_endless_body_is_refused_before_it_is_read(opened):
    endpoint = opened()
    with socket.create_connection(("127.0.0.1", endpoint.port), timeout=10) as raw:
        raw.sendall(
            b"POST /streams/login_stream HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
            b"Content-Length: 99999999999\r\n\r\n"
        )
        assert raw.recv(12) == b"HTTP/1.1 413"


def test_too_many_bytes_in_flight_get_429_and_later_ones_are_taken(opened):
    body = json.dumps([EVENT] * 10)
    endpoint = opened(in_flight_bytes_max=len(body) + 10)
    endpoint.log.open.clear()
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(endpoint.post, body)
        while not endpoint.server.stats.bytes_in_flight:
            time.sleep(0.001)
        answer, got = endpoint.post(body)
        assert (answer.status, answer.getheader("retry-after"), got["error"]) == (429, "1", "busy")
        endpoint.log.open.set()
        assert first.result()[0].status == 200
    assert endpoint.post(body)[0].status == 200
    assert len(endpoint.log.rows()) == 20


def test_a_full_disk_answers_503_and_ingest_goes_on_when_there_is_room(opened):
    endpoint = opened()
    assert endpoint.post(json.dumps(EVENT))[0].status == 200
    endpoint.log.full = True
    answer, got = endpoint.post(json.dumps(EVENT))
    assert (answer.status, answer.getheader("retry-after"), got["error"]) == (503, "5", "full")
    assert "0 bytes left on /data" in got["message"]
    endpoint.log.full = False
    assert endpoint.post(json.dumps(EVENT))[1] == {"accepted": 1, "first": 1, "end": 2}


def test_many_clients_lose_nothing_and_share_appends(opened):
    endpoint = opened()

    def send(client_number):
        with endpoint.client() as client:
            for i in range(25):
                event = {"ip": str(client_number), "tries": i}
                client.request(
                    "POST",
                    "/streams/login_stream",
                    json.dumps(event),
                    {"Content-Type": "application/json"},
                )
                assert client.getresponse().read()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(send, range(8)))
    rows = endpoint.log.rows()
    assert len(rows) == 200
    for number in range(8):
        assert [r["tries"] for r in rows if r["ip"] == str(number)] == list(range(25))
    at = [r["_at"] for r in rows]
    assert at == sorted(set(at))


def test_a_body_that_never_comes_is_given_up(opened):
    endpoint = opened(body_timeout_s=0.05)
    with socket.create_connection(("127.0.0.1", endpoint.port), timeout=10) as raw:
        raw.sendall(b"POST /streams/login_stream HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n")
        assert raw.recv(12) == b"HTTP/1.1 408"


def test_the_door_closes_within_two_seconds_whatever_the_clients_do(opened):
    endpoint = opened()
    with endpoint.client() as idle, endpoint.client() as half:
        idle.request("GET", "/healthz")
        idle.getresponse().read()
        half.putrequest("POST", "/streams/login_stream")
        half.putheader("Content-Length", "100")
        half.endheaders(b"[")
        began = time.monotonic()
        endpoint.call(endpoint.server.stop())
        assert time.monotonic() - began < 2
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", endpoint.port), timeout=1)


def test_a_taken_port_is_a_sentence(opened):
    endpoint = opened()
    other = IngestServer({}, ManualClock())
    with pytest.raises(SetupError, match="choose another port"):
        endpoint.call(other.start(port=endpoint.port))
    endpoint.call(other.stop())


def authorizer(token, stream):
    if token != "good":
        return refuse_caller("a token is needed")
    return Publisher("ada") if stream in {"", "login_stream"} else refuse_stream("not yours")


def test_a_door_with_an_authority_takes_nothing_from_strangers(opened):
    endpoint = opened(authorizer=authorizer, paths={"/logins": "login_stream"})
    for path in ("/streams/login_stream", "/logins"):
        answer, got = endpoint.post(json.dumps(EVENT), path)
        assert (answer.status, got["error"]) == (401, "unauthenticated")
        assert answer.getheader("WWW-Authenticate") == "Bearer"
        answer, got = endpoint.post(json.dumps(EVENT), path, authorization="Bearer bad")
        assert answer.status == 401
        assert endpoint.post(json.dumps(EVENT), path, authorization="Bearer good")[0].status == 200
    assert endpoint.post("{}", "/streams/other", authorization="Bearer good")[0].status == 403
    for path in ("/streams", "/metrics", "/openapi.json", "/nowhere"):
        assert endpoint.request("GET", path)[0].status == 401
    assert endpoint.request("GET", "/streams", authorization="Bearer good")[0].status == 200
    assert endpoint.request("GET", "/healthz")[0].status == 200
    assert len(endpoint.log.rows()) == 2


def test_the_door_speaks_tls(opened, tmp_path):
    tls = certificate(tmp_path)
    endpoint = opened(tls=tls)
    trust = ssl.create_default_context(cafile=tls[0])
    trust.check_hostname = False
    client = http.client.HTTPSConnection("127.0.0.1", endpoint.port, timeout=10, context=trust)
    client.request(
        "POST", "/streams/login_stream", json.dumps(EVENT), {"Content-Type": "application/json"}
    )
    assert json.loads(client.getresponse().read())["accepted"] == 1
    client.close()
    with pytest.raises((OSError, http.client.HTTPException)):
        endpoint.post(json.dumps(EVENT))


def test_a_certificate_that_is_none_is_said(tmp_path):
    (tmp_path / "cert").write_text("no certificate")
    server = IngestServer(
        {}, ManualClock(0), IngestConfig(tls=(tmp_path / "cert", tmp_path / "cert"))
    )
    with pytest.raises(SetupError, match="cannot use TLS"):
        asyncio.run(server.start())


@pytest.mark.parametrize("path", ["/streams/login_stream", "/streams", "/metrics", "/healthz"])
def test_a_foreign_host_equal_to_its_origin_is_refused(opened, path):
    endpoint = opened(admits_host=lambda host: host.startswith("127.0.0.1"))
    foreign = {"host": "evil.example", "origin": "http://evil.example"}
    method = "POST" if path.endswith("login_stream") else "GET"
    body = json.dumps(EVENT) if method == "POST" else None
    answer, _ = endpoint.request(method, path, body, content_type="application/json", **foreign)
    assert answer.status == 403
    assert endpoint.log.rows() == []


def test_a_caller_beyond_its_rate_gets_429_and_others_are_taken(opened):
    endpoint = opened(
        authorizer=lambda token, _stream: Publisher(token), quotas=QuotaConfig(events_per_s=5)
    )
    many = "\n".join([json.dumps(EVENT)] * 100)
    for _ in range(2):
        answer, got = endpoint.post(
            many, content_type="application/x-ndjson", authorization="Bearer eve"
        )
    assert (answer.status, got["error"]) == (429, "quota")
    assert int(answer.getheader("Retry-After")) >= 10, "a debt of 90 events at 5 a second"
    answer, _ = endpoint.post(json.dumps(EVENT), authorization="Bearer ada")
    assert answer.status == 200


def test_a_caller_that_fills_its_part_of_the_budget_leaves_room_for_others(opened):
    limits = {"limits": AdmissionLimits(body_bytes_max=400), "in_flight_bytes_max": 1000}
    endpoint = opened(authorizer=lambda token, _stream: Publisher(token), **limits)
    endpoint.log.open.clear()
    with ThreadPoolExecutor() as threads:
        waiting = threads.submit(endpoint.post, pad(400), authorization="Bearer eve")
        wait_for(lambda: endpoint.server.stats.bytes_in_flight)
        assert endpoint.post(pad(400), authorization="Bearer eve")[0].status == 429
        other = threads.submit(endpoint.post, pad(400), authorization="Bearer ada")
        wait_for(lambda: endpoint.server.stats.bytes_in_flight > 500)
        endpoint.log.open.set()
        assert [f.result()[0].status for f in (waiting, other)] == [200, 200]


def pad(size):
    return json.dumps(EVENT).ljust(size)


def wait_for(condition):
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_listed_page_may_send_events_and_others_may_not_read_an_answer(opened):
    endpoint = opened(origins=frozenset({"https://good.example"}))
    answer, _ = endpoint.request("OPTIONS", "/streams/login_stream", origin="https://good.example")
    assert (answer.status, answer.getheader("Access-Control-Allow-Methods")) == (204, "GET, POST")
    answer, _ = endpoint.post(json.dumps(EVENT), origin="https://good.example")
    assert answer.getheader("Access-Control-Allow-Origin") == "https://good.example"
    answer, _ = endpoint.request("OPTIONS", "/streams/login_stream", origin="https://evil.example")
    assert answer.getheader("Access-Control-Allow-Origin") is None
