import base64

import msgspec
import pytest

from edgewise.edge.access.auth import AccessControl
from edgewise.edge.config import EdgeConfig
from edgewise.edge.sessions.fanout import Fanout
from edgewise.edge.sessions.session import Session
from edgewise.edge.topics.tree import Publication, TopicTree
from edgewise.edge.transports.emulated import (
    FRAMES_MAX,
    PollConnection,
    pack_events,
    unpack_frames,
)
from edgewise.wire import codec, frames
from edgewise.wire.codes import ProtocolCode

SECOND = 1_000_000


class Place:
    def __init__(self):
        self.config = EdgeConfig()
        self.fanout = Fanout(TopicTree(10))
        self.access = AccessControl()


class Waiter:
    def __init__(self):
        self.answers = []

    def respond(self, response):
        parts = msgspec.msgpack.decode(response.body)
        self.answers.append([codec.decode_from_server(p) for p in parts])


def a_poll():
    host = Place()
    carrier = PollConnection(host.config, 0)
    carrier.session = Session("s", host, 0)
    return host, carrier, Waiter()


def test_events_carry_frames_in_base64():
    data = pack_events([b"\x00\n\xff", b"b"])
    lines = [line for line in data.split(b"\n") if line]
    assert [base64.b64decode(line.removeprefix(b"data: ")) for line in lines] == [
        b"\x00\n\xff",
        b"b",
    ]


def test_a_poll_answers_at_once_or_waits_for_news():
    host, carrier, waiter = a_poll()
    hello, subscribe = frames.Hello(1), frames.Subscribe(1, "a")
    carrier.poll(waiter, [codec.encode(hello), codec.encode(subscribe)], 0)
    assert [type(f).__name__ for f in waiter.answers[0]] == ["Welcome", "Subscribed"]
    carrier.poll(waiter, [], SECOND)
    assert len(waiter.answers) == 1
    for v in range(3):
        host.fanout.publish(Publication("a", {"v": v}, v, v), 0)
    carrier.flush(SECOND)
    assert [f.value for f in waiter.answers[1] if isinstance(f, frames.Value)] == [{"v": 2}]
    carrier.flush(SECOND)
    assert len(waiter.answers) == 2


def test_a_poll_ends_empty_after_its_time_and_the_session_after_silence():
    _, carrier, waiter = a_poll()
    carrier.poll(waiter, [codec.encode(frames.Hello(1))], 0)
    carrier.poll(waiter, [], 0)
    carrier.tick(26 * SECOND)
    assert waiter.answers[-1] in ([], [frames.Ping(26 * SECOND)])
    carrier.tick(40 * SECOND)
    assert not carrier.over
    carrier.tick(60 * SECOND)
    assert carrier.over
    assert carrier.session.closed.code == ProtocolCode.IDLE


def test_a_second_request_releases_the_first():
    _, carrier, first = a_poll()
    carrier.poll(first, [codec.encode(frames.Hello(1))], 0)
    second = Waiter()
    carrier.poll(first, [], 0)
    carrier.poll(second, [], 0)
    assert first.answers[-1] == []
    carrier.abandoned(second)
    carrier.flush(0)
    assert second.answers == []


def test_goodbye_is_said_to_who_waits():
    _, carrier, waiter = a_poll()
    carrier.poll(waiter, [codec.encode(frames.Hello(1))], 0)
    carrier.poll(waiter, [], 0)
    carrier.shut_down(ProtocolCode.SHUTDOWN)
    assert waiter.answers[-1][-1].code == ProtocolCode.SHUTDOWN


@pytest.mark.parametrize(
    "body", [b"\xc1", b"\x91\x01", b"\x80", msgspec.msgpack.encode([b"x"] * (FRAMES_MAX + 1))]
)
def test_bodies_that_are_no_frames_are_refused(body):
    with pytest.raises(ValueError, match=r"frames|binaries"):
        unpack_frames(body)


def test_an_empty_body_is_no_frames():
    assert unpack_frames(b"") == []
