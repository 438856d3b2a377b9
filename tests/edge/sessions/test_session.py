import pytest

from edgewise.edge.access.auth import ANYONE, AccessControl, Principal, parse_selectors
from edgewise.edge.config import EdgeConfig
from edgewise.edge.server.publish import publish_frame
from edgewise.edge.sessions.fanout import Fanout
from edgewise.edge.sessions.session import REQUESTS_MAX, Session
from edgewise.edge.topics.tree import Publication, TopicTree
from edgewise.errors import ProtocolError
from edgewise.wire import codec, frames
from edgewise.wire.codes import ProtocolCode

MS = 1000


class Talk:
    def __init__(self, hello=True, **config):
        self.fanout = Fanout(TopicTree(100))
        self.config = EdgeConfig(**config)
        self.access = AccessControl(self.config.verifier)
        self.requests = []
        self.ages = []
        self.session = Session("s1", self, now_us=0)
        if hello:
            self.welcome = self.say(frames.Hello(1))[0]

    def dispatch_request(self, session, frame):
        self.requests.append((session, frame))

    def accept_publish(self, _session, frame, now_us):
        publish_frame(self.fanout, frame, now_us)
        return True

    def record_age(self, _session, group, age_us):
        self.ages.append((group, age_us))

    def say(self, frame, now_us=0):
        self.session.receive(codec.encode(frame), now_us)
        return self.hear()

    def hear(self):
        return [codec.decode_from_server(f) for f in self.session.take(10**9, 0)]


def test_hello_is_welcomed_with_limits():
    talk = Talk()
    assert talk.welcome.session == "s1"
    assert talk.welcome.limits.subscriptions == 256
    assert talk.session.open


def test_an_unknown_version_is_closed_without_retry():
    talk = Talk(hello=False)
    assert talk.say(frames.Hello(99))[0].code == ProtocolCode.VERSION_UNKNOWN
    assert talk.session.closed.code == ProtocolCode.VERSION_UNKNOWN


def test_subscribe_answers_how_many_and_brings_values():
    talk = Talk()
    talk.fanout.publish(Publication("a/1", {"v": 1}, 0, 5), 0)
    answer = talk.say(frames.Subscribe(7, "a/#"))
    assert [type(f).__name__ for f in answer] == ["Subscribed", "TopicFrame", "Value"]
    assert answer[0] == frames.Subscribed(7, 1)


@pytest.mark.parametrize(
    ("frame", "code"),
    [
        (frames.Subscribe(1, "a/#/b"), ProtocolCode.BAD_SELECTOR),
        (frames.Subscribe(0, "a"), ProtocolCode.DUPLICATE_ID),
        (frames.Subscribe(2, "c"), ProtocolCode.TOO_MANY_SUBSCRIPTIONS),
        (frames.Unsubscribe(9), ProtocolCode.NOT_FOUND),
        (frames.Request(9, "a//b", 1), ProtocolCode.BAD_PATH),
        (frames.Publish(9, "$sys/a", {}), ProtocolCode.FORBIDDEN),
        (frames.Publish(9, "a", [1]), ProtocolCode.BAD_VALUE),
        (frames.Publish(9, "a", {1: 1}), ProtocolCode.BAD_VALUE),
        (frames.Publish(9, "a", {}, frames.PublishOptions(kind=9)), ProtocolCode.BAD_VALUE),
        (
            frames.Publish(9, "none", {}, frames.PublishOptions(remove=True)),
            ProtocolCode.NOT_FOUND,
        ),
        (
            frames.Subscribe(3, "x", frames.SubscribeOptions(rate=-1.0)),
            ProtocolCode.TOO_MANY_SUBSCRIPTIONS,
        ),
    ],
)
def test_a_request_that_fails_is_answered_and_the_session_goes_on(frame, code):
    talk = Talk(subscriptions_max=1)
    if code is not ProtocolCode.BAD_SELECTOR:
        talk.say(frames.Subscribe(0, "x"))
    (error,) = talk.say(frame)
    assert (error.id, error.code) == (frame.id, code)
    assert error.reason
    assert talk.session.closed is None


