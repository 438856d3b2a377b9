"""Request heads that never end, and addresses that connect too often, over real sockets."""

import json
import socket
import ssl
import time
import urllib.request
from contextlib import suppress

import pytest
from tests.support.certificate import certificate
from tests.support.loop_thread import LoopThread
from tests.support.memory_log import MemoryLog

from edgewise.event.clock import ManualClock
from edgewise.event.schema import Schema
from edgewise.gateway.http import IngestServer
from edgewise.gateway.ingest_config import IngestConfig

SCHEMA = Schema.of("S", v="int")
PATIENCE_S = 20


@pytest.fixture
def serve():
    running = []

    def start(**config):
        loop = LoopThread()
        server = IngestServer({"S": MemoryLog(SCHEMA)}, ManualClock(1), IngestConfig(**config))
        running.append((loop, server))
        return loop.call(server.start())

    yield start
    for loop, server in running:
        loop.call(server.stop())
        loop.close()


def connect(port, sent=b"", source=""):
    address = (source, 0) if source else None
    connection = socket.create_connection(("127.0.0.1", port), PATIENCE_S, address)
    connection.sendall(sent)
    return connection


def read_all(connection):
    """What the server sends until it closes."""
    found = b""
    while chunk := connection.recv(65536):
        found += chunk
    return found


def post(port):
    body = json.dumps({"v": 1}).encode()
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/streams/S", body, {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
        return answer.status


@pytest.mark.parametrize(
    "sent", [b"", b"POST /str", b"POST /streams/S HTTP/1.1\r\nX: y\r\n", b"\r\n"]
)
def test_half_a_head_is_closed_in_time(serve, sent):
    port = serve(head_timeout_s=1.0)
    with connect(port, sent) as half:
        assert b"408" in read_all(half)


def test_a_head_that_drips_is_closed_in_time_also_after_a_request(serve):
    port = serve(head_timeout_s=1.0)
    with connect(port, b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n") as drip:
        assert b"200 OK" in drip.recv(65536)
        deadline = time.monotonic() + PATIENCE_S
        found = b""
        drip.settimeout(0.05)
        while b"408" not in found and time.monotonic() < deadline:
            try:
                drip.sendall(b"\r\n")
                found += drip.recv(65536)
            except TimeoutError:
                continue
        assert b"408" in found


def test_a_header_without_end_is_refused_at_the_limit(serve):
    port = serve(head_bytes_max=4096)
    with connect(port, b"GET / HTTP/1.1\r\nX: ") as endless, pytest.raises(ConnectionError):
        endless.sendall(b"x" * 100_000_000)


def test_half_heads_of_one_address_do_not_keep_others_out(serve):
    port = serve(address_connections_max=20, connections_max=40)
    held = [connect(port, b"POST /streams/S HT", "127.0.0.2") for _ in range(20)]
    try:
        with connect(port, source="127.0.0.2") as one_more:
            assert b"429" in read_all(one_more)
        assert post(port) == 200
    finally:
        for connection in held:
            connection.close()
    deadline = time.monotonic() + PATIENCE_S
    while True:  # what is closed counts no longer
        with connect(port, b"GET /healthz HTTP/1.0\r\n\r\n", "127.0.0.2") as again:
            if b"200" in read_all(again):
                return
        assert time.monotonic() < deadline


def test_a_websocket_counts_for_its_address_until_it_ends(serve):
    from websockets.sync.client import connect as open_socket

    port = serve(address_connections_max=1, head_timeout_s=1.0)
    url = f"ws://127.0.0.1:{port}/streams/S/publish"
    with open_socket(url) as client:
        client.recv(PATIENCE_S)
        time.sleep(1.5)  # longer than a head may take
        client.send('{"id": 1, "events": {"v": 1}}')
        assert json.loads(client.recv(PATIENCE_S))["ack"] == 1
        with connect(port) as one_more:
            assert b"429" in read_all(one_more)
    deadline = time.monotonic() + PATIENCE_S
    while True:
        with connect(port, b"GET /healthz HTTP/1.0\r\n\r\n") as again:
            if b"200" in read_all(again):
                return
        assert time.monotonic() < deadline


def test_a_large_body_is_no_large_head(serve):
    port = serve(head_bytes_max=512)
    body = json.dumps([{"v": 1}] * 2000).encode()
    head = (
        b"POST /streams/S HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(body)
    )
    with connect(port, head + body) as whole:
        assert b'"accepted":2000' in read_all(whole)


def test_a_header_without_end_is_cut_under_tls_too(serve, tmp_path):
    port = serve(head_bytes_max=4096, tls=certificate(tmp_path))
    context = ssl.create_default_context(cafile=tmp_path / "cert.pem")
    with connect(port) as plain, context.wrap_socket(plain, server_hostname="127.0.0.1") as client:
        client.sendall(b"GET / HTTP/1.1\r\nX: ")
        with suppress(OSError):
            for _ in range(1_000_000):  # 64 GB
                client.sendall(b"x" * 65536)
            raise AssertionError("all of it was taken")
