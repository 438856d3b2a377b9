"""One connection against a transport that records; the whole over loopback is in test_server."""

import asyncio
from http import HTTPStatus

import pytest

from edgewise.edge.access.auth import AccessControl
from edgewise.edge.config import EdgeConfig
from edgewise.edge.sessions.fanout import Fanout
from edgewise.edge.sessions.session import Session
from edgewise.edge.topics.tree import TopicTree
from edgewise.edge.transports.connection import Connection
from edgewise.edge.transports.http import problem_response
from edgewise.edge.transports.websocket import Packer
from edgewise.wire import codec, frames

UPGRADE = (
    b"GET /ws HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)


class Recorder(asyncio.Transport):
    def __init__(self):
        super().__init__()
        self.out = bytearray()
        self.limits = None
        self.closed = False

    def write(self, data):
        self.out += data

    def set_write_buffer_limits(self, high=None, low=None):  # noqa: ARG002
        self.limits = high

    def get_write_buffer_size(self):
        return len(self.out)

    def get_extra_info(self, name, default=None):  # noqa: ARG002
        return None

    def is_closing(self):
        return self.closed

    def close(self):
        self.closed = True

    abort = close


class Host:
    def __init__(self, **config):
        self.config = EdgeConfig(**config)
        self.fanout = Fanout(TopicTree(10))
        self.access = AccessControl()
        self.clock = 0
        self.pack = Packer()

    def now_us(self):
        return self.clock

    def add_connection(self, _connection, _address):
        return ""

    def check_request(self, _connection, _peer, headers):
        return "too many" if "crowd" in headers else ""

    def admit(self, connection):
        self.newcomer = connection

    def left(self, connection):
        self.gone = connection

    def open_session(self, _connection):
        return Session("s", self, 0)

    def request(self, connection, request):
        connection.respond(problem_response(HTTPStatus.NOT_FOUND, f"no {request.path}"))

    def upgrade_refused(self, _headers):
        return None

    def flush_soon(self):
        self.flush = "soon"

    def flush_again(self, _outbox):
        self.flush = "again"

    def record_activity(self, _who):
        pass

    def flush_due(self, _now_us):
        self.flush = "due"


def connected(**config):
    host, transport = Host(**config), Recorder()
    connection = Connection(host)
    connection.connection_made(transport)
    return host, connection, transport


def test_the_high_water_mark_is_zero():
    assert connected()[2].limits == 0


def test_requests_in_one_packet_are_all_answered():
    _, connection, transport = connected()
    connection.data_received(b"GET /a HTTP/1.1\r\n\r\nGET /b HTTP/1.1\r\n\r\n")
    assert transport.out.count(b"404 Not Found") == 2
    assert not transport.closed


@pytest.mark.parametrize("head", [b"GET /a HTTP/1.1\r\n", UPGRADE.removesuffix(b"\r\n")])
def test_who_is_one_too_many_behind_a_proxy_is_told_so_and_goes(head):
    _, connection, transport = connected()
    connection.data_received(head + b"Crowd: big\r\n\r\n")
    assert b"503 Service Unavailable" in transport.out
    assert b"too many" in transport.out
    assert transport.closed
    assert connection.session is None


def test_what_is_no_http_is_answered_and_closed():
    _, connection, transport = connected()
    connection.data_received(b"\x16\x03\x01\x00")
    assert b"400 Bad Request" in transport.out
    assert transport.closed


@pytest.mark.parametrize("sent", [b"", b"GET /", b"POST /poll HTTP/1.1\r\nX: y\r\n"])
def test_half_a_request_is_dropped_at_the_time_of_the_handshake(sent):
    host, connection, transport = connected()
    for now_ms in range(0, host.config.handshake_ms, 1000):  # a byte now and then does not help
        host.clock = now_ms * 1000
        connection.data_received(sent if now_ms == 0 else b"a" * bool(sent))
        connection.tick(host.clock)
        assert not transport.closed
    connection.tick(host.config.handshake_ms * 1000 + 1)
    assert b"408 Request Timeout" in transport.out
    assert transport.closed


def test_a_connection_between_two_requests_may_idle_for_longer():
    host, connection, transport = connected()
    connection.data_received(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert b"404" in transport.out
    connection.tick(host.config.idle_ms * 1000)
    assert not transport.closed
    connection.tick(host.config.idle_ms * 1000 + 1)
    assert transport.closed


def test_nothing_is_taken_while_the_socket_is_full():
    host, connection, transport = connected()
    connection.session = Session("s", host, 0)
    connection.session.outbox.control.add(b"abc")
    connection.pause_writing()
    connection.flush(0)
    assert not transport.out
    connection.resume_writing()
    assert bytes(transport.out) == b"\x82\x03abc"


def test_pings_of_a_client_that_never_reads_end_the_connection():
    _, connection, transport = connected(control_bytes_max=1000)
    connection.data_received(
        b"GET /ws HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    )
    assert b"101 Switching" in transport.out
    ping = bytes([0x89, 0x80 | 100, 0, 0, 0, 0]) + b"p" * 100
    for _ in range(20):
        connection.data_received(ping)
    assert transport.closed
    assert len(transport.out) < 2000


def test_answers_that_are_not_read_do_not_pile_up():
    _, connection, transport = connected(control_bytes_max=1000)
    connection.data_received(b"GET /a HTTP/1.1\r\n\r\n" * 1000)
    assert len(transport.out) < 2000
    assert transport.out.count(b"429 Too Many Requests") == 1
    assert transport.closed


def test_a_request_behind_one_that_waits_is_refused_and_never_gets_its_answer():
    host, connection, transport = connected()
    host.request = lambda _connection, _request: None
    connection.data_received(b"POST /poll HTTP/1.1\r\n\r\nGET /b HTTP/1.1\r\n\r\n")
    assert b"429 Too Many Requests" in transport.out
    assert transport.closed


def test_a_connection_that_was_used_before_may_become_a_websocket():
    """A proxy keeps connections and uses them again."""
    _, connection, transport = connected()
    connection.data_received(b"GET /a HTTP/1.1\r\n\r\n")
    early = bytes([0x89, 0x81, 0, 0, 0, 0]) + b"p"
    connection.data_received(UPGRADE[:50])
    connection.data_received(UPGRADE[50:] + early)
    assert transport.out.count(b"404 Not Found") == 1
    assert b"101 Switching" in transport.out
    assert transport.out.endswith(b"\x8a\x01p")


def test_nothing_is_answered_into_an_event_stream():
    host, connection, transport = connected()
    host.request = lambda connection, request: connection.stream(request.body, b"")
    hello = codec.encode(frames.Hello(1))
    stream = b"POST /sse HTTP/1.1\r\ncontent-length: %d\r\n\r\n%s" % (len(hello), hello)
    connection.data_received(stream + b"GET /a HTTP/1.1\r\n\r\n" + UPGRADE)
    assert transport.out.count(b"HTTP/1.1") == 1
    assert not transport.closed


class Slow:
    """An outbox that waits for time alone."""

    def __init__(self, wake_us):
        self.wake_us = lambda: wake_us

    def ready(self, _now_us):
        return False


def test_what_is_due_first_is_waited_for_whenever_it_came():
    async def main():
        _, connection, _ = connected()
        start = asyncio.get_running_loop().time()
        waits = []
        for wake_us in (900_000_000, 5_000_000, 700_000_000, 0):
            connection._wait(Slow(wake_us), 0)
            waits.append(round(connection._later.when() - start))
        connection.connection_lost(None)
        return waits

    assert asyncio.run(main()) == [900, 5, 5, 5]