def test_what_the_client_still_has_but_is_gone_is_removed():
    talk = Talk()
    options = frames.SubscribeOptions(have=[("a/old", 0, 3)])
    answer = talk.say(frames.Subscribe(1, "a/#", options))
    assert answer[1:] == [frames.TopicFrame(0, "a/old"), frames.Remove(0)]


def test_garbage_closes_with_a_code():
    talk = Talk()
    talk.session.receive(b"\xc1", 0)
    (close,) = talk.hear()
    assert close.code == ProtocolCode.BAD_FRAME


def test_time_ends_silent_sessions_and_keeps_live_ones():
    talk = Talk(hello=False)
    talk.session.tick(9_999 * MS)
    assert talk.session.closed is None
    talk.session.tick(10_001 * MS)
    assert talk.session.closed.code == ProtocolCode.HANDSHAKE_TIMEOUT
    talk = Talk()
    talk.session.tick(20_001 * MS)
    (ping,) = talk.hear()
    talk.say(frames.Pong(ping.n), 20_003 * MS)
    assert talk.session.rtt_us == 2 * MS
    talk.session.tick(80_004 * MS)
    assert talk.session.closed.code == ProtocolCode.IDLE


def test_a_client_that_pings_and_never_reads_is_closed():
    talk = Talk(control_bytes_max=1000)
    for n in range(400):
        talk.session.receive(codec.encode(frames.Ping(n)), 0)
    assert talk.session.closed.code == ProtocolCode.UNREADABLE
    assert talk.session.outbox.control.bytes < 2000
    assert talk.hear()[-1].code == ProtocolCode.UNREADABLE


def test_who_talks_on_after_the_end_is_not_heard():
    talk = Talk()
    talk.session.end(ProtocolCode.IDLE)
    talk.say(frames.Ping(1), 5000)
    assert talk.session.heard_us == 0


def test_ping_is_answered_with_the_clock():
    assert Talk().say(frames.Ping(3), 77) == [frames.Pong(3, 77)]


@pytest.mark.parametrize(
    "options",
    [
        frames.SubscribeOptions(rate=-1.0),
        frames.SubscribeOptions(rate=float("nan")),
        frames.SubscribeOptions(weight=0.0),
        frames.SubscribeOptions(window=["median"]),
        frames.SubscribeOptions(last=-1),
    ],
)
def test_wishes_that_make_no_sense_are_refused(options):
    (error,) = Talk().say(frames.Subscribe(1, "a", options))
    assert error.code == ProtocolCode.BAD_VALUE


def test_a_published_value_reaches_subscribers_and_is_acknowledged():
    talk = Talk()
    talk.say(frames.Subscribe(1, "chat/#"))
    answer = talk.say(frames.Publish(2, "chat/a", {"text": "hi"}), 7)
    assert answer[0] == frames.Reply(2)
    assert (answer[2].value, answer[2].at_us) == ({"text": "hi"}, 7)
    table = frames.PublishOptions(kind=1, key="x")
    talk.say(frames.Publish(3, "chat/t", {"q": 1}, table))
    assert talk.fanout.tree.get("chat/t").head.value == {"x": {"q": 1}}
    talk.say(frames.Publish(4, "chat/t", None, frames.PublishOptions(key="x", remove=True)))
    assert talk.fanout.tree.get("chat/t").head.value == {}
    talk.say(frames.Publish(5, "chat/a", None, frames.PublishOptions(remove=True)))
    assert talk.fanout.tree.get("chat/a") is None


def test_requests_go_to_the_place_and_back():
    talk = Talk()
    assert talk.say(frames.Request(5, "echo", 1)) == []
    ((session, frame),) = talk.requests
    session.reply(frame.id, 2)
    assert talk.hear() == [frames.Reply(5, 2)]


