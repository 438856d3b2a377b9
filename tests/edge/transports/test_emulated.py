import base64

import msgspec
import pytest

from edgewise.edge.config import EdgeConfig
from edgewise.edge.fanout import Fanout
from edgewise.edge.gate import Gate
from edgewise.edge.session import Session
from edgewise.edge.topics import TopicTree
from edgewise.edge.transports.emulated import FRAMES_MAX, PollCarrier, pack_events, unpack
from edgewise.wire import codec, frames
from edgewise.wire.codes import Code

SECOND = 1_000_000


class Place:
    def __init__(self):
        self.config = EdgeConfig()
        self.fanout = Fanout(TopicTree(10))
        self.gate = Gate()


class Waiter:
    def __init__(self):
        self.answers = []

    def respond(self, response):
        parts = msgspec.msgpack.decode(response.body)
        self.answers.append([codec.decode_from_server(p) for p in parts])


def a_poll():
    place = Place()
    carrier = PollCarrier(place.config, 0)
    carrier.session = Session("s", place, 0)
    return place, carrier, Waiter()


def test_events_carry_frames_in_base64():
    data = pack_events([b"\x00\n\xff", b"b"])
    lines = [line for line in data.split(b"\n") if line]
    assert [base64.b64decode(line.removeprefix(b"data: ")) for line in lines] == [
        b"\x00\n\xff",
        b"b",
    ]


def test_a_poll_answers_at_once_or_waits_for_news():
    place, carrier, waiter = a_poll()
    hello, subscribe = frames.Hello(1), frames.Subscribe(1, "a")
    carrier.poll(waiter, [codec.encode(hello), codec.encode(subscribe)], 0)
    assert [type(f).__name__ for f in waiter.answers[0]] == ["Welcome", "Subscribed"]
    carrier.poll(waiter, [], SECOND)
    assert len(waiter.answers) == 1
    for v in range(3):
        place.fanout.publish("a", {"v": v}, now_us=0, offset=v, at_us=v)
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
    assert carrier.session.closed.code == Code.IDLE


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
    carrier.goodbye(Code.SHUTDOWN)
    assert waiter.answers[-1][-1].code == Code.SHUTDOWN


@pytest.mark.parametrize(
    "body", [b"\xc1", b"\x91\x01", b"\x80", msgspec.msgpack.encode([b"x"] * (FRAMES_MAX + 1))]
)
def test_bodies_that_are_no_frames_are_refused(body):
    with pytest.raises(ValueError, match=r"frames|binaries"):
        unpack(body)


def test_an_empty_body_is_no_frames():
    assert unpack(b"") == []
