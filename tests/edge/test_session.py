import pytest

from edgewise.edge.config import EdgeConfig
from edgewise.edge.fanout import Fanout
from edgewise.edge.session import Session
from edgewise.edge.topics import TopicTree
from edgewise.wire import codec, frames
from edgewise.wire.codes import Code

MS = 1000


class Talk:
    def __init__(self, hello=True, **config):
        self.fanout = Fanout(TopicTree(100))
        self.session = Session("s1", self.fanout, EdgeConfig(**config), now_us=0)
        if hello:
            self.welcome = self.say(frames.Hello(1))[0]

    def say(self, frame, now_us=0):
        self.session.receive(codec.encode(frame), now_us)
        return self.hear()

    def hear(self):
        return [codec.decode_from_server(f) for f in self.session.take(10**9)]


def test_hello_is_welcomed_with_limits():
    talk = Talk()
    assert talk.welcome.session == "s1"
    assert talk.welcome.limits.subscriptions == 256
    assert talk.session.open


def test_an_unknown_version_is_closed_without_retry():
    talk = Talk(hello=False)
    assert talk.say(frames.Hello(99))[0].code == Code.VERSION_UNKNOWN
    assert talk.session.closed.code == Code.VERSION_UNKNOWN


def test_subscribe_answers_how_many_and_brings_values():
    talk = Talk()
    talk.fanout.publish("a/1", {"v": 1}, now_us=0, offset=0, at_us=5)
    answer = talk.say(frames.Subscribe(7, "a/#"))
    assert [type(f).__name__ for f in answer] == ["Subscribed", "Topic", "Value"]
    assert answer[0] == frames.Subscribed(7, 1)


@pytest.mark.parametrize(
    ("frame", "code"),
    [
        (frames.Subscribe(1, "a/#/b"), Code.BAD_SELECTOR),
        (frames.Subscribe(0, "a"), Code.DUPLICATE_ID),
        (frames.Subscribe(2, "c"), Code.TOO_MANY_SUBSCRIPTIONS),
        (frames.Unsubscribe(9), Code.NOT_FOUND),
        (frames.Request(9, "nobody", 1), Code.NOT_FOUND),
        (frames.Publish(9, "a", {}), Code.NOT_FOUND),
    ],
)
def test_a_request_that_fails_is_answered_and_the_session_goes_on(frame, code):
    talk = Talk(subscriptions_max=1)
    if code is not Code.BAD_SELECTOR:
        talk.say(frames.Subscribe(0, "x"))
    (error,) = talk.say(frame)
    assert (error.id, error.code) == (frame.id, code)
    assert error.reason
    assert talk.session.closed is None


def test_what_the_client_still_has_but_is_gone_is_removed():
    talk = Talk()
    options = frames.SubscribeOptions(have=[("a/old", 0, 3)])
    answer = talk.say(frames.Subscribe(1, "a/#", options))
    assert answer[1:] == [frames.Topic(0, "a/old"), frames.Remove(0)]


def test_garbage_closes_with_a_code():
    talk = Talk()
    talk.session.receive(b"\xc1", 0)
    (close,) = talk.hear()
    assert close.code == Code.BAD_FRAME


def test_time_ends_silent_sessions_and_keeps_live_ones():
    talk = Talk(hello=False)
    talk.session.tick(9_999 * MS)
    assert talk.session.closed is None
    talk.session.tick(10_001 * MS)
    assert talk.session.closed.code == Code.HANDSHAKE_TIMEOUT
    talk = Talk()
    talk.session.tick(20_001 * MS)
    (ping,) = talk.hear()
    talk.say(frames.Pong(ping.n), 20_003 * MS)
    assert talk.session.rtt_us == 2 * MS
    talk.session.tick(80_004 * MS)
    assert talk.session.closed.code == Code.IDLE


def test_a_client_that_pings_and_never_reads_is_closed():
    talk = Talk(control_bytes_max=1000)
    for n in range(400):
        talk.session.receive(codec.encode(frames.Ping(n)), 0)
    assert talk.session.closed.code == Code.UNREADABLE
    assert talk.session.outbox.control_bytes < 2000


def test_ping_is_answered_with_the_clock():
    assert Talk().say(frames.Ping(3), 77) == [frames.Pong(3, 77)]