def test_the_server_asks_and_hears_the_answer_or_the_end():
    talk, heard = Talk(), []
    talk.session.ask("who", None, lambda body, error: heard.append((body, error and error.code)))
    talk.session.ask("why", None, lambda body, error: heard.append((body, error and error.code)))
    talk.session.ask("when", None, lambda body, error: heard.append((body, error and error.code)))
    assert [f.path for f in talk.hear()] == ["who", "why", "when"]
    talk.say(frames.Reply(1, "me"))
    talk.say(frames.Error(2, 4505, "no"))
    talk.session.forget()
    assert heard == [("me", None), (None, 4505), (None, ProtocolCode.NO_ANSWER)]


def test_a_question_that_nobody_waits_for_makes_room_for_the_next():
    talk = Talk()
    for number in range(1, 3 * REQUESTS_MAX):
        assert talk.session.ask("who", None, pytest.fail) == number
        talk.session.forget_request(number)
    talk.say(frames.Reply(1, "late"))
    heard = []
    for _ in range(REQUESTS_MAX + 1):
        talk.session.ask("who", None, lambda _, error: heard.append(error.code))
    assert heard == [ProtocolCode.BUSY]


class OneToken:
    """Accepts 'good' as a principal that may read a/# only."""

    def __init__(self, **more):
        self.principal = Principal("p", read=parse_selectors(["a/#"]), **more)

    def verify(self, token):
        if token != "good":
            raise ProtocolError(ProtocolCode.UNAUTHENTICATED, "no")
        return self.principal


def hello(token, **more):
    return frames.Hello(1, frames.HelloOptions(token=token, **more))


def test_without_a_good_token_nobody_comes_in():
    talk = Talk(hello=False, verifier=OneToken())
    assert talk.say(hello("bad"))[0].code == ProtocolCode.UNAUTHENTICATED
    assert talk.session.closed is not None


def test_a_principal_sees_and_does_only_what_it_may():
    talk = Talk(hello=False, verifier=OneToken())
    for path in ("a/1", "b/1"):
        talk.fanout.publish(Publication(path, {}, 0, 0), 0)
    talk.say(hello("good"))
    answer = talk.say(frames.Subscribe(1, "#"))
    assert answer[0] == frames.Subscribed(1, 1)
    assert [f.path for f in answer if isinstance(f, frames.TopicFrame)] == ["a/1"]
    talk.fanout.publish(Publication("b/2", {}, 0, 0), 0)
    assert talk.hear() == []
    assert talk.say(frames.Publish(2, "a/1", {}))[0].code == ProtocolCode.FORBIDDEN
    assert talk.say(frames.Request(3, "a/1", {}))[0].code == ProtocolCode.FORBIDDEN


def test_permissions_are_asked_again_while_the_session_lives():
    talk = Talk(hello=False, verifier=OneToken())
    talk.fanout.publish(Publication("a/1", {}, 0, 0), 0)
    talk.say(hello("good"))
    talk.say(frames.Subscribe(1, "a/#"))
    talk.access.regrant(Principal("p", read=parse_selectors(["c"])))
    talk.session.tick(1)
    assert [f.reason for f in talk.hear()] == [frames.RemoveReason.FORBIDDEN]
    talk.access.revoke("p")
    talk.session.tick(2)
    assert talk.session.closed.code == ProtocolCode.UNAUTHENTICATED


def test_more_may_be_read_and_sent_when_more_is_granted():
    talk = Talk(hello=False, verifier=OneToken(bytes_per_s=1000))
    for path in ("a/1", "b/1", "b/2"):
        talk.fanout.publish(Publication(path, {}, 0, 0), 0)
    talk.say(hello("good"))
    talk.say(frames.Subscribe(1, "+/1"))
    talk.access.regrant(Principal("p", read=parse_selectors(["#"])))
    talk.session.tick(1)
    assert [f.path for f in talk.hear() if isinstance(f, frames.TopicFrame)] == ["b/1"]
    assert talk.session.outbox.budget is None
    talk.access.regrant(Principal("p", read=parse_selectors(["#"]), updates_per_s=3))
    talk.session.tick(2)
    assert talk.session.outbox.budget.limited


