import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgewise.client.conversation import (
    BACKOFF_MOST_S,
    CallResult,
    Conversation,
    Delivery,
    Ended,
    IncomingRequest,
    backoff_s,
)
from edgewise.errors import ProtocolError
from edgewise.wire import codec, frames
from edgewise.wire.codes import ProtocolCode


class Talk:
    def __init__(self):
        self.side = Conversation()
        self.side.begin()

    def hear(self, *all_frames):
        return [o for f in all_frames for o in self.side.receive(codec.encode(f), 0)]

    def said(self):
        return [codec.decode_from_client(d) for d in self.side.data_to_send()]

    def opened(self):
        self.hear(frames.Welcome(1, "s", 0))
        self.said()
        return self


def test_what_was_asked_before_the_welcome_is_sent_after_it():
    talk = Talk()
    talk.side.subscribe("a/#", rate=2.0)
    assert talk.said() == [frames.Hello(1)]
    talk.hear(frames.Welcome(1, "s", 0))
    assert talk.said() == [frames.Subscribe(1, "a/#", frames.SubscribeOptions(rate=2.0))]


def test_a_reconnect_resumes_by_position():
    talk = Talk().opened()
    talk.side.subscribe("a/#")
    talk.side.subscribe("b")
    talk.hear(frames.TopicFrame(1, "a/x"), frames.Value(1, 0, 3, 6, 7, 1, 9, {"v": 1}))
    talk.side.lost()
    talk.said()
    talk.side.begin()
    talk.hear(frames.Welcome(1, "s2", 0))
    _, first, second = talk.said()
    assert first.options.have == [("a/x", 3, 7)]
    assert second.options.have == []


def test_events_go_to_every_subscription_that_selects_them():
    talk = Talk().opened()
    one, two, _ = talk.side.subscribe("a/#"), talk.side.subscribe("a/x"), talk.side.subscribe("b")
    (delivery,) = talk.hear(
        frames.TopicFrame(1, "a/x"), frames.Value(1, 0, 3, 6, 7, 1, 9, {"v": 1})
    )
    assert isinstance(delivery, Delivery)
    assert delivery.ids == (one, two)
    assert delivery.event.value == {"v": 1}


def test_a_paused_topic_is_resumed_from_where_we_are():
    talk = Talk().opened()
    talk.side.subscribe("a")
    talk.hear(
        frames.TopicFrame(1, "a"), frames.Value(1, 0, 3, 6, 7, 1, 9, {}), frames.Paused(1, 4001)
    )
    assert talk.said()[-1] == frames.Resume(1, 3, 7)


def test_calls_are_answered_by_their_id():
    talk = Talk().opened()
    ask, put = talk.side.request("echo", 1), talk.side.publish("a", {"v": 1})
    assert talk.hear(frames.Reply(ask, 5)) == [CallResult(ask, 5, None)]
    (refused,) = talk.hear(frames.Error(put, 4502, "no"))
    assert refused.error.code == ProtocolCode.FORBIDDEN
    assert talk.hear(frames.Request(1, "who", None)) == [IncomingRequest(1, "who", None)]
    talk.side.reply(1, "me")
    talk.side.refuse(2, ProtocolCode.NOT_FOUND, "no")
    assert talk.said()[-2:] == [frames.Reply(1, "me"), frames.Error(2, 4505, "no")]


def test_without_a_connection_a_call_fails_at_once():
    with pytest.raises(ProtocolError, match="not connected"):
        Talk().side.request("a", 1)


def test_acks_are_sent_only_when_something_came():
    talk = Talk().opened()
    talk.side.ack()
    assert talk.said() == []
    talk.side.subscribe("a")
    talk.hear(frames.TopicFrame(1, "a"), frames.Value(1, 0, 3, 6, 7, 1, 9, {}))
    talk.side.ack()
    talk.side.ack()
    assert talk.said()[1:] == [frames.Ack(1)]


def test_the_end_says_whether_to_try_again():
    (ended,) = Talk().opened().hear(frames.Close(3000, "bye"))
    assert ended == Ended(3000, "bye")
    assert ended.may_retry
    assert not Ended(3504, "who are you").may_retry


@given(st.integers(0, 10_000), st.floats(0, 0.999))
def test_back_off_is_bounded_and_never_zero(attempt, dice):
    assert 0.1 < backoff_s(attempt, dice) <= BACKOFF_MOST_S


def test_positions_fit_into_the_frame_the_server_takes():
    talk = Talk().opened()
    talk.side.subscribe("a/#")
    for i in range(5000):
        talk.hear(
            frames.TopicFrame(i + 1, f"a/{i}"),
            frames.Value(i + 1, 0, 2**40, 6, 2**40, 1, 9, {"v": 1}),
        )
    talk.side.lost()
    talk.said()
    talk.side.begin()
    talk.side.data_to_send()
    talk.hear(frames.Welcome(1, "s2", 0, frames.Limits(frame_bytes=65536)))
    (subscribe,) = talk.side.data_to_send()
    assert 30_000 < len(subscribe) < 65_536