def test_what_a_client_has_and_may_no_longer_read_is_gone_for_it():
    talk = Talk(hello=False, verifier=OneToken())
    talk.fanout.publish(Publication("b/1", {}, 0, 0), 0)
    talk.say(hello("good"))
    options = frames.SubscribeOptions(have=[("b/1", 0, 1)])
    answer = talk.say(frames.Subscribe(1, "b/#", options))
    assert answer == [frames.Subscribed(1, 0), frames.TopicFrame(0, "b/1"), frames.Remove(0)]


def test_a_session_ends_with_its_token():
    talk = Talk(hello=False, verifier=OneToken(expires_us=500))
    talk.say(hello("good"))
    talk.session.tick(499)
    assert talk.session.closed is None
    talk.session.tick(501)
    assert talk.session.closed.code == ProtocolCode.TOKEN_EXPIRED


def test_sessions_per_principal_are_bounded_and_given_back():
    talk = Talk(hello=False, verifier=OneToken(sessions_max=1))
    talk.say(hello("good"))
    second = Session("s2", talk, 0)
    second.receive(codec.encode(hello("good")), 0)
    assert second.closed.code == ProtocolCode.TOO_MANY_SESSIONS
    second.forget()
    talk.session.forget()
    third = Session("s3", talk, 0)
    third.receive(codec.encode(hello("good")), 0)
    assert third.open


def test_the_tighter_budget_of_client_and_principal_holds():
    talk = Talk(hello=False, verifier=OneToken(bytes_per_s=1000))
    talk.say(hello("good", bytes_per_s=50_000))
    assert 0 < talk.session.outbox.budget.bytes_left(0) < 1024
    talk.say(frames.BudgetFrame(0, 0))
    assert talk.session.outbox.budget is not None
    free = Talk()
    assert free.session.principal is ANYONE
    assert free.session.outbox.budget is None


def test_an_acknowledgement_measures_the_age_of_what_it_covers():
    talk = Talk()
    talk.say(frames.Subscribe(1, "a/#"))
    for i in range(3):
        talk.fanout.publish(Publication("a/1", {"v": i}, i, 1000 * i), 0)
        talk.hear()
    talk.say(frames.Ack(2), 5000)
    assert talk.ages == [("a", 4000)]
    talk.fanout.publish(Publication("a/1", {"v": 4}, 4, 2000), 0)
    talk.hear()
    talk.say(frames.Ack(4), 7000)
    assert talk.ages == [("a", 4000), ("a", 5000)]
    assert talk.session.age_us == 5000


def test_a_budget_is_learned_from_the_link_and_only_where_there_is_a_choice():
    talk = Talk()
    talk.fanout.publish(Publication("a", {"v": 0}, 0, 5), 0)
    talk.say(frames.Subscribe(1, "a"))
    session, now = talk.session, 10_000 * MS
    session.learn(100_000, now)
    assert session.outbox.budget is None
    for i in range(1, 9):
        now += 250 * MS
        for j in range(3):
            talk.fanout.publish(Publication("a", {"v": i * 3 + j}, i * 3 + j, now), now)
        session.take(10**9, now)
        session.learn(100_000, now)
    assert session.link.bytes_per_s > 0
    assert session.outbox.budget is not None
    talk.say(frames.BudgetFrame(5_000, 0), now)
    assert session.outbox.budget.bytes_left(now) <= 5_000
    for _ in range(2):
        now += 250 * MS
        session.learn(0, now)
    talk.say(frames.BudgetFrame(0, 0), now)
    assert session.link.bytes_per_s == 0
    assert session.outbox.budget is None
